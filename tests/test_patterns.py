"""Patterns are parsed once and rewritten so that the rewritten form finds at least what the pattern finds."""

from __future__ import annotations

import re

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.engine import compile_mistake
from triage.patterns import PatternSyntaxError, probe_forms, rg_form, scan_form, unbounded_gaps


@pytest.mark.parametrize(
    ("pattern", "form"),
    [
        (r"^NVRM: Xid (?P<xid>\d+).*$", r"NVRM: Xid (?:\d)"),
        (r"step \d{3,9}", r"step \d"),
        (r"killed(?: by (?P<who>\S+))?", r"killed"),
        (r"foo(?:bar|baz.*)", r"foo(?:bar|baz)"),
        (r"(?i)out of memory(?!x)", r"(?i)out of memory"),
        (r"a\.b{literal}", r"a\.b{literal}"),
        (r"x.{0,400}y", r"x.*y"),
        (r"[^\]]x+y", r"[^\]]x+y"),
        (r"end\b", r"end"),
    ],
)
def test_scan_form_is_widened_and_cut(pattern: str, form: str) -> None:
    assert scan_form(pattern) == form


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"(?:x|y*)", "can match without any fixed text"),
        (r"a*+b", "possessive"),
        (r"(?>ab)c", "only"),
        (r"(abc", "unterminated group"),
        (r"abc)", "unbalanced"),
        (r"[abc", "unterminated character class"),
        (r"ab\K", "not supported"),
        (r"(a)\1", "not supported"),
        (r"abc\\"[:-1], "ends in a backslash"),
        (r"*a", "nothing to repeat"),
    ],
)
def test_unsupported_syntax_is_named(pattern: str, message: str) -> None:
    with pytest.raises(PatternSyntaxError, match=message):
        scan_form(pattern)


def test_only_unbounded_dots_inside_a_pattern_count_as_gaps() -> None:
    assert list(unbounded_gaps(r"a.*b(?P<x>\d+).{0,40}c.*")) == [".*"]


ATOMS = st.sampled_from(["a", "b", r"\d", "[ab]", "(?:ab|b)", r"(?P<x>a)", ".", r"\.", "(?=a)", "^", "$", r"\b"])
PATTERNS = st.lists(st.tuples(ATOMS, st.sampled_from(["", "?", "*", "+", "{2}", "{1,3}"])), min_size=1, max_size=6).map(
    lambda parts: "x" + "".join(atom + ("" if atom in ("^", "$", r"\b", "(?=a)") else q) for atom, q in parts)
)


@settings(max_examples=200, deadline=None)
@given(PATTERNS, st.text("abx1. ", max_size=12))
def test_scan_form_finds_whatever_the_pattern_finds(pattern: str, line: str) -> None:
    try:
        full = regex.compile(pattern, regex.ASCII)
    except regex.error:
        return
    if full.search(line):
        assert re.search(scan_form(pattern), line)


@settings(max_examples=100, deadline=None)
@given(PATTERNS)
def test_scan_forms_compile_for_the_scanner(pattern: str) -> None:
    try:
        form = scan_form(pattern)
    except PatternSyntaxError:
        return
    mistake = compile_mistake(form)
    assert mistake is None or "can never match" in mistake


@settings(max_examples=200, deadline=None)
@given(PATTERNS, st.text("abx1. ", max_size=12))
def test_every_match_holds_one_of_the_probes(pattern: str, line: str) -> None:
    try:
        full = regex.compile(pattern, regex.ASCII)
        probes = probe_forms(pattern)
    except (regex.error, PatternSyntaxError):
        return
    if full.search(line):
        assert any(re.search(probe, line) for probe in probes)


@pytest.mark.parametrize(
    ("pattern", "probes"),
    [
        (r"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9a-f:]+)\): 79\b", [r"NVRM: Xid \("]),
        (r"(?i)fatal error .{0,40}(?:left|right)hand", ["(?i)fatal error "]),
        (r"\d+ (?:blocked for more than|waiting longer than) \d+", ["blocked for more than", "waiting longer than"]),
        (r"[a-z]+: oom", [r"[a-z]+: oom"]),
    ],
)
def test_probes_are_the_longest_fixed_text(pattern: str, probes: list[str]) -> None:
    assert probe_forms(pattern) == probes


def test_ripgrep_form_has_no_look_arounds_or_names() -> None:
    assert rg_form(r"(?<!x)foo(?P<a>\d)(?!y)") == r"foo(?:\d)"
