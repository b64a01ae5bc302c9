"""Write the benchmark's data from recordings: sizes of windows only, no content and no names.

WINDOWPANE_SESSIONS_DIR=... python benchmarks/forecast/export.py [OUTPUT]
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from truth.passages import courses
from truth.recordings import recorded_sessions

from forecast.questions import DATA, Course, write


def main(arguments: list[str]) -> int:
    """Write the sessions, in an order that does not depend on the folders; 0 also where there are none."""
    known = courses(recorded_sessions())
    if not known:
        return 0
    sessions = [
        Course(
            hashlib.sha256(course.session.key.encode()).hexdigest()[:12],
            course.agent,
            course.session.half,
            course.totals,
            tuple((compaction.call, compaction.automatic) for compaction in course.compactions),
            tuple((call, level) for call, level in enumerate(levels) if not call or level != levels[call - 1]),
        )
        for course in known
        for levels in [[measured.compaction_tokens for measured in course.measured]]
    ]
    write(sorted(sessions, key=lambda one: one.id), Path(*arguments) if arguments else DATA)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
