"""Every example of every line layout, through the whole peeler: no other layout may take it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.test_stamps import written
from triage.inspection import line_sources
from triage.model import Scalar
from triage.peel import Peeler
from triage.sources.base import Layout, Parsed
from triage.stamps import STAMPS

SOURCES = line_sources()
LAYOUTS = [(source.name, layout) for source in SOURCES for layout in source.layouts]
CASES = [
    pytest.param(layout, line, expected, id=f"{layout.id}-{number}")
    for _, layout in LAYOUTS
    for number, (line, expected) in enumerate(layout.examples)
]
PEELER = Peeler(SOURCES)


def shown(parsed: Parsed) -> dict[str, Scalar]:
    """All that an example may state: the fields, ``time`` as test_stamps writes it, ``origin``, attributes."""
    return {
        **parsed.attributes,
        "time": written(parsed.stamp),
        "origin": parsed.origin.value,
        "body": parsed.body,
        **{
            name: getattr(parsed, name)
            for name in ("host", "program", "pid", "rank", "local_rank", "task", "gpu", "severity", "uptime_s")
        },
    }


def same_time(stated: Scalar, found: Scalar) -> bool:
    """Fractions may be written short: ``.123`` for ``.123000``."""
    return stated == found or str(stated).replace("000", "") == str(found).replace("000", "")


@pytest.mark.parametrize(("layout", "line", "expected"), CASES)
def test_example(layout: Layout, line: str, expected: Mapping[str, Scalar]) -> None:
    parsed = PEELER.peel(line)
    if not layout.wrapper:
        assert parsed.layout == layout.id
    found = shown(parsed)
    wrong = {
        name: (value, found.get(name))
        for name, value in expected.items()
        if not (same_time(value, found.get(name)) if name == "time" else value == found.get(name))
    }
    assert not wrong


@pytest.mark.parametrize(("source", "layout"), LAYOUTS, ids=[layout.id for _, layout in LAYOUTS])
def test_layout_is_complete(source: str, layout: Layout) -> None:
    assert layout.examples, "a layout without an example is not tested"
    assert layout.stamp is None or layout.stamp in STAMPS
    assert ("(?P<stamp" in layout.pattern) == (layout.stamp is not None)


def test_ids_are_unique() -> None:
    ids = [layout.id for _, layout in LAYOUTS]
    assert len(ids) == len(set(ids))
