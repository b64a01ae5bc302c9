"""Cost of the two things done to every text: redacting secrets and counting tokens.

Floors, in the same run over the same texts: `json.loads` of the texts as JSON, tiktoken alone, and one digest.
Redaction remembers nothing, so the first redaction of a text costs as much as each later one.
Reads the recorded sessions named by WINDOWPANE_SESSIONS_DIR, else a made-up mixture.
Prints ratios; accepts `--json`.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from windowpane.core.redaction import redact
from windowpane.models.tokens.encodings import O200K, load_encoding
from windowpane.models.tokens.exact_counter import Vocabulary, load_for_bulk

ROUNDS = 5
MIXTURE = [
    "The agent read the file and decided that nothing in it had to change. " * 20,
    'if (node["kind"] == "call") { return visit(node["args"][0], depth + 1); }\n' * 20,
    '{"path": "src/app/main.py", "limit_tokens": 4096, "url": "https://example.com/a?token=none"}\n' * 15,
] * 1_000


def strings(value: object) -> Iterator[str]:
    match value:
        case str() if value:
            yield value
        case dict():
            for part in value.values():
                yield from strings(part)
        case list():
            for part in value:
                yield from strings(part)


def recorded_texts(folder: Path) -> list[str]:
    texts: dict[str, None] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text(errors="replace").splitlines():
            try:
                texts.update(dict.fromkeys(strings(json.loads(line))))
            except ValueError:
                continue
    return list(texts)


def seconds(work: Callable[[str], object], texts: Iterable[str]) -> float:
    started = time.perf_counter()
    for text in texts:
        work(text)
    return time.perf_counter() - started


def main() -> None:
    folder = os.environ.get("WINDOWPANE_SESSIONS_DIR")
    texts = (
        recorded_texts(Path(folder)) if folder else [f"{number} {text}" for number, text in enumerate(MIXTURE)]
    )
    dumped = [json.dumps(text) for text in texts]
    encoding, tokenizer = load_encoding(O200K), load_for_bulk(O200K)
    measured: dict[str, list[float]] = {
        name: [] for name in ("parse", "redact", "bpe", "count", "digest", "again")
    }
    for _ in range(ROUNDS):
        vocabulary = Vocabulary(O200K, load=lambda _: tokenizer)
        vocabulary.require()
        measured["parse"].append(seconds(json.loads, dumped))
        measured["redact"].append(seconds(redact, texts))
        measured["bpe"].append(seconds(encoding.encode_ordinary, texts))
        measured["count"].append(seconds(vocabulary.count, texts))
        measured["digest"].append(seconds(lambda text: hashlib.blake2b(text.encode(), digest_size=16), texts))
        measured["again"].append(seconds(vocabulary.count, texts))
    medians = {name: statistics.median(values) for name, values in measured.items()}
    megabytes = sum(map(len, texts)) / 1e6
    values = {
        "texts": len(texts),
        "megacharacters": megabytes,
        "redact_megacharacters_per_second": megabytes / medians["redact"],
        "redact_to_json_loads": medians["redact"] / medians["parse"],
        "redact_to_tiktoken": medians["redact"] / medians["bpe"],
        "first_count_to_tiktoken": medians["count"] / medians["bpe"],
        "repeated_count_to_digest": medians["again"] / medians["digest"],
    }
    if "--json" in sys.argv:
        print(json.dumps(values))
        return
    for name, value in values.items():
        print(f"{name:36}{value:12.2f}")


if __name__ == "__main__":
    main()
