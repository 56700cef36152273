"""Can this scheduled command reach what was harmed: path, mount, host, rack, direction, age of the files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

from triage.correlators._harm import COMPATIBLE, Harm, Write
from triage.schedules import Effect, Mount, Schedule, covers, overlaps, same_tree, short

_TRAINING: Final = re.compile(
    r"ckpt|checkpoint|train|model|weights|\bruns?\b|experiment|\bexp|output|shard|snapshot", re.I
)
_BY_NAME: Final = re.compile(r"backup|sync|clean|purge|mirror|archiv|migrat|prune|tmp|gc|rotate|retention|sweep", re.I)


@dataclass(frozen=True)
class Site:
    """What is known about the place: mount tables, racks, script texts, zones of hosts, the observed span of time."""

    mounts: Sequence[Mount] = ()
    racks: Mapping[str, str] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)
    zones: Mapping[str, str] = field(default_factory=dict)
    window: tuple[datetime, datetime] | None = None
    max_run_s: float = 7200.0

    @cached_property
    def _rack_of(self) -> Mapping[str | None, str]:
        return {short(host): rack for host, rack in self.racks.items()}

    @cached_property
    def _mounts_of(self) -> Mapping[str | None, Sequence[Mount]]:
        found: dict[str | None, list[Mount]] = {}
        for mount in self.mounts:
            found.setdefault(short(mount.host), []).append(mount)
        return found

    def mounts_of(self, *hosts: str | None) -> list[Mount]:
        """The mount tables of some hosts."""
        return [mount for name in {short(host) for host in hosts} for mount in self._mounts_of.get(name, ())]

    def rack(self, host: str | None) -> str | None:
        """Rack of a host, domain or not."""
        return self._rack_of.get(short(host))


@dataclass(frozen=True, slots=True)
class Case:
    """A harm with what is known of its job: its saves, the folders they go to, and the save that was harmed."""

    harm: Harm
    sort: str
    own: tuple[Write, ...]
    folders: tuple[tuple[str | None, str], ...]
    save: Write | None
    kind: tuple[object, ...] = ()  # equal for harms that differ in time only


@dataclass(frozen=True, slots=True)
class Reach:
    """The harm of ``case`` may come from ``effect``, strength 0 to 1; ``by_path``: paths say so, not only the place."""

    case: Case
    effect: Effect
    strength: float
    by_path: bool

    @property
    def harm(self) -> Harm:
        """The harm itself."""
        return self.case.harm


def cases(harms: Sequence[Harm], writes: Sequence[Write]) -> list[Case]:
    """Join every harm with the saves of its job."""
    by_job: dict[tuple[str | None, str | None], tuple[tuple[Write, ...], tuple[tuple[str | None, str], ...]]] = {}
    found = []
    for harm in harms:
        key = harm.job, short(harm.host)
        if key not in by_job:
            own = tuple(write for write in writes if _is_of(harm, write))
            folders = {(write.host or harm.host, posixpath.dirname(write.path) or write.path) for write in own}
            by_job[key] = own, tuple(sorted(folders, key=str))
        own, where = by_job[key]
        save = save_of(harm, own, harm.at.at) if harm.at.at is not None else None
        kind = harm.sort, harm.host, harm.rack, harm.job, harm.path, harm.witness
        found.append(Case(harm, kind[0], own, where, save, kind))
    return found


def reach(schedule: Schedule, effect: Effect, case: Case, site: Site) -> Reach | None:
    """Judge one pair; None when the effect cannot have done it."""
    fits = COMPATIBLE[case.sort].get(effect.kind, 0.0)
    if fits < 0.25:
        return None
    near = _nearness(schedule, case.harm, site)
    if effect.path is None:
        strength = _by_place(schedule, effect, near)
        return Reach(case, effect, strength * fits, False) if strength else None
    if _too_young(effect, case):
        return None
    paths = harm_paths(effect, case)
    here = effect.host or schedule.host
    surest = max((_same(here, effect, where, site) for where in paths), default=0.0)
    if surest:
        # Equal names on other racks may be other disks: the mount tables have not told.
        return Reach(case, effect, (surest if surest == 1.0 else surest * max(near, 0.5)) * fits, True)
    if paths or not _TRAINING.search(effect.path) or near < 0.5 or effect.kind == "read-load":
        return None
    return Reach(case, effect, 0.3 * near * fits, False)


def _by_place(schedule: Schedule, effect: Effect, near: float) -> float:
    """Without a path: software changes on the very host, unreadable programs whose name tells what they are for."""
    if effect.kind == "unknown":
        return 0.3 * near if near >= 0.5 and _BY_NAME.search(schedule.command) else 0.0
    return 0.8 if effect.kind in {"update", "read-load"} and near >= 0.9 else 0.0


def _same(here: str | None, effect: Effect, where: tuple[str | None, str], site: Site) -> float:
    path = effect.path or ""
    if overlaps(path, where[1]) and effect.spares(where[1]):
        return 0.0
    return same_tree((here, path), where, site.mounts_of(here, where[0]))


def _nearness(schedule: Schedule, harm: Harm, site: Site) -> float:
    """1 same host, 0.8 same rack, 0.5 unknown, 0.2 another rack."""
    if not harm.host or not schedule.host:
        return 0.5
    if short(harm.host) == short(schedule.host):
        return 1.0
    mine, theirs = site.rack(schedule.host), harm.rack or site.rack(harm.host)
    if mine is None or theirs is None:
        return 0.5
    return 0.8 if mine == theirs else 0.2


def _is_of(harm: Harm, write: Write) -> bool:
    """Whether the write belongs to the job (or, without job names, to the host) that was harmed."""
    if harm.job and write.job:
        return harm.job == write.job
    return not harm.host or not write.host or short(harm.host) == short(write.host)


def harm_paths(effect: Effect, case: Case) -> Sequence[tuple[str | None, str]]:
    """The (host, path) pairs at stake: the one the harm names, else the folders its job writes to."""
    harm = case.harm
    named = harm.path or harm.witness
    if named and named.startswith("/"):
        return [(harm.host, named)]
    if named and effect.path:
        # rsync names files relative to its destination.
        full = posixpath.join(effect.path, named)
        if any(overlaps(full, folder) for _, folder in case.folders):
            return [(harm.host, full)]
        if harm.witness:
            return [] if case.own else [(effect.host, full)]
    return case.folders


def save_of(harm: Harm, own: Sequence[Write], at: datetime) -> Write | None:
    """The save that was harmed: the last one begun before ``at``, of the path the harm names when it names one."""
    named = harm.path if harm.path and harm.path.startswith("/") else None
    begun = [write for write in own if write.at <= at]
    exact = [write for write in begun if named and overlaps(write.path, named)]
    return max(exact or begun, key=lambda write: write.at, default=None)


def harm_time(case: Case, late: timedelta) -> datetime | None:
    """When the harm was done: a file found missing hours later was lost around its save."""
    at, save = case.harm.at.at, case.save
    if at is None or save is None or not case.harm.direct or not case.harm.path:
        return at
    return save.until if covers(save.path, case.harm.path) and at - save.until > late else at


def _too_young(effect: Effect, case: Case) -> bool:
    """A cleaner that takes files older than a week has not taken last night's checkpoint."""
    at = case.harm.at.at
    if not effect.min_age_s or at is None or case.save is None:
        return False
    return (at - case.save.until).total_seconds() < effect.min_age_s
