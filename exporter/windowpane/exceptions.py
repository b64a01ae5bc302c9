"""The errors Windowpane raises.

```
WindowpaneError
├── ConfigurationError          a setting is unknown, out of range or contradictory
├── SourceError                 a recording cannot be read at all (one bad record never raises)
│   └── UnknownFormatError      no reader recognizes the file
├── VocabularyError             a tokenizer vocabulary of the package is missing or damaged
├── StoreError                  the event store refused or lost something
│   ├── SchemaVersionError      the database was written by a newer release, or before 0.1.0
│   ├── OlderStoreError         the database was written by an older release and is read only
│   ├── StoreBusyError          another process holds the store's lock; a later attempt may succeed
│   ├── UnconfirmedWriteError   the connection broke at a commit: stored or not, the next write finds out
│   ├── StoreReplacedError      the file was deleted or replaced while it was open
│   └── EventsRefusedError      the store cannot hold these events; another attempt would not help
│       └── SessionRefusedError nor any other event of their session
├── ClickHouseError             ClickHouse cannot be reached or refused a statement
├── EventFormatError            stored or received bytes are not an event this release can read
├── WindowError                 an edit would break an invariant of the window
│   └── IrreducibleContextError what may not be removed does not fit
├── UnfinishedWriteError        a file is not written yet; the write continues
└── CheckpointError             a checkpoint cannot be saved or trusted
    ├── StaleCheckpointError    it is older than what is already stored
    └── CorruptCheckpointError  its checksum or schema does not hold
```
"""

from __future__ import annotations

from collections.abc import Sequence


class WindowpaneError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigurationError(WindowpaneError, ValueError):
    """A setting is unknown, out of range or contradicts another.

    *path* is the key's dotted path, *problem* the reason, and *expected* describes accepted values. *others* are
    further errors of the same configuration; the message has one per line.
    """

    def __init__(
        self, path: str, problem: str, *, expected: str = "", others: Sequence[ConfigurationError] = ()
    ) -> None:
        self.path = path
        self.problem = problem
        self.expected = expected
        self.others = others
        message = f"{path}: {problem}" + (f"; expected {expected}" if expected else "")
        printable = message.encode("utf-8", "backslashreplace").decode()  # a variable may hold any bytes
        super().__init__("\n".join([printable, *map(str, others)]))

    @classmethod
    def raise_all(cls, errors: Sequence[ConfigurationError]) -> None:
        """Raise one error with all of *errors*; nothing without any."""
        if errors:
            first, *others = errors
            raise cls(first.path, first.problem, expected=first.expected, others=others)


class SourceError(WindowpaneError):
    """A recording cannot be read at all; *file* names it."""

    def __init__(self, file: str, problem: str) -> None:
        self.file = file
        self.problem = problem
        super().__init__(f"{file}: {problem}")


class UnknownFormatError(SourceError):
    """No reader recognizes the file."""


class VocabularyError(WindowpaneError):
    """A tokenizer vocabulary shipped with the package is missing or damaged; *encoding* names it."""

    def __init__(self, encoding: str, problem: str) -> None:
        self.encoding = encoding
        self.problem = problem
        super().__init__(f"vocabulary {encoding}: {problem}; reinstall the package")


class StoreError(WindowpaneError):
    """The event store refused or lost something."""


class SchemaVersionError(StoreError):
    """The database was written by a newer release than this one, or before release 0.1.0."""


class OlderStoreError(StoreError):
    """The database was written by an older release and has to be opened for writing once."""

    def __init__(self, store: object) -> None:
        super().__init__(
            f"{store}: was written by an older release; "
            "open it once for writing, for example with `windowpane serve`"
        )


class StoreBusyError(StoreError):
    """Another process holds the store's lock; a later attempt may succeed."""


class UnconfirmedWriteError(StoreError):
    """The connection broke while the store committed; the next write of the same events stores none twice."""


class OtherSessionError(StoreError):
    """Another session is stored under the id of a recorded one, which may be stored as *distinct_id*."""

    def __init__(self, session_id: str, distinct_id: str) -> None:
        super().__init__(f"another session with the id {session_id}, and no call in common, is stored")
        self.session_id = session_id
        self.distinct_id = distinct_id


class StoreReplacedError(StoreError):
    """The store's file or its log was deleted or replaced while it was open; the next use opens what is there."""

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{path}: the file or its log (-wal) was deleted or replaced while it was open; "
            "what was stored in it before may be lost"
        )


class EventsRefusedError(StoreError):
    """The store cannot hold these events, whenever they are written; nothing of the batch was stored."""


class SessionRefusedError(EventsRefusedError):
    """The store cannot hold any event of this session in this process."""


class ClickHouseError(WindowpaneError):
    """ClickHouse cannot be reached or refused a statement; *url* names it."""

    def __init__(self, url: str, problem: str) -> None:
        self.url = url
        self.problem = problem
        super().__init__(f"{url}: {problem}")


class EventFormatError(WindowpaneError, ValueError):
    """Bytes are not an event this release can read."""


class WindowError(WindowpaneError):
    """An edit would break an invariant of the window; nothing was changed."""


class IrreducibleContextError(WindowError):
    """Content that may not be removed does not fit the window.

    Carries *required_tokens*, *usable_tokens* and *limit_tokens*.
    """

    def __init__(self, *, required_tokens: int, usable_tokens: int, limit_tokens: int) -> None:
        self.required_tokens = required_tokens
        self.usable_tokens = usable_tokens
        self.limit_tokens = limit_tokens
        super().__init__(
            f"content that must stay needs {required_tokens} tokens, "
            f"but {usable_tokens} of {limit_tokens} are usable"
        )


class UnfinishedWriteError(WindowpaneError):
    """A file is not written or read yet; it continues in the background."""

    def __init__(self) -> None:
        super().__init__("the file is not written yet; the write continues in the background")


class CheckpointError(WindowpaneError):
    """A checkpoint cannot be saved or trusted."""


class StaleCheckpointError(CheckpointError):
    """A checkpoint is older than the one already stored."""


class CorruptCheckpointError(CheckpointError):
    """A checkpoint's checksum or schema does not hold."""
