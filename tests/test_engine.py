"""The fast engine and the plain one agree after confirmation, on any bytes and any block cut."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from triage.engine import HyperscanEngine, ReferenceEngine, build
from triage.filescan import FileScan, FileScanner
from triage.plan import Plan, make_plan
from triage.reading import pieces
from triage.signature import Signature
from triage.vocabulary import Level, Noise, Role, Scope, Status, Strength


def signature(name: str, *patterns: str) -> Signature:
    return Signature(
        id=name, title=name, class_="unknown", role=Role.ROOT, level=Level.HIGH, status=Status.TEST, sources=frozenset({"training"}),
        scope=Scope.JOB, strength=Strength.STRONG, noise=Noise.RARE, patterns=patterns,
    )  # fmt: skip


SIGNATURES = (
    signature("plain", r"out of memory"),
    signature("anchored", r"^rank \d+ died$"),
    signature("gap", r"Killed process (?P<pid>\d+) .{0,20}python"),
    signature("case", r"(?i)fatal error"),
    signature("two", r"abc\b", r"x{2,4}y"),
    signature("class", r"[^a-z]zz"),
)
WORDS = [
    b"out of memory",
    b"rank 3 died",
    b"Killed process 12 (python)",
    b"FATAL Error",
    b"abc",
    b"xxxy",
    b"1zz",
    b"\xff",
    b"\x00",
    b" ",
    b"\r",
    b"\n",
]
TEXTS = st.lists(st.one_of(st.sampled_from(WORDS), st.binary(max_size=4)), max_size=40).map(b"".join)


def hits(plan: Plan, data: bytes, block: int) -> set[tuple[str, int]]:
    scan = FileScanner(plan).scan(FileScan("f"), pieces(io.BytesIO(data), block=block))
    return {(name, hit.line) for (name, _), tally in scan.tallies.items() for hit in tally.hits()}


def plan_of(signatures: Sequence[Signature], *, reference: bool) -> Plan:
    plan = make_plan(signatures, [], [])
    if not reference:
        assert isinstance(plan.engine, HyperscanEngine)
        return plan
    from triage.patterns import scan_form

    return replace(plan, engine=ReferenceEngine([scan_form(p) for s in signatures for p in s.patterns]))


FAST, PLAIN = plan_of(SIGNATURES, reference=False), plan_of(SIGNATURES, reference=True)


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.integers(1, 64))
def test_scanner_equals_reference_on_any_bytes_and_any_cut(data: bytes, block: int) -> None:
    whole = hits(PLAIN, data, 1 << 20)
    assert hits(FAST, data, 1 << 20) == whole
    longest = max((len(line) for line in data.split(b"\n")), default=0)
    if block > longest:
        assert hits(FAST, data, block) == whole


def test_line_numbers_and_counts_survive_block_cuts() -> None:
    data = b"".join(b"line %d\n" % n if n % 7 else b"out of memory %d\n" % n for n in range(1, 1000))
    scan = FileScanner(FAST).scan(FileScan("f"), pieces(io.BytesIO(data), block=64))
    (tally,) = scan.tallies.values()
    assert (scan.lines, tally.count) == (999, 142)
    assert [hit.line for hit in tally.hits()][:3] == [7, 14, 21]


def test_a_line_longer_than_a_block_is_scanned_in_overlapping_pieces() -> None:
    data = b"x" * 150_000 + b" out of memory " + b"y" * 150_000 + b"\nrank 3 died\n"
    assert hits(FAST, data, 65536) == {("plain", 1), ("anchored", 2)}


def test_colour_codes_inside_a_message_do_not_hide_it() -> None:
    assert hits(FAST, b"\x1b[31mout of\x1b[0m memory\n", 4096) == {("plain", 1)}


def test_compiled_patterns_are_cached_privately_and_reused(tmp_path: Path) -> None:
    first = build(["abc"], tmp_path)
    (saved,) = tmp_path.glob("*.hsdb")
    assert saved.stat().st_mode & 0o077 == 0
    assert build(["abc"], tmp_path).candidates(b"xabc") == first.candidates(b"xabc") == [(0, 4)]
    saved.write_bytes(b"rubbish")
    assert build(["abc"], tmp_path).candidates(b"abc") == [(0, 3)]
