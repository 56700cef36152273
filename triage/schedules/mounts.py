"""Paths, and when a path on one host is the same tree as a path on another."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

SHARED_TYPES: Final = frozenset(
    {"nfs", "nfs4", "lustre", "beegfs", "gpfs", "ceph", "cifs", "smb3", "glusterfs", "wekafs", "panfs", "pvfs2", "9p"}
    | {"fuse.ceph", "fuse.glusterfs", "fuse.sshfs", "fuse.juicefs", "fuse.s3fs", "fuse.gcsfuse", "virtiofs"}
)  # fmt: skip

_GLOB: Final = re.compile(r"[*?\[]")
# Trees that every host has for itself: an equal name on two hosts says nothing.
_LOCAL: Final = re.compile(r"/(?:tmp|var|etc|usr|root|boot|opt|dev|run|proc|sys|bin|sbin|lib\w*|srv|local\w*)(?:/|$)")
# nas01:/export/x on /mnt/x type nfs4 (rw,...)
_MOUNT: Final = re.compile(r"^(?P<source>\S+) on (?P<point>/\S*)(?: type (?P<type>[\w.]+))?(?: \((?P<options>.*)\))?")
# nas01:/export/x /mnt/x nfs4 rw,... 0 0
_FSTAB: Final = re.compile(r"^(?P<source>[^#\s]\S*)\s+(?P<point>/\S*)\s+(?P<type>[a-z][\w.]*)\s+(?P<options>\S+)")
# nas01:/export/x  100T 50T 50T 50% /mnt/x
_DF: Final = re.compile(r"^(?P<source>\S+)(?:\s+(?P<type>[a-z]\w*))?(?:\s+[\d.]+\w*){3}\s+\d+%\s+(?P<point>/\S*)$")


@dataclass(frozen=True, slots=True)
class Mount:
    """One row of a mount table."""

    host: str | None
    source: str
    point: str
    fstype: str = ""
    options: str = ""

    @property
    def is_shared(self) -> bool:
        """Whether other hosts can see the same files."""
        return self.fstype in SHARED_TYPES or bool(re.match(r"[\w.,@-]+:/", self.source))


def read_mounts(lines: Iterable[str], host: str | None) -> list[Mount]:
    """Read ``mount``, ``/proc/mounts``, ``fstab`` or ``df`` rows; lines of other shapes are passed over."""
    found = []
    for line in lines:
        match = _MOUNT.match(line.strip()) or _FSTAB.match(line.strip()) or _DF.match(line.strip())
        if match:
            parts = match.groupdict()
            point, options = normalise(parts["point"]), parts.get("options") or ""
            found.append(Mount(host, parts["source"], point, parts["type"] or "", options))
    return found


def normalise(path: str) -> str:
    """Drop doubled and trailing slashes and ``.`` parts; ``..`` is folded."""
    if path[:1] == "/" and path[-1:] not in "/ " and "//" not in path and "/." not in path:
        return path
    clean = posixpath.normpath(path.strip()) if path.strip() else ""
    return "/" + clean.lstrip("/") if clean.startswith("/") else clean


def overlaps(a: str, b: str) -> bool:
    """Say whether one of two absolute paths lies in the other; ``*`` and ``?`` in a part match as in the shell."""
    first, second = normalise(a), normalise(b)
    if not (first.startswith("/") and second.startswith("/")):
        return False
    if not _GLOB.search(first + second):
        a, b = first.rstrip("/") + "/", second.rstrip("/") + "/"
        return a.startswith(b) or b.startswith(a)
    return all(_same(x, y) for x, y in zip(_parts(first), _parts(second), strict=False))


def covers(parent: str, child: str) -> bool:
    """Say whether ``child`` is ``parent`` or lies in it."""
    return overlaps(parent, child) and len(_parts(normalise(parent))) <= len(_parts(normalise(child)))


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _same(a: str, b: str) -> bool:
    return a == b or fnmatchcase(a, b) or fnmatchcase(b, a)


def short(host: str | None) -> str | None:
    """Host name without domain, lower case: bundles mix both forms."""
    if not host:
        return None
    if "." not in host:
        return host.lower()
    return host if re.fullmatch(r"[\d.]+", host) else host.partition(".")[0].lower()


@dataclass(frozen=True, slots=True)
class Location:
    """Where a path really lives: on a server's export, or on the host itself."""

    server: str | None
    path: str
    is_known: bool  # a mount table told


def locate(host: str | None, path: str, mounts: Sequence[Mount]) -> Location:
    """Follow the longest mount point of ``host`` that holds ``path``."""
    own = [m for m in mounts if short(m.host) == short(host)]
    best = max((m for m in own if covers(m.point, path)), key=lambda m: len(m.point), default=None)
    if best is None or not best.is_shared:
        return Location(short(host), normalise(path), bool(own))
    rest = "/".join(_parts(normalise(path))[len(_parts(best.point)) :])
    server, colon, export = best.source.rpartition(":")
    if not colon or not export.startswith("/"):
        # "beegfs_nodev" names no file system: the options or the mount point must tell two of them apart.
        return Location(f"{best.source}|{best.point}", "/" + rest, True)
    return Location(short(server), normalise(f"{export}/{rest}"), True)


def same_tree(a: tuple[str | None, str], b: tuple[str | None, str], mounts: Sequence[Mount]) -> float:
    """How surely two (host, path) pairs overlap on the same disk, 0 to 1.

    1: same host, or one export by the mount tables. 0.7: one host is unknown, or one table shows a shared mount there.
    0.5: equal names on two hosts without a mount table, outside the trees that every host has for itself.
    """
    first, second = locate(*a, mounts), locate(*b, mounts)
    if first.server is not None and first.server == second.server:
        return float(overlaps(first.path, second.path))
    if not overlaps(a[1], b[1]):
        return 0.0
    if first.server is None or second.server is None:
        return 0.7
    if (first.is_known and second.is_known) or _LOCAL.match(a[1]):
        return 0.0
    shared = [m for m in mounts if m.is_shared and short(m.host) in {short(a[0]), short(b[0])}]
    if any(covers(m.point, a[1]) or covers(m.point, b[1]) for m in shared):
        return 0.7
    return 0.0 if first.is_known or second.is_known else 0.5
