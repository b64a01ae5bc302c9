"""Runs one conversation under an OpenTelemetry instrumentation, whose spans are sent to a receiver.

Usage: python -m tests.providers.instrumented_runs INSTRUMENTATION ENDPOINT STORE

It runs in the instrumentations' virtualenv. The conversation follows another one of one call, and takes
place again with observed clients, whose session is in STORE.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.providers.agent_runs import QUESTION, SECOND_QUESTION, SYSTEM, report, script
from tests.providers.formats import Reply
from tests.providers.loopback import LoopbackProvider, loopback_provider

import windowpane
from windowpane.models.tokens import counter_for

PAUSE_SECONDS = 3.0
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def openai_chat(provider: LoopbackProvider, question: str = QUESTION, calls: int = 4) -> None:
    """Calls of OpenAI's client, with tools."""
    import openai

    function = {"name": "weather", "description": "Weather.", "parameters": PARAMETERS}
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    with openai.OpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0) as client:
        for _ in range(calls):
            reply = client.chat.completions.create(
                model="gpt-4o", messages=messages, tools=[{"type": "function", "function": function}]
            )
            message = reply.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls or ():
                city = json.loads(call.function.arguments)["city"]
                messages.append({"role": "tool", "tool_call_id": call.id, "content": report(city)})
            if not message.tool_calls:
                messages.append({"role": "user", "content": SECOND_QUESTION})


def anthropic_messages(provider: LoopbackProvider, question: str = QUESTION, calls: int = 4) -> None:
    """Calls of Anthropic's client, with tools."""
    import anthropic

    tool: Any = {"name": "weather", "description": "Weather.", "input_schema": PARAMETERS}
    messages: list[Any] = [{"role": "user", "content": question}]
    with anthropic.Anthropic(api_key="k", base_url=provider.url, max_retries=0) as client:
        for _ in range(calls):
            reply = client.messages.create(
                model="claude-sonnet-4-5", max_tokens=200, system=SYSTEM, tools=[tool], messages=messages
            )
            results = [
                {"type": "tool_result", "tool_use_id": part.id, "content": report(part.input["city"])}
                for part in reply.content
                if part.type == "tool_use"
            ]
            messages.append({"role": "assistant", "content": [part.to_dict() for part in reply.content]})
            messages.append({"role": "user", "content": results or SECOND_QUESTION})


def google_genai(provider: LoopbackProvider, question: str = QUESTION, calls: int = 4) -> None:
    """Calls of google-genai's client, with tools."""
    from google import genai
    from google.genai import types

    declaration = types.FunctionDeclaration(
        name="weather", description="Weather.", parameters_json_schema=PARAMETERS
    )
    config = types.GenerateContentConfig(
        system_instruction=SYSTEM, tools=[types.Tool(function_declarations=[declaration])]
    )
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=question)])]
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=provider.url))
    for _ in range(calls):
        reply = client.models.generate_content(model="gemini-2.5-flash", contents=contents, config=config)
        contents.append(reply.candidates[0].content)
        results = [
            types.Part.from_function_response(name=call.name, response={"result": report(call.args["city"])})
            for call in reply.function_calls or ()
        ]
        contents.append(types.Content(role="user", parts=results or [types.Part(text=SECOND_QUESTION)]))


def openai_v2() -> Any:
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

    return OpenAIInstrumentor()


def official_google_genai() -> Any:
    from opentelemetry.instrumentation.google_genai import GoogleGenAiSdkInstrumentor

    return GoogleGenAiSdkInstrumentor()


def openinference_openai() -> Any:
    from openinference.instrumentation.openai import OpenAIInstrumentor

    return OpenAIInstrumentor()


def openinference_anthropic() -> Any:
    from openinference.instrumentation.anthropic import AnthropicInstrumentor

    return AnthropicInstrumentor()


def traceloop_openai() -> Any:
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    return OpenAIInstrumentor()


def traceloop_anthropic() -> Any:
    from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor

    return AnthropicInstrumentor()


RUNS: dict[str, tuple[Callable[[], Any], Callable[..., None]]] = {
    "openai_v2": (openai_v2, openai_chat),
    "google_genai": (official_google_genai, google_genai),
    "openinference_openai": (openinference_openai, openai_chat),
    "openinference_anthropic": (openinference_anthropic, anthropic_messages),
    "traceloop_openai": (traceloop_openai, openai_chat),
    "traceloop_anthropic": (traceloop_anthropic, anthropic_messages),
}
SETTINGS = {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_only",
}
"""Content is captured, as docs/otlp.md states."""


def observe(converse: Callable[..., None], provider: LoopbackProvider, store: Path) -> None:
    """Run the conversation with observed clients."""
    windowpane.start(port=0, store=store, notify=[])
    for model in ("gpt-4o", "claude-sonnet-4-5", "gemini-2.5-flash"):
        counter_for(model, wait=True)
    provider.script = script()
    with windowpane.observe_everything():
        converse(provider)
    windowpane.stop()


def main() -> None:
    name, endpoint, store = sys.argv[1:]
    os.environ |= SETTINGS
    if name == "openai_v2":
        os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "true"  # by events
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    tracing = TracerProvider(resource=Resource({"service.name": name}))
    tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
    trace.set_tracer_provider(tracing)
    logs = LoggerProvider(resource=tracing.resource)
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{endpoint}/v1/logs")))
    make_instrumentor, converse = RUNS[name]
    instrumentor = make_instrumentor()
    instrumentor.instrument(tracer_provider=tracing, logger_provider=logs)
    with loopback_provider() as provider:
        provider.script = [Reply()]
        converse(provider, question="Warm up.", calls=1)
        tracing.force_flush()
        time.sleep(PAUSE_SECONDS)  # the receiver loads its tokenizers
        provider.script = script()
        converse(provider)
        tracing.shutdown()
        logs.shutdown()
        instrumentor.uninstrument()
        observe(converse, provider, Path(store))


if __name__ == "__main__":
    main()
