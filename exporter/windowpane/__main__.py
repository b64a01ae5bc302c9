"""The program `windowpane`, also `python -m windowpane`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; the hooks of a coding agent, which run at every prompt, do not load it."""
    match sys.argv[1:]:
        case ["hook", "status"]:
            _print_status()
        case ["hook", "status", "--store", store]:
            _print_status(store)
        case ["hook", "give-back"]:
            _print_given_back()
        case ["hook", "import"]:
            _import_transcript()
        case ["hook", "import", "--store", store]:
            _import_transcript(store)
        case _:
            from windowpane.cli import main as command_line

            command_line()


def _print_status(store: str | None = None) -> None:
    from windowpane.sources.hooks.status import print_status

    print_status(store)


def _print_given_back() -> None:
    from windowpane.sources.hooks.compacted_session import print_given_back

    print_given_back()


def _import_transcript(store: str | None = None) -> None:
    from windowpane.sources.hooks.transcript import import_named_transcript

    import_named_transcript(store)


if __name__ == "__main__":
    main()
