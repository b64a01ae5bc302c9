"""Coding agents run without a person against the scripted provider, observed through every door at once.

Every agent works on the same task: it reads a file, runs a command whose output is large, edits a file, starts a
sub-agent, and continues after its conversation was compacted.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.providers.formats import Call, Reply
from tests.providers.loopback import Request, input_tokens, loopback_provider
from tests.providers.npm_programs import npm_program

from windowpane.store.embedded import SqliteReader
from windowpane.store.records import SessionRow

ROOT: Final = Path(__file__).resolve().parents[2]
DOORS: Final = ("run", "watch", "import", "hooks", "otlp")
TOGETHER: Final = "together"
"""All doors into one store."""
RUN_SECONDS: Final = 500
ARRIVAL_SECONDS: Final = 60
QUIET_SECONDS: Final = 5
HELD_BACK_SECONDS: Final = 125
"""A little more than the time for which the end of a recording, which may still be written, is held back."""
SUBTASK: Final = "Count the lines of app.py."
"""The prompt of the sub-agent, by which its calls are known."""
FILE_LINES: Final = 400
REPLACED: Final = {"old_string": "print(1)", "new_string": "print(2)"}
COMMAND: Final = "seq -f 'line %g of the output of a command' 1 600"


class Played(NamedTuple):
    """A call as the provider reported it."""

    kind: str
    """`main`, `subagent`, `summary` (of a compaction), or `side`."""
    model: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int


class Totals(NamedTuple):
    """Sums over calls."""

    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int


@dataclass
class Agent:
    """A program, its model, and what its task is in its own tools."""

    name: str
    program: str
    model: str
    home: Callable[[Path, str, str], None]
    """Write the settings into a home: the folder, the provider's URL, the receiver of OTLP."""
    environment: Callable[[Path, str, str], dict[str, str]]
    arguments: Callable[[int, str], list[str]]
    """The command line of a prompt by its number."""
    kind: Callable[[Request], str]
    steps: Sequence[Call | None]
    """The calls of tools by the model; None ends a prompt with a text."""
    recordings: Sequence[str]
    """Its recordings, in its home."""
    prompts: Sequence[str] = ("Improve app.py.", "Go on.")
    doors: Sequence[str] = ("run", "watch", "import", "otlp")
    subagent_call: Call | None = None
    """The call with which a sub-agent ends; by default it ends with a text."""
    summary_calls: int = 1
    """Calls that write the summary of one compaction; Gemini CLI has its summary checked by a second."""


class ScriptedModel:
    """Replies to the calls of one agent, and remembers what it reported."""

    def __init__(self, agent: Agent, folder: Path) -> None:
        self.agent = agent
        self.played: list[Played] = []
        self.requests: list[tuple[str, Request]] = []
        self._steps = iter(agent.steps)
        self._last: dict[str, int] = {}
        self._lock = threading.Lock()
        self._folder = folder

    def __call__(self, request: Request) -> Reply:
        with self._lock:
            return self._reply(request)

    def _reply(self, request: Request) -> Reply:
        kind = self.agent.kind(request)
        self.requests.append((kind, request))
        number = len(self.played) + 1
        sent = input_tokens(request.body)
        cached = self._last.get(kind, 0) if kind in ("main", "subagent") else 0
        cached = cached if cached < sent else 0
        self._last[kind] = sent
        call: Call | None = None
        text = {"side": '{"title": "Improve the app"}', "subagent": "It has two lines."}.get(kind, "It is done.")
        if kind == "main":
            call = next(self._steps, None)
            text = "On it." if call else text
        elif kind == "subagent":
            call = self.agent.subagent_call
        elif kind == "summary":
            text = "<summary><state_snapshot>The app was read and edited.</state_snapshot></summary>"
        calls = () if call is None else (_placed(call, self._folder),)
        model = str(request.body.get("model") or _model_in_path(request.path))
        reply = Reply(
            text=text, calls=calls, input_tokens=sent, cached_tokens=cached, output_tokens=20 + number,
            number=number, model=model, identity=f"{uuid.uuid4().hex}",
            compaction="c3VtbWFyeQ==" * 20 if kind == "summary" and request.shape == "responses" else "",
        )  # fmt: skip
        self.played.append(Played(kind, model, sent, cached, reply.output_tokens))
        return reply

    def totals(self, *kinds: str) -> Totals:
        """Return the sums over the calls of *kinds*."""
        calls = [call for call in self.played if call.kind in kinds]
        return Totals(
            len(calls), sum(call.input_tokens for call in calls), sum(call.cached_tokens for call in calls),
            sum(call.output_tokens for call in calls),
        )  # fmt: skip


def _model_in_path(path: str) -> str:
    match = re.search(r"models/([^:/]+)", path)
    return match[1] if match else ""


def _placed(call: Call, folder: Path) -> Call:
    """Return *call* with the folder of the work in its arguments, and an id that is unique."""
    arguments = json.loads(json.dumps(call.arguments).replace("{folder}", str(folder)))
    return Call(call.name, arguments, f"{call.call_id}_{uuid.uuid4().hex[:22]}", call.namespace)


def message_texts(body: Mapping[str, Any]) -> list[str]:
    """Return the JSON of each message of a request."""
    for name in ("messages", "input", "contents"):
        if isinstance(body.get(name), list):
            return [json.dumps(message, ensure_ascii=False) for message in body[name]]
    return []


def _has_subtask(body: Mapping[str, Any]) -> bool:
    """Return whether the first prompt of a request is the sub-agent's."""
    users = [
        text for text in message_texts(body)
        if json.loads(text).get("role") in ("user", None) and ("app.py" in text)
    ]  # fmt: skip
    return bool(users) and SUBTASK in users[0]


# -- the agents -------------------------------------------------------------------------------------------


def _claude_home(home: Path, _url: str, _otlp: str) -> None:
    (home / ".claude").mkdir(parents=True, exist_ok=True)


def _claude_environment(home: Path, url: str, otlp: str) -> dict[str, str]:
    return {
        "CLAUDE_CONFIG_DIR": str(home / ".claude"), "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k",
        "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1",
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1", "OTEL_LOGS_EXPORTER": "otlp", "OTEL_METRICS_EXPORTER": "none",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_ENDPOINT": otlp,
        "OTEL_LOGS_EXPORT_INTERVAL": "500",
    }  # fmt: skip


def _claude_arguments(number: int, prompt: str) -> list[str]:
    session = "--session-id" if number == 0 else "--resume"
    return [
        "--model", "claude-opus-5-5", session, CLAUDE_SESSION, "--permission-mode", "acceptEdits",
        "--allowedTools", "Bash Read Edit Agent", "-p", prompt,
    ]  # fmt: skip


CLAUDE_SESSION: Final = "3e1f7c0a-5b1d-4c58-9a53-1d2b7c9e4f60"


def _claude_kind(request: Request) -> str:
    body = request.body
    if any("create a detailed summary" in text for text in message_texts(body)[-3:]):
        return "summary"
    if not body.get("tools"):
        return "side"
    return "subagent" if _has_subtask(body) else "main"


CLAUDE: Final = Agent(
    "claude-code", "claude", "claude-opus-5-5", _claude_home, _claude_environment, _claude_arguments,
    _claude_kind,
    (
        Call("Read", {"file_path": "{folder}/notes.txt"}, "toolu"),
        Call("Bash", {"command": COMMAND, "description": "Print lines"}, "toolu"),
        Call("Read", {"file_path": "{folder}/app.py"}, "toolu"),
        Call("Edit", {"file_path": "{folder}/app.py", **REPLACED}, "toolu"),
        Call("Agent", {"description": "Count lines", "prompt": SUBTASK, "subagent_type": "general-purpose",
                       "run_in_background": False}, "toolu"),
        None,
        Call("Bash", {"command": "echo again", "description": "Print a word"}, "toolu"),
    ),
    (".claude/projects",),
    prompts=("Improve app.py.", "/compact", "Go on."),
    doors=DOORS,
)  # fmt: skip


def _codex_home(home: Path, url: str, otlp: str) -> None:
    (home / ".codex").mkdir(parents=True, exist_ok=True)
    (home / ".codex" / "config.toml").write_text(
        f'openai_base_url = "{url}/v1"\nmodel = "gpt-6-sol"\nmodel_auto_compact_token_limit = 26000\n'
        "[analytics]\nenabled = false\n"
        '[otel]\nenvironment = "test"\n'
        f'exporter = {{ otlp-http = {{ endpoint = "{otlp}/v1/logs", protocol = "binary" }} }}\n'
    )


def _codex_arguments(number: int, prompt: str) -> list[str]:
    common = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return ["exec", *common, prompt] if number == 0 else ["exec", "resume", "--last", *common, prompt]


def _codex_kind(request: Request) -> str:
    body = request.body
    turn = json.loads(request.headers.get("x-codex-turn-metadata", "{}"))
    if turn.get("request_kind") == "compaction" or any(
        '"compaction_trigger"' in text or "CONTEXT CHECKPOINT COMPACTION" in text
        for text in message_texts(body)[-1:]
    ):
        return "summary"
    if turn.get("agent_name", "/root") != "/root" or turn.get("parent_thread_id"):
        return "subagent"
    return "main"


PATCH: Final = """apply_patch <<'EOF'
*** Begin Patch
*** Update File: app.py
@@
-print(1)
+print(2)
*** End Patch
EOF"""

CODEX: Final = Agent(
    "codex", "codex", "gpt-6-sol", _codex_home, lambda _home, _url, _otlp: {"CODEX_API_KEY": "k"},
    _codex_arguments, _codex_kind,
    (
        Call("exec_command", {"cmd": "cat notes.txt", "max_output_tokens": 10000}, "call"),
        Call("exec_command", {"cmd": COMMAND}, "call"),
        Call("exec_command", {"cmd": PATCH}, "call"),
        Call("spawn_agent", {"task_name": "count", "message": SUBTASK}, "call", "collaboration"),
        Call("exec_command", {"cmd": "sleep 3"}, "call"),
        None,
        Call("exec_command", {"cmd": "echo again"}, "call"),
    ),
    (".codex/sessions",),
)  # fmt: skip


def _gemini_home(home: Path, _url: str, otlp: str) -> None:
    (home / ".gemini").mkdir(parents=True, exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
        "model": {"compressionThreshold": 0.02},
        "telemetry": {"enabled": True, "target": "local", "otlpEndpoint": otlp, "otlpProtocol": "http"},
    }
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))


def _gemini_kind(request: Request) -> str:
    body = request.body
    if not body.get("tools"):
        return "summary" if "state_snapshot" in json.dumps(body) else "side"
    return "subagent" if _has_subtask(body) else "main"


GEMINI: Final = Agent(
    "gemini-cli", "gemini", "gemini-2.5-flash", _gemini_home,
    lambda _home, url, _otlp: {
        "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "k", "GEMINI_CLI_TRUST_WORKSPACE": "true",
    },
    lambda number, prompt: [
        "-m", "gemini-2.5-flash", "--yolo", *(["--resume", "latest"] if number else []), "-p", prompt,
    ],
    _gemini_kind,
    (
        Call("read_file", {"file_path": "notes.txt"}, "call"),
        Call("run_shell_command", {"command": COMMAND, "description": "Print lines"}, "call"),
        Call("replace", {"file_path": "app.py", "instruction": "Print two.", **REPLACED}, "call"),
        Call("invoke_agent", {"agent_name": "generalist", "prompt": SUBTASK}, "call"),
        None,
        Call("run_shell_command", {"command": "echo again", "description": "Print a word"}, "call"),
    ),
    (".gemini/tmp",),
    subagent_call=Call("complete_task", {"result": {"response": "It has two lines."}}, "call"),
    summary_calls=2,
)  # fmt: skip


def _qwen_home(home: Path, _url: str, otlp: str) -> None:
    (home / ".qwen").mkdir(parents=True, exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
        "telemetry": {"enabled": True, "target": "local", "otlpEndpoint": otlp, "otlpProtocol": "http"},
    }
    (home / ".qwen" / "settings.json").write_text(json.dumps(settings))


def _qwen_kind(request: Request) -> str:
    body = request.body
    if any("<state_snapshot>" in text for text in message_texts(body)[-1:]):
        return "summary"
    if _has_subtask(body):
        return "subagent"
    names = {tool.get("function", {}).get("name") for tool in body.get("tools") or ()}
    return "main" if "agent" in names else "side"


QWEN: Final = Agent(
    "qwen-code", "qwen", "qwen3-coder-plus", _qwen_home,
    lambda _home, url, _otlp: {
        "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "k", "OPENAI_MODEL": "qwen3-coder-plus",
        "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
    },
    lambda number, prompt: ["--yolo", *(["--continue"] if number else []), "-p", prompt],
    _qwen_kind,
    (
        Call("read_file", {"file_path": "{folder}/notes.txt"}, "call"),
        Call("run_shell_command", {"command": COMMAND, "is_background": False}, "call"),
        Call("read_file", {"file_path": "{folder}/app.py"}, "call"),
        Call("edit", {"file_path": "{folder}/app.py", **REPLACED}, "call"),
        Call("agent", {"description": "Count lines", "prompt": SUBTASK, "subagent_type": "Explore"}, "call"),
        None,
        Call("run_shell_command", {"command": "echo again", "is_background": False}, "call"),
    ),
    (".qwen/projects",),
    prompts=("Improve app.py.", "/compress", "Go on."),
)  # fmt: skip


def _opencode_home(home: Path, _url: str, _otlp: str) -> None:
    settings = {
        "share": "disabled", "autoupdate": False, "permission": "allow",
        "experimental": {"openTelemetry": True},
        "provider": {
            "anthropic": {"models": {"claude-sonnet-5": {"limit": {"context": 30_000, "output": 4_000}}}},
        },
    }  # fmt: skip
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "opencode.json").write_text(json.dumps(settings))


def _opencode_kind(request: Request) -> str:
    body = request.body
    if _has_subtask(body):
        return "subagent"
    if not body.get("tools"):
        return "summary" if any("summary" in text.lower() for text in message_texts(body)[-1:]) else "side"
    return "main"


OPENCODE: Final = Agent(
    "opencode", "opencode", "claude-sonnet-5", _opencode_home,
    lambda _home, url, otlp: {
        "ANTHROPIC_BASE_URL": f"{url}/v1", "ANTHROPIC_API_KEY": "k", "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": otlp, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    },
    lambda number, prompt: [
        "run", *(["--continue"] if number else []), "-m", "anthropic/claude-sonnet-5", prompt,
    ],
    _opencode_kind,
    (
        Call("read", {"filePath": "{folder}/notes.txt"}, "toolu"),
        Call("bash", {"command": COMMAND, "description": "Print lines"}, "toolu"),
        Call("read", {"filePath": "{folder}/app.py"}, "toolu"),
        Call("edit", {"filePath": "{folder}/app.py", "oldString": "print(1)", "newString": "print(2)"}, "toolu"),
        Call("task", {"description": "Count lines", "prompt": SUBTASK, "subagent_type": "general"}, "toolu"),
        None,
        Call("bash", {"command": "echo again", "description": "Print a word"}, "toolu"),
    ),
    (".local/share/opencode/opencode.db",),
)  # fmt: skip

AGENTS: Final = {agent.name: agent for agent in (CLAUDE, CODEX, GEMINI, QWEN, OPENCODE)}


# -- a run ----------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """The provider's reports and the store of each door."""

    model: ScriptedModel
    stores: dict[str, Path]
    home: Path
    output: str


def play(name: str, folder: Path, *, together: bool = False) -> Outcome:
    """Run an agent's whole task in *folder* with every door open, each with a separate store or *together*."""
    agent = AGENTS[name]
    program = npm_program(agent.program)
    home, work = folder / "home", folder / "work"
    work.mkdir(parents=True)
    (work / "app.py").write_text("print(1)\nprint('end')\n")
    (work / "notes.txt").write_text(
        "".join(f"note {number}: nothing to do here.\n" for number in range(FILE_LINES))
    )
    stores = {door: folder / ("all.db" if together else f"{door}.db") for door in agent.doors}
    model = ScriptedModel(agent, work)
    output = ""
    with ExitStack() as stack:
        provider = stack.enter_context(loopback_provider())
        provider.responder = model
        otlp = f"http://127.0.0.1:{free_port()}"
        agent.home(home, provider.url, otlp)
        environment = {**plain_environment(home), **agent.environment(home, provider.url, otlp)}
        if "hooks" in stores:
            windowpane(["hook", "install", "--write", "--store", stores["hooks"]], environment, work)
        for path in (home / one for one in agent.recordings):
            (path if not path.suffix else path.parent).mkdir(parents=True, exist_ok=True)
        recordings = [str(home / one) for one in agent.recordings]
        receiver = ["serve", "--otlp", "--otlp-port", otlp.rpartition(":")[2], "--port", "0"]
        receiver += ["--store", str(stores["otlp"])]
        stack.enter_context(running(receiver, environment, work, folder / "serve.log"))
        watched = recordings if not recordings[0].endswith(".db") else [str(Path(recordings[0]).parent)]
        stack.enter_context(
            running(
                ["watch", *watched, "--port", "0", "--store", stores["watch"]],
                environment,
                work,
                folder / "watch.log",
            )
        )
        for number, prompt in enumerate(agent.prompts):
            command = ["run", "--store", stores["run"], "--", program, *agent.arguments(number, prompt)]
            output += windowpane(command, environment, work)
        wait_for(lambda: all(is_quiet(store) for store in stores.values()))
        let_pass(recordings, HELD_BACK_SECONDS)
        time.sleep(QUIET_SECONDS)
        wait_for(lambda: is_quiet(stores["watch"]))
    let_pass(recordings, HELD_BACK_SECONDS)
    windowpane(["import", *recordings, "--store", stores["import"]], {**environment}, work, codes=(0, 1, 3))
    return Outcome(model, stores, home, output)


def let_pass(recordings: Sequence[str], seconds: float) -> None:
    """Make the recordings older."""
    at = time.time() - seconds
    for recording in (path for one in recordings for path in _files(Path(one)) if path.is_file()):
        os.utime(recording, (at, at))


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else list(path.rglob("*"))


def plain_environment(home: Path) -> dict[str, str]:
    """Return an environment with nothing of this machine's user."""
    return {
        "HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "exporter")]),
    }  # fmt: skip


def windowpane(
    arguments: Sequence[Any], environment: Mapping[str, str], folder: Path, *, codes: Sequence[int] = (0,)
) -> str:
    """Run a command of Windowpane and return its output."""
    done = subprocess.run(
        [sys.executable, "-m", "windowpane", *arguments], cwd=folder, env=dict(environment),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode in codes, (
        f"{arguments}: {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-2500:]}"
    )
    return done.stdout + done.stderr


@contextmanager
def running(arguments: Sequence[Any], environment: Mapping[str, str], folder: Path, log: Path) -> Iterator[None]:
    """Run a server of Windowpane until the block ends."""
    with log.open("w") as output, subprocess.Popen(
        [sys.executable, "-m", "windowpane", *map(str, arguments)], cwd=folder, env=dict(environment),
        stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            wait_for(lambda: log.stat().st_size > 0 or process.poll() is not None)
            time.sleep(1)
            assert process.poll() is None, log.read_text()
            yield
        finally:
            process.terminate()
            process.wait(60)


def free_port() -> int:
    """Return a port that is free now."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], bool], seconds: float = ARRIVAL_SECONDS) -> bool:
    """Wait until *condition* holds; return whether it did."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.2)
    return condition()


def is_quiet(store: Path) -> bool:
    """Return whether a store was not written to for some seconds."""
    files = [path for path in store.parent.glob(f"{store.name}*") if path.is_file()]
    return all(time.time() - path.stat().st_mtime > QUIET_SECONDS for path in files)


def rows_of(store: Path) -> list[SessionRow]:
    """Return the listed sessions of a store."""
    if not store.exists():
        return []
    with closing(SqliteReader(store)) as reader:
        return list(reader.sessions())


# -- what each door recorded ---------------------------------------------------------------------------------


class Cell(NamedTuple):
    """One door of one agent."""

    sessions: int
    """Sessions without a parent; one is right."""
    recorded: Totals
    """Sums of the session itself."""
    reported: Totals
    """The same as the provider reported it."""
    compactions: int
    compactions_reported: int
    subagents: Totals
    """Sums of the sessions below it."""
    subagents_reported: Totals

    @property
    def is_right(self) -> bool:
        """Everything is recorded once, to the token."""
        return (
            self.sessions == 1
            and self.recorded == self.reported
            and self.compactions == self.compactions_reported
            and self.subagents == self.subagents_reported
        )


def cells(outcome: Outcome) -> dict[str, Cell]:
    """Return what each door recorded."""
    return {door: cell_of(outcome.model, store) for door, store in outcome.stores.items()}


def together_cell(outcome: Outcome) -> Cell:
    """Return what all doors recorded in one store."""
    return cell_of(outcome.model, next(iter(outcome.stores.values())))


def cell_of(model: ScriptedModel, store: Path) -> Cell:
    """Return what a store holds next to what the provider reported.

    The call that writes the summary may be counted in the session, below it, or, where an agent does not record
    it, not at all; so may the calls beside the task, such as one that writes a title.
    """
    rows = rows_of(store)
    top = [row for row in rows if row.parent_session_id is None]
    recorded = _sum([totals_of_row(row) for row in top])
    below = _sum([totals_of_row(row) for row in rows if row.parent_session_id is not None])
    return Cell(
        len(top),
        recorded,
        _matching(recorded, model, "main"),
        sum(row.compressions for row in top),
        model.totals("summary").calls // model.agent.summary_calls,
        below,
        _matching(below, model, "subagent"),
    )


def _matching(recorded: Totals, model: ScriptedModel, kind: str) -> Totals:
    """Return the totals of *kind*, with the calls beside it where they are recorded too."""
    choices = [model.totals(kind, *others) for others in ((), ("summary",), ("side",), ("summary", "side"))]
    return recorded if recorded in choices else choices[0]


def totals_of_row(row: SessionRow) -> Totals:
    """Return the totals of a session."""
    return Totals(row.turns, row.input_tokens, row.cache_read_tokens, row.output_tokens)


def _sum(totals: Sequence[Totals]) -> Totals:
    return Totals(*(sum(column) for column in zip(*totals, strict=True))) if totals else Totals(0, 0, 0, 0)
