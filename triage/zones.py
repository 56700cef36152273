"""Which zone does a host's clock show? Told by lines that write an offset, ``date`` and ``timedatectl`` outputs."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from triage.sources.base import Parsed
from triage.stamps import zone_offset

_TIME_ZONE: Final = re.compile(
    r"Time ?zone: ([A-Za-z_+-]+(?:/[A-Za-z_+-]+){0,2}) ?(?:\(([A-Z]{2,5})?,? ?([+-]\d{4})\))?"
)
# Layouts whose zero offset is the host's own zone; elsewhere "Z" only says that the writer prefers UTC.
_LOCAL_LAYOUTS: Final = frozenset(
    {"syslog-iso", "syslog-iso-tag", "dmesg-iso", "journal-full", "date-output", "timedatectl"}
)


def find_zone(name: str) -> tzinfo | None:
    """Return the zone of an IANA name, an abbreviation with one meaning, or an offset such as ``+02:00``."""
    offset = zone_offset(name) if name[:1] not in "+-" or re.fullmatch(r"[+-]\d\d(:?\d\d)?", name) else None
    if offset is not None:
        return timezone(timedelta(seconds=offset))
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return None


class Zones:
    """Votes for the zone of each host, and of the bundle as a whole."""

    def __init__(self, fixed: tzinfo | None = None) -> None:
        self.fixed = fixed
        self._named: dict[str | None, tzinfo] = {}
        self._votes: dict[str | None, list[tuple[datetime, int]]] = defaultdict(list)
        self._sorted = False

    def learn(self, host: str | None, parsed: Parsed) -> None:
        """Take what one line says about the zone of ``host``."""
        stamp = parsed.stamp
        if stamp is not None and stamp.offset_s is not None and stamp.has_date and stamp.has_year:
            if stamp.offset_s != 0 or parsed.layout in _LOCAL_LAYOUTS:
                self._votes[host].append((stamp.wall, stamp.offset_s))
        elif "ime zone:" in parsed.body or "imezone:" in parsed.body:
            self._learn_name(host, parsed.body)

    def _learn_name(self, host: str | None, body: str) -> None:
        found = _TIME_ZONE.search(body)
        zone = find_zone(found.group(1)) or (find_zone(found.group(3)) if found.group(3) else None) if found else None
        if zone is not None:
            self._named[host] = zone

    def offset(self, host: str | None, wall: datetime) -> int | None:
        """Return seconds east of UTC at local time ``wall`` of ``host``; None when nothing tells."""
        if self.fixed is not None:
            return _seconds(self.fixed, wall)
        for key in dict.fromkeys((host, None)) if host is not None else (None,):
            if key in self._named:
                return _seconds(self._named[key], wall)
            if self._votes.get(key):
                return self._nearest(key, wall)
        return self._bundle(wall)

    def _nearest(self, host: str | None, wall: datetime) -> int:
        """Offset of the vote nearest in time: a host crosses into and out of summer time."""
        if not self._sorted:
            for votes in self._votes.values():
                votes.sort()
            self._sorted = True
        votes = self._votes[host]
        index = bisect_left(votes, (wall, -(10**6)))
        near = votes[max(0, index - 1) : index + 1]
        return min(near, key=lambda vote: abs(vote[0] - wall))[1]

    def _bundle(self, wall: datetime) -> int | None:
        """Zone of the bundle: only when all hosts that tell agree."""
        named = {_seconds(zone, wall) for zone in self._named.values()}
        if named:
            return named.pop() if len(named) == 1 else None
        offsets = Counter(self._nearest(host, wall) for host, votes in self._votes.items() if votes)
        return next(iter(offsets)) if len(offsets) == 1 else None


def _seconds(zone: tzinfo, wall: datetime) -> int:
    offset = wall.replace(tzinfo=zone).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0
