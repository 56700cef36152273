"""Directory listings of checkpoints: shards that are missing, empty or shorter than their peers."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from statistics import median
from typing import Final

from triage.correlators._ghost_lines import rows
from triage.correlators.base import Context
from triage.model import Evidence, When
from triage.sources.base import Row
from triage.vocabulary import TimeBasis

# model-00003-of-00008.pt   shard_3_of_8.bin
_NUMBERED: Final = re.compile(r"^(?P<head>.*?)(?P<k>\d{1,6})[-_]of[-_](?P<n>\d{1,6})(?P<tail>.*)$")
_SAVED: Final = re.compile(r"\.(?:pt|pth|ckpt|bin|safetensors|distcp|h5|hdf5|npz|npy|msgpack|tar)$")
_SHORT: Final = 0.9
_EVEN: Final = 0.01
_LEAST_PEERS: Final = 3


@dataclass(slots=True)
class _Folder:
    """The files of one listed directory."""

    host: str | None
    path: str
    entries: list[tuple[str, Row]] = field(default_factory=list)  # (file of the bundle, row)

    @property
    def last(self) -> datetime | None:
        """When its newest file was written, as far as the listing tells."""
        times = [at for _, row in self.entries if (at := _time(row)) is not None]
        return max(times, default=None)


@dataclass(frozen=True, slots=True)
class Gap:
    """What a listing shows to be wrong with one directory; ``at`` is when its files were written."""

    host: str | None
    path: str
    what: str
    when: When
    evidence: Evidence


def gaps(context: Context) -> list[Gap]:
    """Return the damage that directory listings show."""
    folders: dict[tuple[str | None, str], _Folder] = {}
    for scan, _, row, host in rows(context, {"listing"}):
        path = str(row.fields.get("path") or "")
        folder, name = posixpath.split(path)
        if row.fields.get("entry") == "file" and name and folder:
            folders.setdefault((host, folder), _Folder(host, folder)).entries.append((scan.path, row))
    newest: dict[tuple[str | None, str], datetime] = {}
    for each in folders.values():
        key, last = (each.host, posixpath.dirname(each.path)), each.last
        if last is not None and last > newest.get(key, datetime.min.replace(tzinfo=timezone.utc)):
            newest[key] = last
    found: list[Gap] = []
    for each in folders.values():
        is_newest = each.last is not None and each.last == newest.get((each.host, posixpath.dirname(each.path)))
        found.extend(_of_folder(each, is_newest=is_newest))
    return found


def _time(row: Row) -> datetime | None:
    """Only stamps with a zone: a listing's local time cannot be trusted to a minute otherwise."""
    try:
        at = datetime.fromisoformat(str(row.fields.get("mtime") or ""))
    except ValueError:
        return None
    return at.astimezone(timezone.utc) if at.tzinfo is not None else None


def _of_folder(folder: _Folder, *, is_newest: bool) -> Iterator[Gap]:
    sets: dict[tuple[str, int, str], dict[int, tuple[str, Row]]] = defaultdict(dict)
    for path, row in folder.entries:
        match = _NUMBERED.match(posixpath.basename(str(row.fields["path"])))
        if match and 1 < int(match["n"]) <= 100_000 and _SAVED.search(match["tail"]):
            sets[match["head"], int(match["n"]), match["tail"]][int(match["k"])] = (path, row)
    for (_, total, _), shards in sets.items():
        expected = range(total) if 0 in shards else range(1, total + 1)
        missing = [k for k in expected if k not in shards]
        # The newest save may still be going on: then its last shards are the ones that lack.
        is_tail = missing and missing[0] > max(shards)
        if missing and not (is_newest and is_tail):
            yield _gap(folder, f"{len(missing)} of {total} shards missing", shards[min(shards)])
        for k in _short(shards, total):
            yield _gap(folder, f"shard {k} of {total} truncated, shorter than its peers", shards[k])


def _short(shards: dict[int, tuple[str, Row]], total: int) -> list[int]:
    """Return the shards that are clearly smaller than equal-sized peers; the last of a set may be small by nature."""
    told = {k: row.fields.get("size") for k, (_, row) in shards.items() if k != total}
    sizes = {k: size for k, size in told.items() if isinstance(size, int)}
    if len(sizes) < _LEAST_PEERS:
        return []
    usual = median(sizes.values())
    small = [k for k, size in sizes.items() if size < _SHORT * usual]
    even = [size for k, size in sizes.items() if k not in small and abs(size - usual) <= _EVEN * usual]
    return small if len(even) + len(small) == len(sizes) and len(small) * 2 < len(sizes) else []


def _gap(folder: _Folder, what: str, shard: tuple[str, Row]) -> Gap:
    path, row = shard
    at = folder.last
    when = When(at, 60.0, TimeBasis.STAMP) if at is not None else When()
    return Gap(folder.host, folder.path, what, when, Evidence(path, row.line, row.text, when, folder.host))
