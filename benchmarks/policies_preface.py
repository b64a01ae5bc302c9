"""What stands above the tables of POLICIES.md: how it was measured, and what was changed and tried."""

from __future__ import annotations

from policies_report import FEWEST, RESAMPLES

PREFACE = f"""# Policies over recorded sessions
"""
