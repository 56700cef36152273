"""Limits in the tables of bash, dash, zsh and /proc, and as answers to single questions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.model import Scalar
from triage.sources.ulimit import ULIMIT


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("max locked memory       (kbytes, -l) 8192", {"limit": "memlock", "memlock_kib": 8192}),
        ("max locked memory           (kbytes, -l) unlimited", {"limit": "memlock", "memlock_kib": -1}),
        ("open files                      (-n) 1024", {"limit": "nofile", "nofile": 1024}),
        ("max user processes              (-u) 4126905", {"limit": "nproc", "nproc": 4126905}),
        ("locked memory(kbytes) 64", {"limit": "memlock", "memlock_kib": 64}),
        ("nofiles              1048576", {"limit": "nofile", "nofile": 1048576}),
        ("-l: locked-in-memory size (kbytes)  65536", {"limit": "memlock", "memlock_kib": 65536}),
        ("-n: file descriptors                1024", {"limit": "nofile", "nofile": 1024}),
        (
            "Max locked memory         67108864             67108864             bytes     ",
            {"memlock_kib": 65536, "hard": 65536},
        ),
        (
            "Max open files            1024                 524288               files     ",
            {"nofile": 1024, "hard": 524288},
        ),
        (
            "Max cpu time              unlimited            unlimited            seconds   ",
            {"cpu_time_s": -1, "hard": -1},
        ),
    ],
)
def test_table_lines(line: str, want: dict[str, Scalar]) -> None:
    (row,) = ULIMIT.rows(["", line])
    assert row.line == 2
    assert {name: row.fields.get(name) for name in want} == want


@pytest.mark.parametrize(
    "line",
    [
        "pipe size            (512 bytes, -p) 8",
        "scheduling priority             (-e) 0",
        "time 12",
        "loss (train, -l) low",
        "1024",
        "",
    ],
)
def test_near_misses(line: str) -> None:
    found = [row.fields for row in ULIMIT.rows([line])]
    assert not any("memlock_kib" in fields or "nofile" in fields for fields in found)


def test_single_questions_and_hosts() -> None:
    lines = ["[ops@gpu-12 ~]$ ulimit -l", "65536", "[ops@gpu-13 ~]$ ulimit -Sn", "1024", "[ops@gpu-13 ~]$ echo 7", "7"]
    assert ULIMIT.sniff("x", "\n".join(lines))
    got = [(r.line, r.fields["host"], r.fields["limit"]) for r in ULIMIT.rows(lines)]
    assert got == [(2, "gpu-12", "memlock"), (4, "gpu-13", "nofile")]


def test_pdsh_labels() -> None:
    lines = [f"gpu-{n:02d}: max locked memory       (kbytes, -l) {n}" for n in (1, 2)]
    assert [(r.fields["host"], r.fields["memlock_kib"]) for r in ULIMIT.rows(lines)] == [("gpu-01", 1), ("gpu-02", 2)]


@given(st.lists(st.text(max_size=80), max_size=20))
def test_never_raises(lines: list[str]) -> None:
    ULIMIT.sniff("x", "\n".join(lines))
    list(ULIMIT.rows(lines))
