"""What the name of a file tells about where its lines come from: host, rank, job, rack. Guesses, weaker than any line."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

_GENERIC = frozenset(
    """
    access app apt audit auth bundle check checkpoint client cluster compute config console container containers
    core cron crontab crontabs data daemon debug default df dist dmesg docker driver dump dumps env err error
    errors etc events fabricmanager files gpu head history host hosts ibstat info infer inference input job jobs
    journal journalctl k8s kern kernel kubectl kubelet latest launcher leader lib listing local log login logs
    main manager master message messages metrics misc monitor mount mounts nccl net network node nodes nohup
    nvidia nvsmi opt out output pod pods proc ps pyspy py-spy rack racks rank ranks report result results root
    rsync run runs sacct sched scheduler script scripts server session sinfo slurm slurmctld slurmd smart smi
    spool srun state stderr stdout storage submission sys syslog system tail temp test tests text tmp top topology
    trace traces train trainer training user usr var watch watchdog worker workers
    """.split()
)
_HOST = re.compile(r"(?<![A-Za-z0-9])([A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*?-?\d+)(?![A-Za-z0-9])")
_NUMBERED_THING = re.compile(
    r"^(?:rank|gpu|task|worker|local|step|epoch|iter|iteration|run|exp|trial|attempt|job|slurm|node_?rank|proc|pid|part|shard|v|h5|cuda|nccl|"
    r"py|python|torch|tp|pp|dp|ep|n|o|s|r|rack|switch|mlx5|nvme|eth|ib|bond|ext|utf|k8s|sm|x86|tests?|gpt)[-_]?\d+$",
    re.I,
)
_NEVER_A_HOST = re.compile(
    r"^(?:rank|local_?rank|step|epoch|iter|iteration|run|exp|trial|attempt|job|slurm|proc|pid|part|shard|ckpt|checkpoint)[-_]?\d+$",
    re.I,
)
_PADDED = re.compile(r"^[A-Za-z]+[A-Za-z-]*0\d+$|^[a-z]+[-_]\d{2,}$|^gpu\d{2,}$|^n\d{3,}$")
_RANK = re.compile(r"(?:^|(?<!local)[._-])(?:rank|global_rank)[._-]?(\d{1,6})(?=$|[._-])", re.I)
_RACK = re.compile(r"^(?:rack|cabinet)[._-]?([a-z]?\d+)$", re.I)
_SLURM_JOB = re.compile(r"^(?:slurm-|job[._-]?)(\d{3,12})(?:[._]\d+)?(?:_\d+_log|_log)?$")
_SUBMITIT = re.compile(r"^(\d{3,12})_\d+_log$")


@dataclass(frozen=True, slots=True)
class PathFacts:
    """What a path suggests. ``host_weight``: 2 a host-like word in the name, 1 a folder that is no common word, 0 nothing."""

    host: str | None = None
    host_weight: int = 0
    rank: int | None = None
    job: str | None = None
    rack: str | None = None


def path_facts(path: str, known_hosts: Collection[str] = ()) -> PathFacts:
    """Read a posix path relative to the bundle. ``known_hosts`` (short names) are taken wherever they occur."""
    parts = PurePosixPath(path).parts
    stem = parts[-1] if parts else ""
    for suffix in (
        ".gz",
        ".bz2",
        ".xz",
        ".zst",
        ".log",
        ".txt",
        ".out",
        ".err",
        ".csv",
        ".json",
        ".yaml",
        ".yml",
        ".trunc",
    ):
        stem = stem.removesuffix(suffix)
    host, weight = _host(parts[:-1], stem, known_hosts)
    rank = _RANK.search(stem)
    rack = next((f"rack{m[1].lower()}" for part in parts[:-1] if (m := _RACK.match(part))), None)
    return PathFacts(host, weight, int(rank[1]) if rank else None, _job(parts[:-1], stem), rack)


def _host(folders: tuple[str, ...], stem: str, known: Collection[str]) -> tuple[str | None, int]:
    lowered: Mapping[str, str] = {name.lower(): name for name in known}
    for part in (*reversed(folders), stem):
        for word in (part, part.split(".")[0], *_HOST.findall(part)):
            if word.lower() in lowered:
                return lowered[word.lower()], 3
    for part in reversed(folders):
        if (word := _host_word(part, whole=True)) is not None:
            return word, 2
    if (word := _host_word(stem)) is not None:
        return word, 2
    for part in reversed(folders):
        if (
            part.lower() not in _GENERIC
            and re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{2,62}", part)
            and not _NUMBERED_THING.match(part)
        ):
            return part, 1
    return None, 0


def _host_word(part: str, *, whole: bool = False) -> str | None:
    """Return a word that looks like a numbered machine name (gpu-07, ip-10-0-0-3), not like a numbered thing (rank3)."""
    words = [part] if whole and _HOST.fullmatch(part) else ([] if whole else _HOST.findall(part))
    for word in words:
        short = re.sub(r"^(?:dmesg|syslog|trace|messages|kern|nccl|smi|ibstat)-", "", word, flags=re.I)
        cut = re.sub(r"-(?:gpu\d|rank\d+)$", "", short, flags=re.I)
        if not re.search(r"\d", cut):
            continue  # the only number is a rank's
        short = cut
        if re.search(r"\d{5,}$", short):
            continue  # a job number
        if _NEVER_A_HOST.match(short):
            continue
        if (
            len(short) >= 3
            and (_PADDED.match(short) or not _NUMBERED_THING.match(short))
            and short.lower() not in _GENERIC
        ):
            return short
    return None


def _job(folders: tuple[str, ...], stem: str) -> str | None:
    for position, part in enumerate(folders):
        if part.lower() == "jobs" and position + 1 < len(folders):
            return folders[position + 1]
    if (found := (_SLURM_JOB.match(stem) or _SUBMITIT.match(stem))) is not None:
        return found[1]
    found = re.match(r"^slurm-([\w.]+)$", stem) or re.search(r"\.[oe](\d{3,})$", stem)
    return found[1] if found else None
