"""Golden files: a report without what changes from day to day, and a comparison that shows a diff."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from triage.report import Alternative, Diagnosis, Reason, Report

MAX_DIFF_LINES = 80


def scrubbed(report: Report) -> Report:
    """Return the report as it would be without version, signature hash, exact confidence and weights."""
    return replace(report, version="-", signatures="-", diagnoses=tuple(map(_diagnosis, report.diagnoses)))


def _diagnosis(diagnosis: Diagnosis) -> Diagnosis:
    return replace(
        diagnosis,
        confidence=round(diagnosis.confidence, 1),
        reasons=tuple(Reason(_numberless(r.text), 0.0) for r in sorted(diagnosis.reasons, key=lambda r: r.text)),
        alternatives=tuple(map(_alternative, sorted(diagnosis.alternatives, key=lambda a: a.class_))),
    )


def _alternative(alternative: Alternative) -> Alternative:
    confidence, why_not = round(alternative.confidence, 1), _numberless(alternative.why_not)
    return replace(alternative, confidence=confidence, why_not=why_not)


def _numberless(text: str) -> str:
    """Take the arithmetic out of a sentence: odds and priors."""
    return re.sub(r"\b\d[\d,.]*(?= times (?:less )?like?l|%)", "N", text)


def check(path: Path, text: str, *, update: bool) -> None:
    """Compare ``text`` with a golden file, or rewrite the file. A failure shows how they differ."""
    if update:
        path.write_text(text, encoding="utf-8")
        return
    want = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text == want:
        return
    names = (f"golden {path.name}", "now")
    rows = list(difflib.unified_diff(want.splitlines(), text.splitlines(), *names, lineterm="", n=2))
    more = [f"... {len(rows) - MAX_DIFF_LINES} more lines"] if len(rows) > MAX_DIFF_LINES else []
    said = f"{path.parent.name}: the report changed; if it is meant: pytest --update-golden"
    pytest.fail("\n".join([said, *rows[:MAX_DIFF_LINES], *more]), pytrace=False)
