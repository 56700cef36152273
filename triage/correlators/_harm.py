"""Harm to training, what training writes, and which kinds of command can do which harm."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from triage.model import Evidence, When
from triage.schedules import Kind, deleted_path, is_readers_complaint

_DEFAULT_SAVE: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Harm:
    """Something that went wrong for training.

    ``what`` says it in words; ``direct`` means that the line itself says vanished, missing, truncated or deleted.
    """

    at: When
    host: str | None
    rack: str | None
    job: str | None
    path: str | None
    what: str
    evidence: Evidence
    direct: bool = False
    weight: float = 1.0

    @property
    def words(self) -> str:
        """All that is said about it."""
        return f"{self.what} {self.evidence.text}"

    @property
    def witness(self) -> str | None:
        """The path that a deleting tool itself says it removed, when this is such a line."""
        return deleted_path(self.evidence.text)

    @property
    def is_harmless(self) -> bool:
        """Whether it is only the complaint of a copying rsync that its source moved on."""
        return is_readers_complaint(self.evidence.text)

    @property
    def sort(self) -> str:
        """One of missing, truncated, corrupt, mismatch, slow, metric, failure."""
        if self.witness is not None:
            return "missing"
        return next((name for name, pattern in _SORTS if pattern.search(self.words)), "failure")


@dataclass(frozen=True, slots=True)
class Write:
    """A save by training: ``saving checkpoint to PATH`` .. ``saved``; ``end`` is None when no line tells."""

    at: datetime
    end: datetime | None
    host: str | None
    job: str | None
    path: str
    evidence: Evidence | None = None

    @property
    def until(self) -> datetime:
        """When it was over, as far as known."""
        return self.end or self.at + _DEFAULT_SAVE


_SORTS: Final = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("mismatch", r"version mismatch|api mismatch|driver/library|nvml|symbol lookup|undefined symbol"),
        (
            "missing",
            r"missing|vanish|not found|no such file|deleted|disappear|stale file handle|\bstale\b|filenotfound",
        ),
        (
            "truncated",
            r"truncat|\bshort(?:er)?\b|incomplete|unexpected eof|end of file|central directory|size mismatch",
        ),
        ("corrupt", r"corrupt|checksum|crc|invalid header|unpickl|bad magic|cannot be (?:read|loaded)|failed to load"),
        ("slow", r"slow|step.?time|throughput|tok/s|stall|latency|straggl|bandwidth"),
        ("metric", r"metric|accuracy|\bacc\b|loss|eval|perplexity|\bppl\b|score|bleu|auc|f1|spike|drop"),
    )
)

_FILES: Final[Mapping[Kind, float]] = MappingProxyType({"delete": 0.7, "overwrite": 0.6, "truncate": 0.6})
# How well an effect explains a sort of harm; pairs that are not listed do not go together.
COMPATIBLE: Final[Mapping[str, Mapping[Kind, float]]] = MappingProxyType(
    {
        "missing": {"delete": 1.0, "unknown": 0.5},
        "truncated": {"delete": 0.8, "overwrite": 0.9, "truncate": 1.0, "unknown": 0.5},
        "corrupt": {"delete": 0.7, "overwrite": 1.0, "truncate": 0.9, "unknown": 0.4},
        "metric": {**_FILES, "unknown": 0.3},
        "failure": {**_FILES, "update": 0.6, "unknown": 0.3},
        "mismatch": {"update": 1.0, "unknown": 0.3},
        "slow": {"read-load": 0.7, "update": 0.3, "delete": 0.3},
    }
)
