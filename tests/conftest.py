"""What every test may ask for: our knowledge, loaded once, and reports of bundles written on the spot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path

import pytest

from triage import knowledge as knowledge_module
from triage import pipeline
from triage.knowledge import Knowledge
from triage.report import Report

NOW = datetime(2026, 3, 2, tzinfo=timezone.utc)
Diagnose = Callable[..., Report]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the switch that rewrites golden files."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files of samples/")


@pytest.fixture(scope="session")
def knowledge() -> Knowledge:
    """Return all signatures, playbooks and the compiled plan."""
    return knowledge_module.load(cache=knowledge_module.cache_dir())


@pytest.fixture
def diagnose(knowledge: Knowledge, tmp_path: Path) -> Diagnose:
    """Return a function that writes files (name -> bytes or text) into a bundle and returns its report."""

    def run(files: Mapping[str, bytes | str], options: pipeline.Options | None = None) -> Report:
        bundle = tmp_path / "bundle"
        bundle.mkdir(exist_ok=True)
        for name, content in files.items():
            path = bundle / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return pipeline.postmortem([str(bundle)], knowledge, options or pipeline.Options(year=2026), now=NOW)

    return run
