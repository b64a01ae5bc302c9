"""All that a worker loads: imported once, by the process of which the workers are copies; see `workers`."""

from __future__ import annotations

from windowpane.models.catalog import load_packaged_data
from windowpane.models.tokens import o200k
from windowpane.sources.imports import worker  # noqa: F401

load_packaged_data()
o200k().start(for_bulk=True)
o200k().wait()  # a vocabulary that cannot be loaded is reported by the worker that needs it
