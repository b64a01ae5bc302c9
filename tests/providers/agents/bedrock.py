"""Agents that call models of Amazon Bedrock by boto3."""

from __future__ import annotations

import json
from typing import Any

from botocore.exceptions import ClientError, EventStreamError
from tests.providers.agent_runs import QUESTION, SECOND_QUESTION, SYSTEM, bedrock_client, report, script
from tests.providers.formats import Refusal, Reply
from tests.providers.loopback import LoopbackProvider

import windowpane

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS: list[dict[str, Any]] = [
    {"toolSpec": {"name": "weather", "description": "Return the weather.", "inputSchema": {"json": SCHEMA}}},
    {"cachePoint": {"type": "default"}},
]


def body(messages: list[Any]) -> dict[str, Any]:
    return {"modelId": MODEL, "messages": messages, "system": [{"text": SYSTEM}], "toolConfig": {"tools": TOOLS}}


def question(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"text": text}]}


def results(message: dict[str, Any]) -> dict[str, Any] | None:
    """Return the results of the tools that a reply calls."""
    calls = [part["toolUse"] for part in message["content"] if "toolUse" in part]
    parts = [
        {"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": report(call["input"]["city"])}]}}
        for call in calls
    ]
    return {"role": "user", "content": parts} if parts else None


def converse(provider: LoopbackProvider) -> None:
    client = windowpane.observe(bedrock_client(provider))
    messages = [question(QUESTION)]
    for _ in range(4):
        message = client.converse(**body(messages))["output"]["message"]
        messages += [message, results(message) or question(SECOND_QUESTION)]


converse.replies = lambda: [  # type: ignore[attr-defined]
    Reply(reply.text, reply.calls, thinking="Compare them.", cached_tokens=20)
    for reply in script()
    if isinstance(reply, Reply)
]


def converse_stream(provider: LoopbackProvider) -> None:
    client = windowpane.observe(bedrock_client(provider))
    messages = [question(QUESTION)]
    for _ in range(4):
        message = assembled(client.converse_stream(**body(messages))["stream"])
        messages += [message, results(message) or question(SECOND_QUESTION)]


def assembled(stream: Any) -> dict[str, Any]:
    """Return the message that the events of a stream make up."""
    blocks: dict[int, dict[str, Any]] = {}
    for event in stream:
        if "contentBlockStart" in event:
            start = event["contentBlockStart"]
            blocks[start["contentBlockIndex"]] = {"toolUse": {**start["start"]["toolUse"], "input": ""}}
        elif "contentBlockDelta" in event:
            delta = event["contentBlockDelta"]
            block = blocks.setdefault(delta["contentBlockIndex"], {"text": ""})
            if "toolUse" in block:
                block["toolUse"]["input"] += delta["delta"]["toolUse"]["input"]
            else:
                block["text"] += delta["delta"]["text"]
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"])
    return {"role": "assistant", "content": list(blocks.values())}


def refused(provider: LoopbackProvider) -> None:
    client = windowpane.observe(bedrock_client(provider))
    for expected in ("Input is too long", "Rate limit reached"):
        try:
            client.converse(**body([question(QUESTION)]))
        except ClientError as error:
            assert expected in str(error)  # noqa: PT017
    client.converse(**body([question(QUESTION)]))


refused.replies = lambda: [Refusal("overflow"), Refusal("rate_limit"), Reply()]  # type: ignore[attr-defined]


def closed_stream(provider: LoopbackProvider) -> None:
    """An agent that closes a stream midway: the turn has what came until then."""
    client = windowpane.observe(bedrock_client(provider))
    stream = client.converse_stream(**body([question(QUESTION)]))["stream"]
    for event in stream:
        if "contentBlockDelta" in event:
            break
    stream.close()


closed_stream.compared = False  # type: ignore[attr-defined]  # the bare client reads all of it
closed_stream.replies = lambda: [Reply()]  # type: ignore[attr-defined]


def broken_stream(provider: LoopbackProvider) -> None:
    """A stream that ends with an exception is a failed call; its retry belongs to the same turn."""
    client = windowpane.observe(bedrock_client(provider))
    provider.error = {"message": "the model failed"}
    try:
        for _ in client.converse_stream(**body([question(QUESTION)]))["stream"]:
            pass
        raise AssertionError("expected an exception")
    except EventStreamError as error:
        assert "the model failed" in str(error)  # noqa: PT017
    provider.error = None
    client.converse(**body([question(QUESTION)]))


broken_stream.compared = False  # type: ignore[attr-defined]  # the bare client's stream does not break
broken_stream.turns = 1  # type: ignore[attr-defined]
broken_stream.replies = lambda: [Reply(), Reply()]  # type: ignore[attr-defined]


def reply_taken_apart(provider: LoopbackProvider) -> None:
    """A caller that takes the parts out of a reply, as LangChain does, changes nothing of what is recorded."""
    reply = windowpane.observe(bedrock_client(provider)).converse(**body([question(QUESTION)]))
    reply.pop("output")["message"]["content"].clear()
    reply.pop("usage").clear()


reply_taken_apart.replies = lambda: [Reply()]  # type: ignore[attr-defined]


def anthropic_body(messages: list[Any]) -> dict[str, Any]:
    tool = {"name": "weather", "description": "Return the weather.", "input_schema": SCHEMA}
    sent = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 100, "messages": messages, "system": SYSTEM,
            "tools": [tool]}  # fmt: skip
    return {"modelId": MODEL, "body": json.dumps(sent)}


def answered(content: list[Any]) -> dict[str, Any]:
    results = [{"type": "tool_result", "tool_use_id": block["id"], "content": report(block["input"]["city"])}
               for block in content if block["type"] == "tool_use"]  # fmt: skip
    return {"role": "user", "content": results or SECOND_QUESTION}


def invoke_model(provider: LoopbackProvider) -> None:
    """The format of Anthropic, as its own API has it."""
    client = windowpane.observe(bedrock_client(provider))
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    for _ in range(4):
        reply = json.loads(client.invoke_model(**anthropic_body(messages))["body"].read())
        messages += [{"role": "assistant", "content": reply["content"]}, answered(reply["content"])]


def invoke_model_with_stream(provider: LoopbackProvider) -> None:
    client = windowpane.observe(bedrock_client(provider))
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    for reply in script():
        assert isinstance(reply, Reply)
        for event in client.invoke_model_with_response_stream(**anthropic_body(messages))["body"]:
            assert event["chunk"]["bytes"]
        content: list[Any] = [{"type": "text", "text": reply.text}] if reply.text else []
        content += [{"type": "tool_use", "id": call.call_id, "name": call.name, "input": call.arguments}
                    for call in reply.calls]  # fmt: skip
        messages += [{"role": "assistant", "content": content}, answered(content)]


SCENARIOS = {
    agent.__name__: agent
    for agent in (
        converse, converse_stream, refused, reply_taken_apart, closed_stream, broken_stream, invoke_model,
        invoke_model_with_stream,
    )
}  # fmt: skip
