"""Pack the recorded sessions that `windowpane demo` plays: mask names and hosts, compress.

Usage: python docs/pack_demo_data.py SESSIONS_FOLDER

Login names, personal package scopes and host names are replaced by words of the same length, so that lengths and
token counts stay what they were. Sources and licences are listed in NOTICE.
"""

from __future__ import annotations

import lzma
import re
import sys
from pathlib import Path

TARGET = Path(__file__).parent.parent / "exporter" / "windowpane" / "cli" / "demonstration" / "data"

FILES = {
    "claude_code/compact_small_a6-e4c2a0fbd1-0.jsonl": "claude_code_compaction.jsonl",
    "pi/large-session.jsonl": "pi_large_session.jsonl",
    "tau_bench/gpt-4o-airline_trial0_first10.json": "tau_bench_airline.json",
    "swe_agent/marshmallow_fc_replace.traj": "swe_agent_marshmallow.traj",
}
MASKS = {
    r"\bsoph\b": "user",
    r"badlogic": "username",
    r"mariozechner": "examplescope",
    r"(?i)\bmario\b": "maker",
    r"registry\.npmjs\.org": "registry.example.com",
    r"(?i)\bfuck(?=\w*)": "mess",
    r"(?i)\bshit(?=\w*)": "junk",
    r"(?i)\bbullshit\b": "nonsense",
}


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    folder = Path(sys.argv[1])
    for source, name in FILES.items():
        text = (folder / source).read_text(encoding="utf-8")
        for pattern, replacement in MASKS.items():
            text = re.sub(pattern, replacement, text)
        packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
        (TARGET / f"{name}.xz").write_bytes(packed)
        print(f"{name}: {len(text):,} characters, {len(packed):,} bytes packed")


if __name__ == "__main__":
    main()
