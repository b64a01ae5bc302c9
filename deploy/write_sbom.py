"""Write the software bill of materials of an environment, as CycloneDX 1.6 in JSON.

Usage: python deploy/write_sbom.py --environment FOLDER --output sbom.cdx.json

The environment holds the wheel with the extras that are listed, and nothing else but pip. There is no time and
no serial number in it: the same environment gives the same file. It is not validated, which takes a network.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run CycloneDX's program over the environment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    requested = parser.parse_args()
    python = requested.environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    command = [sys.executable, "-m", "cyclonedx_py", "environment", str(python)]
    options = [
        "--output-reproducible",
        "--no-validate",
        "--spec-version=1.6",
        "--of=JSON",
        "-o",
        str(requested.output),
    ]
    return subprocess.run([*command, *options], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
