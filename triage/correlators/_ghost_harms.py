"""Events, log lines and listings -> harm to training, and its saves, as :mod:`triage.correlators._periodic` wants."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from triage.correlators._ghost_lines import Seen, job_of, seen
from triage.correlators._ghost_listing import Gap, gaps
from triage.correlators._harm import Harm, Write
from triage.correlators.base import Context
from triage.model import Event, Evidence
from triage.schedules import covers, deleted_path, overlaps
from triage.vocabulary import Origin, Role

_STARTS: Final = frozenset({"checkpoint-save-started", "cron-training-save-started"})
_ENDS: Final = frozenset({"checkpoint-saved", "cron-training-save-ended"})
_LOADS: Final = frozenset({"cron-training-load-noted"})
_THEFTS: Final = frozenset({"rsync-deleted", "rsync-deleted-checkpoint", "tmp-cleaner-removed-checkpoint"})
_GONE_FILES: Final = frozenset({"cron-training-file-gone"})
_DAMAGED: Final = "checkpoint-corruption"
_METRIC: Final = frozenset({_DAMAGED, "gradient-explosion"})
_SPEAK: Final = frozenset({Role.ROOT, Role.SYMPTOM, Role.CONFIRMATION})
_JOBS: Final = frozenset({Origin.TRAINING, Origin.GENERIC, Origin.SLURM, Origin.KUBERNETES, Origin.NCCL})
_LOST: Final = re.compile(
    r"no such file|not found|vanish|missing|disappear|stale (?:nfs )?file handle|truncat|unexpected eof"
    r"|end of (?:file|data)|central directory|\bshort(?:er)?\b|incomplete"
    r"|ran out of input|corrupt|invalid header|bad magic|size mismatch",
    re.IGNORECASE,
)
_GONE: Final = re.compile(r"no such file or dir|stale (?:nfs )?file handle|FileNotFoundError|not found", re.IGNORECASE)
_DATA: Final = re.compile(
    r"ckpt|checkpoint|chkpt|shard|snapshot|global_step|iter_\d|step[_-]?\d|epoch[_=-]?\d|train|weights|optim|dataset"
    r"|\.(?:pth?|safetensors|distcp|h5|hdf5|npz|npy|tar|bin|tfrecord|parquet|arrow|idx)\b",
    re.IGNORECASE,
)
_PATH: Final = re.compile(r"(?<![\w.:/-])/(?:[\w.+@=%,-]+/)*[\w.+@=%,-]*\w")
_CODE: Final = re.compile(
    r"\.(?:py|pyc|so|cc|cpp|h|cu|c|sh)(?:\.\d+)*$|/(?:site|dist)-packages/|^/(?:usr|proc|sys|dev)/"
)
_NEAR_LINES: Final = 200


@dataclass(frozen=True, slots=True)
class Damage:
    """Harms with the events they were read from (several harms of a listing have none)."""

    harms: tuple[Harm, ...]
    sources: Mapping[int, Event]  # id(harm) -> event
    writes: tuple[Write, ...]

    def checkpoint_of(self, harm: Harm) -> str | None:
        """Return the checkpoint that a loss is about: the one it names, else the job's last save before it."""
        at = harm.at.at
        if not harm.direct or at is None or (harm.path and not any(overlaps(w.path, harm.path) for w in self.writes)):
            return harm.path if harm.direct and not harm.witness else None
        own = [w for w in self.writes if w.at <= at and w.job == harm.job]
        named = [w for w in own if harm.path and overlaps(w.path, harm.path)]
        return max(named or own, key=lambda w: w.at).path if named or own else harm.path

    def good_checkpoint(self, harms: Sequence[Harm]) -> str | None:
        """Return the newest finished save of a harmed job that no harm is about."""
        jobs, bad = {harm.job for harm in harms}, {self.checkpoint_of(harm) for harm in harms}
        own = [w for w in self.writes if w.job in jobs and w.end is not None and w.path not in bad]
        return max(own, key=lambda w: w.at).path if own else None

    def event_of(self, harm: Harm) -> Event | None:
        """Return the event a harm was read from."""
        return self.sources.get(id(harm))


def damage(context: Context) -> Damage:
    """Collect what went wrong for training and what it saved."""
    writes = saves(context)
    loads = _by_file(seen(context, _LOADS))
    sources: dict[int, Event] = {}
    harms: list[Harm] = []
    for event in context.events:
        harm = _harm(event, loads, writes)
        if harm is not None:
            harms.append(harm)
            sources[id(harm)] = event
    harms.extend(_of_gap(gap, writes) for gap in gaps(context))
    return Damage(tuple(harms), sources, tuple(writes))


def _harm(event: Event, loads: Mapping[str, Sequence[Seen]], writes: Sequence[Write]) -> Harm | None:
    text, place = event.lines[0].text, event.place
    if event.signature in _THEFTS:
        gone = deleted_path(text)
        return _told(event, place.path or gone) if gone else None
    if event.signature in _GONE_FILES:
        return _told(event, place.path, direct=True)
    if event.role not in _SPEAK or event.origin not in _JOBS:
        return None
    if event.signature.startswith("series-") or event.class_ == "gradient-explosion":
        return _metric(event) if event.class_ in _METRIC else None
    return _loss(event, _path(event, loads, writes), writes)


def _loss(event: Event, path: str | None, writes: Sequence[Write]) -> Harm | None:
    """A damaged checkpoint, or any failure whose line says that a file of the training's own data is gone."""
    text = event.lines[0].text
    if event.class_ == _DAMAGED:
        return _told(event, path, direct=_LOST.search(f"{event.title} {text}") is not None)
    is_data = path is not None and (_DATA.search(path) or any(overlaps(path, write.path) for write in writes))
    return _told(event, path, direct=True) if is_data and _GONE.search(text) else None


def _told(event: Event, path: str | None, *, direct: bool = False) -> Harm:
    line, place = event.lines[0], event.place
    return Harm(event.effective, place.host, place.rack, job_of(place, line.path), path, event.title, line, direct)


def _metric(event: Event) -> Harm:
    """A number that went wrong. Its line also holds speeds: only ``what`` may say what kind of harm it is."""
    line, place = event.lines[0], event.place
    what = f"metric {event.fields.get('metric') or 'loss'}"
    return Harm(event.effective, place.host, place.rack, job_of(place, line.path), None, what, replace(line, text=""))


def _path(event: Event, loads: Mapping[str, Sequence[Seen]], writes: Sequence[Write]) -> str | None:
    """Return the path at stake: captured, in the line, or in the last line above that says what was being read."""
    line = event.lines[0]
    named = event.place.path if event.place.path and event.place.path.startswith("/") else None
    if named or (named := path_in(line.text)):
        return named
    above = [s for s in loads.get(line.path, ()) if 0 <= line.line - s.hit.line <= _NEAR_LINES]
    if above:
        return above[-1].field("path")
    words = set(re.split(r"[\s'\",;:]+", line.text))
    of_job = (w for w in reversed(writes) if w.evidence is not None and w.evidence.path == line.path)
    return next((w.path for w in of_job if posixpath.basename(w.path) in words), None)


def path_in(text: str) -> str | None:
    """Return the first absolute path of a line that is no program code."""
    return next((path for path in _PATH.findall(text) if not _CODE.search(path)), None)


def _by_file(lines: Iterable[Seen]) -> dict[str, list[Seen]]:
    found: dict[str, list[Seen]] = defaultdict(list)
    for line in lines:
        found[line.path].append(line)
    for members in found.values():
        members.sort(key=lambda s: s.hit.line)
    return found


def _of_gap(gap: Gap, writes: Sequence[Write]) -> Harm:
    """A listing rarely says which host or job it is about; the save of that directory does."""
    name = posixpath.basename(gap.path)
    if gap.path.startswith("/"):
        save = next((w for w in reversed(writes) if overlaps(w.path, gap.path)), None)
    else:
        save = next((w for w in reversed(writes) if posixpath.basename(w.path) == name), None)
    path = gap.path if gap.path.startswith("/") else save.path if save is not None else None
    host, job = (save.host, save.job) if save is not None else (gap.host, None)
    return Harm(gap.when, gap.host or host, None, job, path, gap.what, gap.evidence, direct=True)


def saves(context: Context) -> list[Write]:
    """Pair lines that begin a save with those that end it, file by file."""
    found: list[Write] = []
    for path, lines in _by_file([*seen(context, _STARTS), *seen(context, _ENDS)]).items():
        found.extend(_pair(path, lines))
    return sorted(found, key=lambda write: write.at)


def _pair(path: str, lines: Sequence[Seen]) -> list[Write]:
    found: list[Write] = []
    for line in lines:
        at, target = line.when.at, line.field("path")
        if at is None:
            continue
        if line.hit.signature.id in _STARTS:
            if target and target.startswith("/"):
                found.append(_write(path, line, at))
            continue
        index = _opened(found, line)
        if index is not None:
            found[index] = replace(found[index], end=at)
        elif target and target.startswith("/"):
            begun = at - timedelta(seconds=float(line.field("seconds") or 0.0))
            found.append(_write(path, line, begun, at))
    return found


def _write(path: str, line: Seen, at: datetime, end: datetime | None = None) -> Write:
    target = (line.field("path") or "").rstrip("/")
    return Write(at, end, line.place.host, job_of(line.place, path), target, line.evidence)


def _opened(writes: Sequence[Write], end: Seen) -> int | None:
    """Return the open save that a line ends: of the path or name it tells, else the last one."""
    open_ = [i for i, write in enumerate(writes) if write.end is None]
    target, text = end.field("path"), end.hit.text
    named = [i for i in open_ if target is not None and covers(writes[i].path, target)]
    named = named or [i for i in open_ if posixpath.basename(writes[i].path) in text.split()]
    return named[-1] if named else open_[-1] if open_ and target is None else None


def original(harm: Harm, event: Event | None) -> Evidence:
    """Return the line as it stands in the file."""
    return event.lines[0] if event is not None else harm.evidence
