"""Starts of a job inside its own log: launchers append over requeues and restarts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from triage.events import START_GROUP
from triage.model import Event


@dataclass(frozen=True, slots=True)
class Attempts:
    """The lines at which each file's attempts start (1-based attempt n starts at ``starts[path][n-1]``)."""

    starts: Mapping[str, Sequence[int]]

    def number(self, path: str, line: int) -> int | None:
        """Return the attempt a line belongs to, None in a file without recognised starts."""
        starts = self.starts.get(path)
        return max(1, bisect_right(starts, line)) if starts else None

    def last(self, path: str) -> int | None:
        """Return the number of the file's last attempt."""
        starts = self.starts.get(path)
        return len(starts) if starts else None

    def end(self, path: str, line: int) -> int | None:
        """Return the first line of the attempt after the one that holds ``line``, None if that is the last."""
        starts = self.starts.get(path) or ()
        following = bisect_right(starts, line)
        return starts[following] if following < len(starts) else None


def find(
    events: Iterable[Event],
    progress: Mapping[str, Sequence[int]],
    restarts: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> Attempts:
    """Cut files into attempts at start banners; banners with no progress between them belong to one start.

    ``progress`` holds, per file, the sorted lines that show training progress; ``restarts`` those of them at which the
    step counter went back: they start an attempt that has no banner.
    """
    banners: dict[str, list[int]] = defaultdict(list)
    failures: dict[str, list[int]] = defaultdict(list)
    for event in events:
        if event.group == START_GROUP:
            for line in event.lines:
                banners[line.path].append(line.line)
        elif event.role.value in ("root", "symptom"):
            for line in event.lines:
                failures[line.path].append(line.line)
    starts = {
        path: _starts(sorted(lines), sorted([*progress.get(path, ()), *failures[path]]))
        for path, lines in banners.items()
    }
    for path, lines in restarts.items():
        starts[path] = _with_restarts(starts.get(path, [1]), lines, progress.get(path, ()))
    return Attempts(starts)


def _with_restarts(starts: Sequence[int], restarts: Iterable[int], progress: Sequence[int]) -> list[int]:
    """Add the restarts that no start stands before, after the last progress of the attempt before."""
    out = list(starts)
    for line in restarts:
        before = bisect_left(progress, line)
        previous = progress[before - 1] if before else 0
        if not any(previous < start <= line for start in out):
            out.append(line)
    return sorted(out)


def _starts(banners: Sequence[int], activity: Sequence[int]) -> list[int]:
    starts = [banners[0]]
    for line in banners[1:]:
        between = bisect_right(activity, line) - bisect_right(activity, starts[-1])
        if between > 0:
            starts.append(line)
    return starts


def number_events(events: Sequence[Event], attempts: Attempts) -> list[Event]:
    """Return the events with the attempt of their first line."""
    return [replace(event, attempt=attempts.number(event.lines[0].path, event.lines[0].line)) for event in events]
