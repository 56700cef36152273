"""First characters of a pattern: too many cost time, too few would lose lines."""

from __future__ import annotations

import re

import pytest

from triage.firstchars import first_chars, required_literal
from triage.inspection import line_sources


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"\[x", "["),
        (r"\[?x", "[x"),
        (r"\[{0,2}x", "[x"),
        (r"(?P<a>\d{4})-", "0123456789"),
        (r"(?P<a>\d{0,4})-", "0123456789-"),
        (r"\d|x", "0123456789x"),
        (r"(?:ab|c)d", "ac"),
        (r"(?i:ab)", "aA"),
        (r"(?!x)[ab]", "ab"),
        (r" {0,3}(?P<t>a)", " a"),
        (r"<?[+-]", "<+-"),
    ],
)
def test_listed(pattern: str, expected: str) -> None:
    assert first_chars(pattern) == frozenset(expected)


@pytest.mark.parametrize("pattern", [r"[^a]b", r"\S+", r".", r"a?", r"é"])
def test_any(pattern: str) -> None:
    assert first_chars(pattern) is None


def test_every_example_begins_with_a_listed_character() -> None:
    for source in line_sources():
        for layout in source.layouts:
            listed = first_chars(layout.pattern)
            for line, _ in layout.examples:
                if re.match(layout.pattern, line) and listed is not None:
                    assert line[0] in listed, layout.id


def test_required_literal() -> None:
    assert required_literal(r"[^x]+(?P<p>NCCL) (?:INFO|WARN)") == "NCCL "
    assert required_literal(r"\d+") == ""
