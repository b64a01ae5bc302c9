"""The managers as users construct them: names and numbers in, every dependency filled with its default.

Composition only: tokenizer, price catalog, archive and checkpoint files, and the running pipeline of the
process, where there is one. Any of them can be replaced through `dependencies`.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

from windowpane.contrib.presets import preset_named
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo
from windowpane.exceptions import ConfigurationError
from windowpane.fidelity.judge.sampling import SampledJudge
from windowpane.manager import drivers as manager
from windowpane.manager.files.archive import FileArchive
from windowpane.manager.files.checkpoints import FileCheckpoints
from windowpane.manager.files.environment import LocalEnvironment
from windowpane.manager.files.notes import FileNotes
from windowpane.manager.session import Dependencies, Task
from windowpane.manager.settings import LimitsOf
from windowpane.models.catalog import packaged_catalog
from windowpane.otlp.spans import CurrentSpan
from windowpane.runtime.current import process_digester, running_outputs
from windowpane.runtime.engine_settings import check, control_settings, tracker_settings
from windowpane.runtime.options import ManagerOptions, Options, options_of

if TYPE_CHECKING:
    from windowpane.config.schema import Config, JudgeConfig
    from windowpane.core.events import Event


PRUNE_SECONDS: Final = 3_600.0
"""Between two looks for expired originals."""


class ContextWindowManager(manager.ContextWindowManager):
    """Keeps one session's context window healthy. See `windowpane.manager.drivers`."""

    def __init__(self, *, agent: str, model: str, **options: Unpack[ManagerOptions]) -> None:
        """A manager for one session of *agent* with *model*.

        *options* are the fields of `Options`. Raises `ConfigurationError` for one that does not exist or is
        out of range. Without *limit_tokens* the window's size comes from the catalog; a model that is not in
        it has an unknown size: then the window is observed and nothing is reduced.
        """
        super().__init__(**_parts(agent, model, options_of(options)))


class AsyncContextWindowManager(manager.AsyncContextWindowManager):
    """As `ContextWindowManager`, for agents that run on an event loop."""

    def __init__(self, *, agent: str, model: str, **options: Unpack[ManagerOptions]) -> None:
        """As `ContextWindowManager`."""
        super().__init__(**_parts(agent, model, options_of(options)))


def _parts(agent: str, model: str, options: Options) -> dict[str, Any]:
    """Keyword arguments of the core's managers."""
    if not agent:
        raise ConfigurationError("agent", "the agent has no name", expected="a short name")
    config = settings()
    chosen = options.preset or config.preset
    preset = preset_named(chosen) if isinstance(chosen, str) else chosen
    if preset is not None:
        check(options, config, preset)
    control = control_settings(options, config, preset)
    dependencies = options.dependencies or default_dependencies(
        model, data_folder=options.data_folder, config=config
    )
    state_file = config.cross_window.state_file
    task_id = options.task_id or ("" if state_file is None or options.dependencies else state_file.stem)
    if preset is not None and preset.counter is not None and options.dependencies is None:
        dependencies = replace(dependencies, counter=preset.counter)
    if options.language_model is not None:
        dependencies = replace(dependencies, model=options.language_model)
    if options.subagent is not None:
        dependencies = replace(dependencies, subagent=options.subagent)
    if options.judge is not None:
        dependencies = replace(dependencies, judge=options.judge)
    elif dependencies.judge is None and config.health_monitoring.judge.model is not None:
        dependencies = replace(dependencies, judge=configured_judge(config.health_monitoring.judge))
    session_id = options.session_id or secrets.token_hex(16)
    return {
        "info": SessionInfo(
            session_id=session_id,
            agent=agent,
            model=model,
            source=options.source,
            stream_id=f"{session_id}/{secrets.token_hex(6)}",
            parent_session_id=options.parent_session_id,
        ),
        "dependencies": dependencies,
        "task": Task(
            options.task_goal,
            tuple(options.constraints),
            tuple(options.success_criteria),
            task_id,
            tuple(options.paths),
        ),
        "resume_task": options.resume,
        "limits": _limits(model, options, config, control.limits_of),
        "settings": control,
        "tracking": tracker_settings(options, config, preset),
    }


def settings() -> Config:
    """What holds in this process where no argument says otherwise: the running outputs', else read now."""
    from windowpane.config.loading import load_config

    running = running_outputs()
    return load_config() if running is None else running.config


def _limits(model: str, options: Options, config: Config, share: LimitsOf) -> WindowLimits | None:
    """The window's size: as given, else as configured, else from the catalog, else unknown."""
    given = options.limit_tokens or config.max_context_tokens
    if given is not None:
        return share(given, "given")
    info = packaged_catalog().lookup(model)
    if info is None or info.limit_tokens is None:
        return None
    return share(info.limit_tokens, "catalogue")


def default_dependencies(
    model: str, *, data_folder: str | Path | None = None, config: Config | None = None
) -> Dependencies:
    """Every dependency with the implementation that the package brings; files are where *config* says."""
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
        spans=CurrentSpan(),
    )


@cache
def configured_judge(config: JudgeConfig) -> SampledJudge:
    """The judge that the configuration names, one for the process. Raises `ConfigurationError`."""
    from windowpane.fidelity.suite.callables import load_callable

    assert config.model is not None, "asked only where a model is named"
    return SampledJudge(load_callable(config.model, option="health_monitoring.judge.model"), config.sample())


_pruned: dict[Path, float] = {}
"""When this process last looked for expired originals, by folder; seconds of a monotonic clock."""


def _prune(archive: FileArchive, folder: Path) -> None:
    """Delete expired originals, at most once an hour: a process that runs for weeks keeps none longer either."""
    now = time.monotonic()
    if now - _pruned.get(folder, -PRUNE_SECONDS) >= PRUNE_SECONDS:
        _pruned[folder] = now
        archive.prune()


def _discard(batch: list[Event]) -> None:
    """Nothing is started: events go nowhere, and listeners still hear them."""
    del batch
