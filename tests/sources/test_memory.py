"""Memory: free in several units, meminfo, settings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.model import Scalar
from triage.sources.memory import MEMORY

HEAD = "               total        used        free      shared  buff/cache   available"


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        (
            [
                "$ free -g",
                HEAD,
                "Mem:            1007          41         902           0          63         961",
                "Swap:  0  0  0",
            ],
            {"mem_total_mib": 1031168, "available_percent": 95.43, "swap_total_mib": 0},
        ),
        (
            [HEAD, "Mem:         1031513       41110        2110        4021      988293      985403"],
            {"mem_total_mib": 1031513},
        ),
        (
            [HEAD, "Mem:      1056269312    42096640   923648000     40960    64512000   984064000"],
            {"mem_total_mib": 1031513},
        ),
        (
            [HEAD, "Mem:           1.0Ti        41Gi       902Gi       1.5Gi        63Gi       961Gi"],
            {"mem_total_mib": 1048576, "shared_mib": 1536},
        ),
        (
            [HEAD, "Mem:           251G        1.1G        2.0G        4.0M        3.0G        2.5G"],
            {"available_percent": 1.0},
        ),
        (
            [
                "             total       used       free     shared    buffers     cached",
                "Mem:        257000     120000     137000          0        100        200",
            ],
            {"mem_total_mib": 257000},
        ),
        (
            [
                "MemTotal:       1056269312 kB",
                "MemFree:  1 kB",
                "MemAvailable:    9211040 kB",
                "CommitLimit:    528134656 kB",
                "Committed_AS:   527900000 kB",
            ],
            {"available_percent": 0.87, "committed_percent": 100.0},
        ),
        (["vm.overcommit_memory = 2"], {"setting": "vm.overcommit_memory", "value": 2}),
        (["net.ipv4.ip_local_port_range = 32768\t60999"], {"value": "32768\t60999"}),
        (["vm/swappiness=60"], {"setting": "vm.swappiness", "value": 60}),
    ],
)
def test_rows(lines: list[str], want: dict[str, Scalar]) -> None:
    (row,) = MEMORY.rows(lines)
    assert {name: row.fields.get(name) for name in want} == want


@pytest.mark.parametrize(
    "line", ["kernel.random.uuid = 7", "net.core.foo", "Mem: 1 2 3", "total used", "model.vm.size = 7"]
)
def test_near_misses(line: str) -> None:
    assert list(MEMORY.rows([line])) == []


def test_several_tables_and_the_line_cited() -> None:
    lines = [
        HEAD,
        "Mem:   1031513  41110  2110  4021  988293  985403",
        "",
        HEAD,
        "Mem:   1031513  41110  2110  4021  988293  403",
    ]
    assert MEMORY.sniff("free.txt", "\n".join(lines))
    assert [(r.line, r.fields["mem_available_mib"]) for r in MEMORY.rows(lines)] == [(2, 985403), (5, 403)]


@given(
    st.lists(
        st.text(max_size=80) | st.sampled_from([HEAD, "Mem:", "Mem: x", "MemTotal: 7 kB", "vm.swappiness = "]),
        max_size=20,
    )
)
def test_never_raises(lines: list[str]) -> None:
    MEMORY.sniff("x", "\n".join(lines))
    list(MEMORY.rows(lines))
