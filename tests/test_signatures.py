"""Every example of every signature file, by itself, against all other signatures, and with each pattern taken away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

from triage import catalog, knowledge, lint, selftest
from triage.block import Block
from triage.filescan import FileScan, FileScanner
from triage.loader import load_files
from triage.peel import Peeler
from triage.plan import SIGNATURE, Plan, make_plan
from triage.reading import Piece
from triage.signature import Example, Signature
from triage.vocabulary import CLASSES

LOADED = load_files(catalog.signature_files([catalog.data_dir("signatures")]))
SIGNATURES = LOADED.signatures
LINES, ROWS = knowledge.find_sources()
PEELER = Peeler(LINES)

REDUNDANT = {
    ("gpu/nvml-library-mismatch", 0),
    ("host/machine-check-logged", 0),
    ("net/neighbour-table-overflow", 0),
    ("sched/munge-credential-time", 0),
    ("cron/rsync-deleted-checkpoint", 2),
}
"""Patterns whose lines a later pattern of the same file matches as well: none can be lost with them alone."""


def name(signature: Signature) -> str:
    """Return ``domain/id`` of a signature's file."""
    path = Path(signature.path)
    return f"{path.parent.name}/{path.stem}"


DOMAINS = {domain: list(found) for domain, found in groupby(SIGNATURES, lambda s: Path(s.path).parent.name)}


def cases() -> Iterator[tuple[str, Signature]]:
    """Yield (file::n, signature with just that example)."""
    for signature in SIGNATURES:
        examples = [*signature.matches, *signature.near_misses]
        for number, example in enumerate(examples):
            if number < len(signature.matches):
                yield f"{name(signature)}::{number}", replace(signature, matches=(example,), near_misses=())
            else:
                yield f"{name(signature)}::{number}", replace(signature, matches=(), near_misses=(example,))


CASES = dict(cases())


@cache
def plan() -> Plan:
    """Return the compiled scan of all signatures."""
    return make_plan(SIGNATURES, LINES, ROWS)


@cache
def by_source() -> dict[str, set[int]]:
    """Return which row signatures read a source."""
    found: dict[str, set[int]] = {}
    for index, signature in enumerate(SIGNATURES):
        for source in signature.sources if signature.where else ():
            found.setdefault(source, set()).add(index)
    return found


def candidates(signature: Signature, example: Example) -> set[int]:
    """Return the signatures that the scanner would look at for an example."""
    rows = set().union(*(by_source().get(source, set()) for source in signature.sources if signature.where))
    scanned = Block(example.text.encode() + b"\n", 1, PEELER).scanned
    targets = (plan().targets[number] for number, _ in plan().engine.candidates(scanned))
    return rows | {index for kind, index in targets if kind == SIGNATURE}


def holds(signature: Signature, example: Example) -> bool:
    """Say whether a signature matches an example with the fields it promises."""
    got = selftest.captures(signature, example, PEELER, ROWS)
    return got is not None and all(str(got.get(field)) == str(want) for field, want in example.fields.items())


def scanned(text: str) -> set[str]:
    """Return the ids that the scanner reports for a text."""
    scan = FileScanner(plan()).scan(FileScan("sample.log"), [Piece(text.encode(), 1)])
    return {signature for signature, _ in scan.tallies}


def test_every_file_loads() -> None:
    """No file of ours has an author's mistake."""
    assert [str(problem) for problem in LOADED.problems] == []
    assert len(SIGNATURES) >= 800


@pytest.mark.parametrize("case", CASES)
def test_example(case: str) -> None:
    """Match lines match with their fields; near misses do not."""
    assert [str(problem) for problem in selftest.check(CASES[case], PEELER, ROWS)] == []


@pytest.mark.parametrize("domain", DOMAINS)
def test_lint_is_clean(domain: str) -> None:
    """Our own files keep our manners."""
    assert [str(problem) for problem in lint.check(DOMAINS[domain], SIGNATURES)] == []


@pytest.mark.parametrize("domain", DOMAINS)
def test_scanner_finds_every_example(domain: str) -> None:
    """What confirmation accepts, the scan has proposed."""
    position = {s.id: index for index, s in enumerate(SIGNATURES)}
    missed = [
        f"{name(s)}: {e.text[:80]}"
        for s in DOMAINS[domain]
        for e in s.matches
        if position[s.id] not in candidates(s, e)
    ]
    assert missed == []


@pytest.mark.parametrize("domain", DOMAINS)
def test_example_belongs_to_one_signature(domain: str) -> None:
    """Each example is matched by its own signature only, unless one of the two lists the overlap."""
    shared = []
    for signature in DOMAINS[domain]:
        for example in signature.matches:
            for index in sorted(candidates(signature, example)):
                other = SIGNATURES[index]
                listed = other is signature or other.id in signature.overlaps or signature.id in other.overlaps
                if not listed and selftest.captures(other, example, PEELER, ROWS) is not None:
                    shared.append(f"{name(signature)} <- {name(other)}: {example.text[:80]}")
    assert shared == []


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_pattern_is_needed(domain: str) -> None:
    """Breaking any one pattern makes an example fail."""
    idle = []
    for signature in DOMAINS[domain]:
        for position in range(len(signature.patterns)):
            rest = signature.patterns[:position] + signature.patterns[position + 1 :]
            broken = replace(signature, patterns=rest or ("no line holds this text",))
            if all(holds(broken, example) for example in signature.matches):
                idle.append((name(signature), position))
    assert set(idle) - REDUNDANT == set()


def test_redundant_patterns_are_the_first_to_match_something() -> None:
    """The known exceptions at least match a line before the pattern that makes them redundant."""
    for file, position in REDUNDANT:
        signature = next(s for s in SIGNATURES if name(s) == file)
        before = replace(signature, patterns=signature.patterns[:position] or ("no line holds this text",))
        alone = replace(signature, patterns=(signature.patterns[position],))
        assert any(holds(alone, e) and not holds(before, e) for e in signature.matches), file


@pytest.mark.parametrize("signature", [s for s in SIGNATURES if s.table], ids=lambda s: s.id)
def test_unknown_codes_are_reported(signature: Signature) -> None:
    """A code that no row lists gives the default row under the code's own id."""
    row = signature.resolve("31999")
    assert row.id == f"{signature.id}/31999"
    assert "unknown code 31999" in row.title
    assert row.class_ in (*CLASSES, "none")


@pytest.mark.parametrize(
    ("line", "signature"),
    [
        ("[91234.567890] NVRM: Xid (PCI:0000:3b:00): 999, pid=4242, name=python3, something new", "gpu-xid/999"),
        (
            "[131453.740743] nvidia-nvswitch0: SXid (PCI:0000:85:00.0): 29999, Non-fatal, Link 30 new",
            "nvswitch-sxid/29999",
        ),
        ("srun: error: gpu-12: task 3: Exited with exit code 77", "srun-task-exit-code/77"),
        (
            "node12:43:44 [2] transport/net_ib.cc:1696 NCCL WARN NET/IB : Got completion from peer 192.0.2.27<41234> "
            "with status=97 opcode=0 len=0 vendor err 129 (Send)",
            "nccl-ib-completion-error/97",
        ),
    ],
)
def test_unknown_code_is_not_dropped_by_the_scan(line: str, signature: str) -> None:
    """A line with an unknown code is an event like any other."""
    assert signature in scanned(line)
