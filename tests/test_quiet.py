"""Healthy logs full of look-alikes: no diagnosis from any, and no signature of evidence that hits them in bulk."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

import pytest

from triage import knowledge, pipeline
from triage.filescan import FileScan, FileScanner, base_id
from triage.knowledge import Knowledge
from triage.reading import Piece
from triage.vocabulary import Role

FOLDER = Path(__file__).parent / "quiet"
FILES = sorted(FOLDER.glob("*.log"))
NOW = datetime(2026, 3, 6, tzinfo=timezone.utc)
SHARE = 0.001
EVIDENCE = (Role.ROOT, Role.SYMPTOM)


@cache
def known() -> Knowledge:
    """Return our signatures and playbooks, loaded once."""
    return knowledge.load(cache=knowledge.cache_dir())


@cache
def hits() -> tuple[Counter[str], int]:
    """Return how many lines each signature of evidence hits, and the number of lines."""
    found: Counter[str] = Counter()
    lines = 0
    for path in FILES:
        scan = FileScanner(known().plan).scan(FileScan(path.name), [Piece(path.read_bytes(), 1)])
        lines += scan.lines
        for (signature, _), tally in scan.tallies.items():
            if any(hit.signature.role in EVIDENCE for hit in tally.hits()):
                found[base_id(signature)] += tally.count
    return found, lines


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_no_diagnosis(path: Path) -> None:
    """Each healthy log by itself is silent."""
    report = pipeline.postmortem([str(path)], known(), pipeline.Options(year=2026), now=NOW)
    assert [f"{d.class_}: {d.summary}" for d in report.diagnoses] == []


def test_no_diagnosis_together() -> None:
    """All of them as one bundle are silent as well."""
    report = pipeline.postmortem([str(FOLDER)], known(), pipeline.Options(year=2026), now=NOW)
    assert [f"{d.class_}: {d.summary}" for d in report.diagnoses] == []


def test_no_signature_hits_in_bulk() -> None:
    """No root or symptom signature hits more than 0.1 % of the healthy lines."""
    found, lines = hits()
    assert lines > 2500
    assert {name: count for name, count in found.items() if count > SHARE * lines} == {}
