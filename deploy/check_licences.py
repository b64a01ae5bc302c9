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
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "HPND", "ISC", "MIT", "MIT-CMU",
    "MIT-0", "PSF-2.0", "Python-2.0", "Unlicense", "Zlib",
    "MPL-2.0",  # a library that is used unchanged brings no duty
    "LGPL-3.0-only", "LGPL-3.0-or-later",  # likewise, as a module that its user can replace
}  # fmt: skip
SPELLINGS = {
    "3-Clause BSD License": "BSD-3-Clause", "Apache License, Version 2.0": "Apache-2.0", "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0", "Apache Software License": "Apache-2.0", "Apache-2.0 license": "Apache-2.0",
    "Apache": "Apache-2.0", "BSD": "BSD-3-Clause", "BSD License": "BSD-3-Clause", "BSD 3-Clause License": "BSD-3-Clause",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only", "ISC License (ISCL)": "ISC",
    "MIT License": "MIT", "MIT license": "MIT", "The MIT License (MIT)": "MIT", "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0", "Dual License": "Apache-2.0 OR BSD-3-Clause",
}  # fmt: skip
"""What metadata writes, and what it means."""
STATED = {"pyahocorasick": "BSD-3-Clause AND Unlicense"}
"""Libraries whose metadata states nothing readable, after reading their licence files."""


def installed(environment: Path | None) -> dict[str, Distribution]:
    """Return the distributions of an environment by name."""
    folders = [str(path) for path in environment.glob("lib/python3*/site-packages")] if environment else None
    found = distributions(path=folders) if folders is not None else distributions()
    return {normalized(one.metadata["Name"]): one for one in found}


def normalized(name: str) -> str:
    """Return the one spelling of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def shipped(libraries: dict[str, Distribution]) -> dict[str, Distribution]:
    """Return the libraries that an installation with any of the extras brings, by name."""
    found: dict[str, Distribution] = {}
    waiting = [PACKAGE]
    while waiting:
        name = waiting.pop()
        if name in found or name not in libraries:
            continue
        found[name] = libraries[name]
        waiting += required(libraries[name], all_extras=name == PACKAGE)
    del found[PACKAGE]
    return found


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
    bare = expression.replace("(", " ").replace(")", " ")
    return bool(expression.strip()) and any(
        all(term.split(" WITH ")[0].strip() in ALLOWED for term in alternative.split(" AND "))
        for alternative in bare.split(" OR ")
    )


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
    found = problems(requested.environment)
    for line in found:
        print(line)
    print(f"{len(shipped(installed(requested.environment)))} libraries, {len(found)} not allowed")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
