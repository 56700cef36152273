"""Seconds since boot to wall time, by lines of the same host that carry both, or an epoch, in the same boot.

Several boots in one file are separate segments and never share an anchor. The kernel's clock drifts seconds a week, so
an anchor is an estimate with an uncertainty.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from triage.sources.base import Parsed

_STEP_BACK_S: Final = 1.0  # per-CPU jitter of microseconds is normal; more is another boot
_SETTLED_S: Final = 120.0  # before that, rsyslog stamps the moment it drained the ring buffer
_GOOD_S: Final = 10.0  # an anchor of the file itself that is better than this needs no other file
_SAME_BOOT_S: Final = 60.0  # two estimates of one boot differ by less
_EPOCHS: Final = (
    (re.compile(r"setting system clock to [^(]{8,40}\((\d{10})\)"), 1.0),
    (re.compile(r"\baudit\((\d{10}(?:\.\d{1,6})?):\d+\)"), 0.5),
    (re.compile(r"PROCESSOR \d+:[0-9a-f]+ TIME (\d{10})\b"), 5.0),
    (re.compile(r"\[sent (\d{10})/real"), 120.0),
)
_HINTS: Final = ("audit(", "setting system clock", " TIME ", "[sent ")
_BTIME: Final = re.compile(r"btime (\d{10})\s*$")


@dataclass
class Segment:
    """One boot inside one file: its first line, and estimates of the boot's epoch with their uncertainty."""

    start: int
    both: list[tuple[float, float]] = field(default_factory=list)  # (uptime, epoch - uptime) of lines with both stamps
    exact: list[float] = field(default_factory=list)  # journal pairs
    other: list[tuple[float, float]] = field(default_factory=list)  # (uncertainty, epoch - uptime)
    marks: set[tuple[float, str]] = field(default_factory=set)  # lines by which two files of a host are matched

    def boot(self) -> tuple[float, float] | None:
        """Return (boot as epoch seconds, uncertainty), by the best kind of anchor there is."""
        if self.exact:
            return median(self.exact), 0.01
        if self.both:
            settled = [offset for uptime, offset in self.both if uptime > _SETTLED_S]
            return (median(settled), 1.0) if settled else (min(offset for _, offset in self.both), 2.0)
        if self.other:
            return min(self.other)[1], min(self.other)[0]
        return None


Log = tuple[str, "str | None"]
"""The lines of one host in one file: a central syslog holds many hosts."""


class BootTimes:
    """Boot segments of every log and what anchors them. ``epoch`` resolves the wall stamp of a line."""

    def __init__(self, epoch: Callable[[str, str | None, Parsed, int], float | None]) -> None:
        self._epoch = epoch
        self._segments: dict[Log, list[Segment]] = {}
        self._hosts: dict[str, str | None] = {}  # of a file's lines that name none
        self._told: dict[str | None, list[float]] = defaultdict(list)  # btime, uptime -s
        self._anchors: dict[tuple[Log, int], tuple[float, float] | None] = {}

    def learn(self, path: str, host: str | None, lines: Iterable[tuple[int, Parsed]]) -> None:
        """Read the sample of one file."""
        self._hosts[path] = host
        last: dict[Log, tuple[float, object]] = {}
        for line_no, parsed in lines:
            log = (path, parsed.host or host)
            if parsed.layout == "journal-boot":
                last = {key: (inf, boot) for key, (_, boot) in last.items()}
            if parsed.uptime_s is None:
                self._learn_told(path, log[1], line_no, parsed)
                continue
            boot_id = parsed.attributes.get("boot_id")
            uptime, known = last.get(log, (-1.0, boot_id))
            segments = self._segments.setdefault(log, [])
            if not segments or parsed.uptime_s < uptime - _STEP_BACK_S or boot_id != known or _boots(parsed, uptime):
                segments.append(Segment(line_no if segments else 0))
            last[log] = (parsed.uptime_s, boot_id)
            self._learn_line(segments[-1], path, log[1], line_no, parsed)

    def _learn_line(self, segment: Segment, path: str, host: str | None, line_no: int, parsed: Parsed) -> None:
        uptime = parsed.uptime_s or 0.0
        segment.marks.add((round(uptime, 6), parsed.body[:80]))
        if parsed.stamp is not None:
            wall = self._epoch(path, host, parsed, line_no)
            if wall is not None and parsed.source == "journal" and "boot_id" in parsed.attributes:
                segment.exact.append(wall - uptime)
            elif wall is not None:
                segment.both.append((uptime, wall - uptime))
        if any(hint in parsed.body for hint in _HINTS):
            for pattern, uncertainty in _EPOCHS:
                found = pattern.search(parsed.body)
                if found:
                    segment.other.append((uncertainty, float(found.group(1)) - uptime))

    def _learn_told(self, path: str, host: str | None, line_no: int, parsed: Parsed) -> None:
        """Boot time by another command: ``btime`` of /proc/stat, ``uptime -s``."""
        text = parsed.body
        if text.startswith("btime "):
            found = _BTIME.match(text)
            if found:
                self._told[host].append(float(found.group(1)))
        elif parsed.stamp is not None and "uptime" in path.rsplit("/", 1)[-1] and not text.strip():
            wall = self._epoch(path, host, parsed, line_no)
            if wall is not None:
                self._told[host].append(wall)

    def wall(self, path: str, host: str | None, line_no: int, uptime_s: float) -> tuple[float, float] | None:
        """Return (epoch seconds, uncertainty) of an uptime on a line that names ``host``; None without an anchor."""
        log = (path, host or self._hosts.get(path))
        segments = self._segments.get(log)
        if not segments:
            return None
        index = max(0, bisect_right([segment.start for segment in segments], line_no) - 1)
        if (log, index) not in self._anchors:
            self._anchors[log, index] = self._anchor(log, index)
        anchor = self._anchors[log, index]
        return None if anchor is None else (anchor[0] + uptime_s, anchor[1])

    def _anchor(self, log: Log, index: int) -> tuple[float, float] | None:
        segment = self._segments[log][index]
        own = segment.boot()
        host = log[1]
        if host is None or (own is not None and own[1] <= _GOOD_S):
            return own
        return self._of_host(segment, host, index == len(self._segments[log]) - 1) or own

    def _of_host(self, segment: Segment, host: str, is_last: bool) -> tuple[float, float] | None:
        """Anchor by other files of the same host: shared lines decide, else the only boot there is."""
        others = [
            other
            for log, segments in self._segments.items()
            if log[1] == host
            for other in segments
            if other is not segment and other.boot() is not None
        ]
        shared = [other for other in others if not other.marks.isdisjoint(segment.marks)]
        boots = [boot for boot in (other.boot() for other in shared or others) if boot is not None]
        if boots and (shared or max(boots)[0] - min(boots)[0] < _SAME_BOOT_S):
            return min(boots, key=lambda boot: boot[1])
        if not boots and is_last and self._told[host]:
            return median(self._told[host]), 2.0
        return None


def median(values: Iterable[float]) -> float:
    """Middle value (the lower one of two); the standard library's costs 10 ms to import."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2]


def _boots(parsed: Parsed, last: float) -> bool:
    return last > _STEP_BACK_S and (parsed.uptime_s or 0.0) < _STEP_BACK_S and parsed.body.startswith("Linux version ")
