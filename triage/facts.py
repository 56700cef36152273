"""Frequent lines that give facts and are no evidence: which rank runs where, and how many there are.

They are picked by the scan like metric lines, kept as text (at most ``LIMIT`` a file) and read in bulk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from triage.matching import normalise_pci

LIMIT: Final = 20_000

TRIGGERS: Final[tuple[bytes, ...]] = (
    rb" nranks [0-9]+ cudaDev ",
    rb"Initializing distributed: GLOBAL_RANK: ",
    rb"global_ranks=\[",
    rb"group_world_size=",
    rb"distributed init \(rank ",
    rb"Bootstrap ?: Using ",
)

_NCCL: Final = re.compile(
    r"(?P<host>[^\s:]+):(?P<pid>\d+):\d+ \[(?P<dev>\d+)\] NCCL INFO .*?\brank (?P<rank>\d+) nranks (?P<nranks>\d+) cudaDev (?P<cuda>\d+)"
    r"(?: nvmlDev \d+)?(?: busId (?P<bus>[0-9a-fA-F]+))?.*?(?P<phase>Init (?:START|COMPLETE))?\s*$"
)
_LIGHTNING: Final = re.compile(r"GLOBAL_RANK: (?P<rank>\d+), MEMBER: \d+/(?P<nranks>\d+)")
_GLOBAL: Final = re.compile(r"global_ranks=\[(?P<ranks>[\d, ]*)\]")
_NODES: Final = re.compile(r"group_world_size=(?P<nodes>\d+)")
_TIMM: Final = re.compile(r"distributed init \(rank (?P<rank>\d+)\)")
_ADDRESS: Final = re.compile(
    r"(?P<host>[^\s:]+):\d+:\d+ \[\d+\] NCCL INFO Bootstrap ?: Using (?:\[\d+\])?[\w.-]+:(?P<address>[0-9a-fA-F.:]+?)<\d+>"
)


@dataclass(frozen=True, slots=True)
class Fact:
    """What one line tells; unknown parts are None. ``ready`` is True when the rank finished its start."""

    host: str | None = None
    pid: int | None = None
    gpu: int | None = None
    rank: int | None = None
    world: int | None = None
    pci: str | None = None
    address: str | None = None
    nodes: int | None = None
    ready: bool = False


def read(texts: Iterable[str]) -> Iterator[Fact]:
    """Yield the facts of lines picked by ``TRIGGERS``; lines that say nothing give nothing."""
    for text in texts:
        if (m := _NCCL.search(text)) is not None:
            pci = normalise_pci(m["bus"]) if m["bus"] else None
            ready = m["phase"] == "Init COMPLETE"
            yield Fact(m["host"], int(m["pid"]), int(m["dev"]), int(m["rank"]), int(m["nranks"]), pci, ready=ready)
        elif (m := _ADDRESS.search(text)) is not None:
            yield Fact(host=m["host"], address=m["address"])
        elif (m := _LIGHTNING.search(text)) is not None:
            yield Fact(rank=int(m["rank"]), world=int(m["nranks"]))
        elif (m := _GLOBAL.search(text)) is not None:
            yield from (Fact(rank=int(rank)) for rank in m["ranks"].split(",") if rank.strip().isdigit())
        elif (m := _NODES.search(text)) is not None:
            yield Fact(nodes=int(m["nodes"]))
        elif (m := _TIMM.search(text)) is not None:
            yield Fact(rank=int(m["rank"]))
