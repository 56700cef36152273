"""``--format json``: the stable contract (triage.report/1)."""

from __future__ import annotations

from triage.outputs.base import Style
from triage.outputs.safe import json_text
from triage.report import Report


def render(report: Report, style: Style) -> str:
    """Return the report as JSON, one document, UTF-8, with a final newline."""
    del style
    return json_text(report.as_dict(), indent=1) + "\n"
