"""The managers as users construct them, with a default for every dependency.

The defaults are the tokenizer of the model, the price catalog, archive and checkpoint files, and the running
outputs of the process, if any. Replace them with `dependencies`.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_type_hints

from windowpane.agents.options import (
    EngineOptions,
    check_options,
    check_output,
    preset_of,
    settings_for,
    tracker_settings,
)
from windowpane.agents.spans import CurrentSpan
from windowpane.core.agents import window_of
from windowpane.core.limits import Thresholds, WindowLimits
from windowpane.core.names import SessionDescriptions, check_project
from windowpane.core.protocols import Embedder
from windowpane.core.tracking import SessionInfo
from windowpane.core.vocabulary import Component, LimitSource
from windowpane.effects.background_writer import writer_named
from windowpane.fidelity.judge.sampling import JudgeSampling, SampledJudge
from windowpane.manager.dependencies import Dependencies, Task
from windowpane.manager.drivers import AsyncWindow, BlockingWindow
from windowpane.manager.files.archive import FileArchive
from windowpane.manager.files.checkpoints import FileCheckpoints
from windowpane.manager.files.environment import LocalEnvironment
from windowpane.manager.files.notes import FileNotes
from windowpane.manager.plans.policies import Policy
from windowpane.manager.presets.registry import Preset
from windowpane.manager.session import ManagedSession
from windowpane.manager.settings import EngineSettings, LimitsOf
from windowpane.manager.steps.cascade import EngineStep
from windowpane.manager.window import ManagedWindow
from windowpane.models.catalog import packaged_catalog
from windowpane.outputs.runtime.current import process_digester, running_outputs

if TYPE_CHECKING:
    from windowpane.config.schema import Config, JudgeConfig
    from windowpane.core.events import Event, SessionDescribed, Usage
    from windowpane.manager.engine import Engine

_log = logging.getLogger(__name__)

PRUNE_SECONDS: Final = 3_600.0
"""Time between two deletions of expired originals."""


class ConfiguredWindow(ManagedWindow):
    """The constructor of both managers."""

    def __init__(
        self,
        *,
        agent: str,
        model: str,
        task_goal: str = "",
        constraints: Sequence[str] = (),
        success_criteria: Sequence[str] = (),
        task_id: str | None = None,
        resume: bool = True,
        paths: Sequence[str] = (),
        limit_tokens: int | None = None,
        requested_output_tokens: int = 0,
        thresholds: Thresholds | None = None,
        preset: str | Preset | None = None,
        settings: EngineSettings | None = None,
        policy: str | Policy | None = None,
        weights: Mapping[str, float] | None = None,
        budget: Mapping[Component, float] | str | None = None,
        enforce: Literal["global", "component"] | None = None,
        background: bool | None = None,
        cascade: Sequence[str | EngineStep] | None = None,
        embedder: Embedder | None = None,
        language_model: Callable[[str, str], Any] | None = None,
        subagent: Callable[[str], Any] | None = None,
        judge: SampledJudge | None = None,
        session_id: str | None = None,
        parent_session_id: str | None = None,
        title: str = "",
        label: str = "",
        project: str = "",
        source: str = "live",
        data_folder: str | Path | None = None,
        dependencies: Dependencies | None = None,
    ) -> None:
        """Start a session of *agent* with *model*. None takes the configured value, else the default.

        The task, which is in every call word for word, before the first user message:
            task_goal: What the session is for; the first user message if empty.
            constraints, success_criteria: Sentences that the agent must keep in view.
            task_id: A name under which another session can continue the task; names its checkpoints.
            resume: Whether a task with an id continues from its newest checkpoint, or starts afresh.
            paths: Files the task depends on; changes to them are reported when it is resumed.

        The window:
            limit_tokens: Its size in tokens, at least 256. By default the catalog's for *model*; a model that
                is not in the catalog has an unknown size: its window is observed and never reduced.
            requested_output_tokens: The output limit sent with each call; kept free in the window.
            thresholds: Utilizations from which the zones yellow, orange and red start.

        How it is managed:
            preset: Numbers, order and log records of another system, by name or as a `Preset`.
            settings: An `EngineSettings` for what no other argument covers; not together with a preset.
            policy, weights: The eviction policy by name or as a `Policy`; weights of the hybrid policy's terms.
            budget: Shares of the window by component, or a profile: `default`, `code_review`, `research` or
                `customer_support`.
            enforce: `global` reports components over their budget, `component` reduces each separately.
            background: Whether the conversation is compacted after a turn, before a call waits for it.
            cascade: The reduction steps in order, by name or as your own `Step`. The steps that make an
                otherwise impossible call possible come after them in any case.
            embedder: Text to vector, for merging similar content; word shingles without one.

        Other parties:
            language_model: A function `(system, user) -> text`, sync or async, that writes summaries.
            subagent: A function `(assignment) -> result`, sync or async, that works in a separate window.
            judge: A `SampledJudge` that checks a sample of the compressions; one for all managers.

        Records:
            session_id, parent_session_id, source: Identify the session in its events.
            title, label: Names that people recognize the session by, stored without secrets; where texts are
                captured, the task's goal is the title by default.
            project: The project that the session belongs to; by default the configured one.
            data_folder: Folder of archive, checkpoints and notes; the user's data folder by default.
            dependencies: Replacements for the tokenizer, stores and clocks; see `default_dependencies`.

        Raises `ConfigurationError` for an argument that has the wrong type, is out of range, or contradicts
        another argument or the preset.
        """
        arguments = locals()
        check_options(arguments, _option_types())
        check_project("project", project)
        options = EngineOptions.of(arguments)
        config = active_config()
        chosen = preset_of(options, config)
        engine_settings = settings_for(options, config, chosen)
        if not task_id and dependencies is None and config.cross_window.state_file is not None:
            task_id = config.cross_window.state_file.stem
        session_id = session_id or secrets.token_hex(16)
        super().__init__(
            ManagedSession(
                SessionInfo(
                    session_id=session_id,
                    agent=agent,
                    model=model,
                    source=source,
                    stream_id=f"{session_id}/{secrets.token_hex(6)}",
                    parent_session_id=parent_session_id,
                ),
                dependencies=_with_parties(
                    dependencies or _defaults(model, data_folder, config, chosen),
                    config,
                    language_model=language_model,
                    subagent=subagent,
                    judge=judge,
                ),
                task=Task(task_goal, tuple(constraints), tuple(success_criteria), task_id or "", tuple(paths)),
                resume_task=resume,
                limits=_limits(model, options, config, chosen, engine_settings.limits_of),
                settings=engine_settings,
                tracking=tracker_settings(options, config, chosen),
            )
        )
        names = SessionDescriptions()
        goal = task_goal if config.store.capture and not title else ""
        for described in (
            names.state(title=title, title_source="user", label=label, project=project or config.project),
            names.state(title=goal, title_source="first_message"),
        ):
            if described is not None:
                self._session.apply("describe", partial(_record, described))


@cache
def _option_types() -> dict[str, Any]:
    """Return the types of the constructor's signature."""
    types = get_type_hints(ConfiguredWindow.__init__)
    del types["return"]
    return types


def _record(described: SessionDescribed, engine: Engine) -> None:
    engine.tracker.record(described)


class ContextWindowManager(ConfiguredWindow, BlockingWindow):
    """Keeps the context window of one agent session healthy, for agents that run on threads.

    Four hooks go around the agent's loop; leaving the `with` block ends the session:

        with ContextWindowManager(agent="reviewer", model="gpt-5", task_goal="Review src") as window:
            window.add_system("You review code.")
            window.add_user("Review src/app.py.")
            while True:
                window.on_turn_start()                       # makes room if needed
                reply = client.chat.completions.create(model="gpt-5", messages=window.messages())
                window.on_turn_end(reply)
                calls = reply.choices[0].message.tool_calls
                if not calls:
                    break
                for call in calls:
                    window.on_tool_result(call.function.name, run(call), call.id)

    `window.task` holds the plan, decisions and notes, `window.budget` the room by component, and
    `window.pending` the tool calls that wait for approval. No failure of a hook reaches the agent, except
    `IrreducibleContextError`: content that may not be removed does not fit.
    """


class AsyncContextWindowManager(ConfiguredWindow, AsyncWindow):
    """`ContextWindowManager` for agents that run on an event loop: the same methods, with awaited hooks.

    Use it with `async with`; await `on_turn_start`, `on_turn_end`, `on_tool_result`, `on_overflow`,
    `add_messages`, `delegate`, `settle` and `complete`.
    """


def _defaults(model: str, data_folder: str | Path | None, config: Config, preset: Preset | None) -> Dependencies:
    dependencies = default_dependencies(model, data_folder=data_folder, config=config)
    if preset is not None and preset.counter is not None:
        dependencies = replace(dependencies, counter=preset.counter)
    return dependencies


def _with_parties(
    dependencies: Dependencies,
    config: Config,
    *,
    language_model: Callable[[str, str], Any] | None,
    subagent: Callable[[str], Any] | None,
    judge: SampledJudge | None,
) -> Dependencies:
    """Return the dependencies with the model, sub-agent and judge passed, or the configured judge."""
    judge = judge or dependencies.judge
    if judge is None and config.health_monitoring.judge.model is not None:
        judge = configured_judge(config.health_monitoring.judge)
    model = dependencies.model if language_model is None else language_model
    return replace(
        dependencies,
        model=model,
        model_cost_of=dependencies.model_cost_of or _price_of(getattr(model, "name", None)),
        subagent=dependencies.subagent if subagent is None else subagent,
        judge=judge,
    )


def _price_of(model: str | None) -> Callable[[Usage], float | None] | None:
    """Return the price of a call of the model that compresses; None for a model without a name."""
    if not isinstance(model, str):
        return None
    return lambda usage: packaged_catalog().cost_dollars(model, usage, time.time())


def active_config() -> Config:
    """Return the configuration of the running outputs, or the one that applies now if nothing runs."""
    from windowpane.config.loading import load_config

    running = running_outputs()
    return load_config() if running is None else running.config


def _limits(
    model: str, options: EngineOptions, config: Config, preset: Preset | None, share: LimitsOf
) -> WindowLimits | None:
    """Return the window's size: given, configured, of the catalog, the preset's default, or unknown (logged)."""
    given = options.limit_tokens or config.max_context_tokens
    window: tuple[int, LimitSource] | None = (given, "given") if given else window_of(packaged_catalog(), model)
    if window is None and preset is not None and preset.default_limit_tokens is not None:
        window = preset.default_limit_tokens, "preset"
    if window is not None:
        check_output(options, window[0])
        return share(*window)
    if model not in _unknown_models:
        _unknown_models.add(model)
        _log.warning(
            "the size of %r's context window is unknown: it is measured but not managed; pass limit_tokens= "
            "or set max_context_tokens",
            model,
        )
    return None


_unknown_models: set[str] = set()
"""Models of unknown size that were logged."""


def default_dependencies(
    model: str, *, data_folder: str | Path | None = None, config: Config | None = None
) -> Dependencies:
    """Return the default dependencies of a manager for *model*, to replace some of them.

    Archive and checkpoints are in *data_folder*, by default the user's; *config* may name a state file, a
    progress file and a notes file. Events are emitted to the running outputs, if any.
    """
    from windowpane.config.paths import data_folder as user_folder
    from windowpane.core.redaction import redact
    from windowpane.models.tokens import counter_for

    folder = Path(data_folder or user_folder())
    notes_file = None if config is None else config.compression.notes_file
    prices = packaged_catalog()
    running = running_outputs()
    archive = FileArchive(folder / "archive", redact=lambda text: redact(text).text)
    _prune(archive, folder)
    return Dependencies(
        counter=counter_for(model),
        digest=process_digester() if running is None else running.digest,
        emit=_discard if running is None else running.emit,
        clock=time.time,
        timer=time.perf_counter,
        archive=archive,
        checkpoints=FileCheckpoints(
            folder / "checkpoints",
            redact=lambda text: redact(text).text,
            state_file=None if config is None else config.cross_window.state_file,
            progress_file=None if config is None else config.cross_window.progress_file,
        ),
        environment=LocalEnvironment(),
        notes=None if notes_file is None else FileNotes(notes_file, redact=lambda text: redact(text).text),
        hook_took=None if running is None else running.record_hook,
        cost_of=lambda usage: prices.cost_dollars(model, usage, time.time()),
        next_limit=lambda above: prices.next_limit(model, above),
        evaluations=writer_named("fidelity"),
        spans=CurrentSpan(),
    )


@cache
def configured_judge(config: JudgeConfig) -> SampledJudge:
    """Return the judge that the configuration names, one per process. Raises `ConfigurationError`."""
    from windowpane.evaluation.suite.judges import load_callable

    assert config.model is not None, "asked only where a model is named"
    sampling = JudgeSampling(
        rate=config.sample_rate,
        questions=config.questions,
        writes_questions=config.writes_questions,
        capacity=config.capacity,
        timeout_seconds=config.timeout_seconds,
        max_calls=config.max_calls,
        replicates=config.replicates,
    )
    return SampledJudge(load_callable(config.model, option="health_monitoring.judge.model"), sampling)


_pruned: dict[Path, float] = {}
"""Time of the last deletion of expired originals by folder; seconds of a monotonic clock."""


def _prune(archive: FileArchive, folder: Path) -> None:
    """Delete expired originals, at most once per hour, so that a long-running process retains none longer."""
    now = time.monotonic()
    if now - _pruned.get(folder, -PRUNE_SECONDS) >= PRUNE_SECONDS:
        _pruned[folder] = now
        writer_named(f"prune {folder}").run(archive.prune, wait_seconds=0.0)


def _discard(batch: list[Event]) -> None:
    """Discard events while no outputs run; listeners still receive them."""
    del batch
