"""Check that every library of the package is under a licence that its users may accept without asking.

Usage: python deploy/check_licences.py [--environment FOLDER]

Reads the metadata of the installed libraries that the package and its extras require. Exits with 1 and names each
library whose licence is unknown or not in `ALLOWED`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

PACKAGE = "windowpane-observability"
NOT_SHIPPED = {"dev"}
"""Extras whose libraries no user installs."""
ALLOWED = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "HPND", "ISC", "MIT",
    "MIT-0", "MIT-CMU", "PSF-2.0", "Python-2.0", "Unlicense", "Zlib",
    "MPL-2.0",  # a library that is used unchanged brings no duty
    "LGPL-3.0-only", "LGPL-3.0-or-later",  # likewise, as a module that its user can replace
}  # fmt: skip
SPELLINGS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "Dual License": "Apache-2.0 OR BSD-3-Clause",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The MIT License (MIT)": "MIT",
}
"""Text of metadata to SPDX expression."""
STATED = {"pyahocorasick": "BSD-3-Clause AND Unlicense"}
"""Libraries whose metadata states nothing readable, after reading their licence files."""


def installed(environment: Path | None) -> dict[str, Distribution]:
    """Return the distributions of an environment by name."""
    folders = [str(path) for path in environment.glob("lib/python3*/site-packages")] if environment else None
    every = distributions(path=folders) if folders is not None else distributions()
    return {normalized(one.metadata["Name"]): one for one in every}


def normalized(name: str) -> str:
    """Return the one spelling of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def shipped(libraries: dict[str, Distribution]) -> dict[str, Distribution]:
    """Return the libraries that an installation with any of the extras brings, by name."""
    brought: dict[str, Distribution] = {}
    waiting = [PACKAGE]
    while waiting:
        name = waiting.pop()
        if name in brought or name not in libraries:
            continue
        brought[name] = libraries[name]
        waiting += required(libraries[name], all_extras=name == PACKAGE)
    del brought[PACKAGE]
    return brought


def required(distribution: Distribution, *, all_extras: bool) -> Iterator[str]:
    """Yield the names that a distribution requires; those of extras only where *all_extras*."""
    for text in distribution.requires or ():
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", text)
        if extra is None or (all_extras and extra[1] not in NOT_SHIPPED):
            yield normalized(re.split(r"[^A-Za-z0-9._-]", text, maxsplit=1)[0])


def licence(distribution: Distribution) -> str:
    """Return the licence as an SPDX expression, or as the metadata has it."""
    metadata = distribution.metadata
    name = normalized(metadata["Name"])
    if name in STATED:
        return STATED[name]
    classified = [
        text.rpartition(" :: ")[2]
        for text in metadata.get_all("Classifier") or ()
        if text.startswith("License :: ") and not text.endswith("OSI Approved")
    ]
    stated = metadata.get("License-Expression") or " OR ".join(SPELLINGS.get(one, one) for one in classified)
    text = stated or (metadata.get("License") or "").strip().partition("\n")[0]  # some state the whole text
    return SPELLINGS.get(text, text)


def is_allowed(expression: str) -> bool:
    """Return whether a licence expression can be met with allowed licences only."""
    terms = re.findall(r"[()]|[^\s()]+", re.sub(r" WITH \S+", "", expression))
    symbols = [
        term if term in "()" else {"AND": "and", "OR": "or"}.get(term, str(term in ALLOWED)) for term in terms
    ]
    try:
        return bool(eval(" ".join(symbols)))  # of nothing but True, False, and, or, and parentheses
    except SyntaxError:  # a free text
        return False


def problems(environment: Path | None = None) -> list[str]:
    """Return a line for each library whose licence is not allowed."""
    return [
        f"{name} {one.version}: {licence(one) or 'no licence stated'}"
        for name, one in sorted(shipped(installed(environment)).items())
        if not is_allowed(licence(one))
    ]


def main() -> int:
    """Print what is not allowed; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", type=Path)
    requested = parser.parse_args()
    refused = problems(requested.environment)
    for line in refused:
        print(line)
    print(f"{len(shipped(installed(requested.environment)))} libraries, {len(refused)} not allowed")
    return int(bool(refused))


if __name__ == "__main__":
    sys.exit(main())
