"""Space and mounts: ``df`` (sizes, inodes), ``mount``, ``/proc/mounts``, mountinfo, ``findmnt``, fstab."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from triage.model import Scalar
from triage.sources._dumps import Line, parts, whole
from triage.sources.base import Row
from triage.vocabulary import Origin

_SIZE: Final = r"(?:\d{1,20}(?:[.,]\d{1,3})?(?:[KMGTPEZkmgtpez]i?B?|B)?|-)"
_NUMBERS: Final = (
    rf"(?:(?P<fstype>[a-z][\w.-]{{1,20}})\s+)?(?P<size>{_SIZE})\s+(?P<used>{_SIZE})\s+(?P<avail>-?{_SIZE})"
    r"\s+(?P<percent>\d{1,3}%|-)\s+(?P<mount>/.{0,1000}?)\s*$"
)
_TAIL: Final = re.compile(rf"^\s*{_NUMBERS}")
_ROW: Final = re.compile(rf"^(?P<filesystem>\S.{{0,500}}?)\s+{_NUMBERS}")
_HEADER: Final = re.compile(
    r"^\s*(?:Filesystem|Dateisystem|Sys\. de fichiers|S\.ficheros|文件系统)\s.*(?:%|Capacity|Mounted on)"
)
_COMMAND: Final = re.compile(r"(?:^|[$#%>;&|`+]\s*|/)df(?P<options>(?:\s+-{1,2}[\w=,-]+)*)(?=\s|$|[|;)'\"])")
_UNIT: Final = re.compile(r"(?P<number>\d+)?(?P<letter>[KMGT])?(?:i?B)?-(?:blocks|Blöcke|blocs)", re.IGNORECASE)
_WRAPPED: Final = re.compile(r"^\S{10,500}\s*$")
_POWER: Final = {"b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6, "z": 7}


def _mib(text: str, block: float) -> int | float | None:
    """Return MiB for ``1.8T``, ``611G``, ``0`` or a count of ``block``-byte blocks; None for ``-``."""
    found = re.match(r"^(-?\d+(?:[.,]\d+)?)([A-Za-z]?)", text)
    if found is None:
        return None
    amount = float(found[1].replace(",", "."))
    scale = 1024.0 ** _POWER.get(found[2].lower(), 0) if found[2] else block
    return whole(round(amount * scale / 1048576, 3))


def _block(header: str) -> float:
    """Return the bytes of a block from a header such as ``1K-blocks``, ``1024-blocks``, ``1M-blocks``."""
    found = _UNIT.search(header)
    if found is None:
        return 1024.0
    number = float(found["number"] or 1)
    return number * 1024.0 ** _POWER.get((found["letter"] or "b").lower(), 0)


class _Table:
    """What the header or the command above the rows told: unit and kind of the numbers."""

    def __init__(self) -> None:
        self.block = 1024.0
        self.inodes = False

    def read(self, text: str) -> bool:
        """Take in a header or command line; say whether ``text`` was one."""
        if _HEADER.match(text):
            self.inodes = bool(re.search(r"\b(?:Inodes|IUse%|I-?nodes)", text, re.IGNORECASE))
            self.block = _block(text)
            return True
        if (command := _COMMAND.search(text[:400])) is not None and not _ROW.match(text):
            letters = "".join(re.findall(r"(?:^|\s)-([A-Za-z]+)", command["options"]))
            self.inodes = "i" in letters or "--inodes" in command["options"]
            self.block = 1048576.0 if "m" in letters else 1024.0
            return True
        return False


def _df_rows(lines: Sequence[str]) -> Iterator[tuple[bool, Row]]:
    for host, members in parts(lines):
        table, pending = _Table(), None
        for line in members:
            if table.read(line.text):
                pending = None
                continue
            found = _ROW.match(line.text)
            first, text = line.number, line.text
            if found is None and pending is not None and _TAIL.match(line.text) is not None:
                first, text = pending.number, f"{pending.text.strip()} {line.text.strip()}"
                found = _ROW.match(text)
            pending = line if found is None and _WRAPPED.match(line.text) else None
            if found is not None:
                yield table.inodes, _df_row(found, table, host, (first, line.number), text)


def _df_row(found: re.Match[str], table: _Table, host: str | None, span: tuple[int, int], text: str) -> Row:
    mount = found["mount"]
    fields: dict[str, Scalar] = {"mount": mount, "path": mount, "filesystem": found["filesystem"].strip()}
    if host is not None:
        fields["host"] = host
    if found["fstype"]:
        fields["fstype"] = found["fstype"]
    if found["percent"] != "-":
        fields["use_percent"] = int(found["percent"][:-1])
    names = ("inodes", "inodes_used", "inodes_free") if table.inodes else ("size_mib", "used_mib", "available_mib")
    for name, part in zip(names, ("size", "used", "avail"), strict=True):
        value = _mib(found[part], 1048576.0 if table.inodes else table.block)
        if value is not None:
            fields[name] = whole(round(value * 1048576)) if table.inodes and found[part][-1:].isalpha() else value
    return Row("df-inodes" if table.inodes else "df", span[0], span[1], fields, text)


class _Df:
    """Rows of ``df``; ``inodes`` chooses between ``df -i`` and the rest."""

    origin = Origin.DUMP
    triggers: tuple[str, ...] = ()

    def __init__(self, name: str, *, inodes: bool) -> None:
        self.name = name
        self._inodes = inodes

    def sniff(self, path: str, head: str) -> bool:
        """See :class:`triage.sources.base.RowSource`: a ``df`` header, or rows whose sizes have units."""
        lines = head.split("\n")
        if any(_HEADER.match(line) for line in lines):
            return True
        return any("% /" in line and "\t" not in line and _ROW.match(line) is not None for line in lines)

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """See :class:`triage.sources.base.RowSource`."""
        for inodes, row in _df_rows(lines):
            if inodes is self._inodes:
                yield row


_TYPES: Final = (
    r"(?:ext[234]|xfs|btrfs|zfs|f2fs|vfat|ntfs3?|tmpfs|devtmpfs|ramfs|overlay|aufs|squashfs|iso9660|nfs[34]?|lustre|gpfs|"
    r"beegfs\w*|wekafs|ceph|cifs|smb3|9p|virtiofs|fuse[\w.-]*|autofs|cgroup2?|proc|sysfs|devpts|mqueue|hugetlbfs|pstore|"
    r"securityfs|debugfs|tracefs|configfs|bpf|efivarfs|binfmt_misc|fusectl|rpc_pipefs|nsfs|swap|none|auto|panfs|orangefs|afs)"
)
_MOUNT: Final = re.compile(
    r"^(?P<source>.{1,500}?) on (?P<mount>/.{0,500}?) type (?P<fstype>[\w.-]{1,32}) \((?P<options>[^)]{0,4000})\)"
)
_PROC: Final = re.compile(
    rf"^(?P<source>\S{{1,500}})\s+(?P<mount>/\S{{0,500}}|none|swap)\s+(?P<fstype>{_TYPES})\s+(?P<options>[\w=,.:/+@%*~\[\]\\\"-]{{2,4000}})"
    r"(?:\s+\d+){0,2}\s*(?:#.*)?$"
)
_INFO: Final = re.compile(
    r"^\d+ \d+ \d+:\d+ \S+ (?P<mount>\S+) (?P<options>\S+)(?: \S+:\d+)*"
    r" - (?P<fstype>\S+) (?P<source>\S+)(?: (?P<super>\S+))?"
)
_FINDMNT: Final = re.compile(
    rf"^[\s│├└─|`\\-]{{0,60}}(?P<mount>/\S{{0,500}})\s+(?P<source>\S{{1,500}})\s+(?P<fstype>{_TYPES})\s+(?P<options>\S{{2,4000}})\s*$"
)
_FINDMNT_HEADER: Final = re.compile(r"^\s*TARGET\s+SOURCE\s+FSTYPE\s+OPTIONS", re.MULTILINE)
_MOUNT_NAME: Final = re.compile(r"(?:^|[/_.-])(?:mounts?|mtab|fstab|findmnt|mountinfo)(?:[_.-][\w.-]*)?$", re.I)


class _Mounts:
    """Rows of kind ``mounts``: source, mount, fstype, options (and ``form``: mount, proc, info, findmnt)."""

    name = "mounts"
    origin = Origin.DUMP
    triggers: tuple[str, ...] = ()

    def sniff(self, path: str, head: str) -> bool:
        """See :class:`triage.sources.base.RowSource`."""
        if _FINDMNT_HEADER.search(head):
            return True
        lines = head.split("\n")[:2000]
        if _MOUNT_NAME.search(path):
            return any(_mount(line) for line in lines)
        sure = sum(1 for line in lines if _MOUNT.match(line) or _INFO.match(line))
        return sure >= 1 or sum(1 for line in lines if _PROC.match(line)) >= 3

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """See :class:`triage.sources.base.RowSource`."""
        for host, members in parts(lines):
            for line in members:
                if (row := _mount_row(line, host)) is not None:
                    yield row


def _mount(text: str) -> tuple[str, re.Match[str]] | None:
    if not text.strip() or text.lstrip().startswith("#") or len(text) > 6000:
        return None
    for form, pattern in (("info", _INFO), ("mount", _MOUNT), ("proc", _PROC), ("findmnt", _FINDMNT)):
        if (found := pattern.match(text)) is not None:
            return form, found
    return None


def _unescape(text: str) -> str:
    """Resolve the octal escapes of the kernel (``\\040``)."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)


def _mount_row(line: Line, host: str | None) -> Row | None:
    if (got := _mount(line.text)) is None:
        return None
    form, found = got
    options = found["options"]
    if form == "info" and found["super"]:
        extra = [o for o in found["super"].split(",") if o not in options.split(",") and o not in ("rw", "ro")]
        options = ",".join([options, *extra])
    mount = _unescape(found["mount"])
    fields: dict[str, Scalar] = {
        "source": _unescape(found["source"]), "mount": mount, "path": mount, "fstype": found["fstype"],
        "options": options, "form": form,
    }  # fmt: skip
    if host is not None:
        fields["host"] = host
    return Row("mounts", line.number, line.number, fields, line.text)


DF = _Df("df", inodes=False)
DF_INODES = _Df("df-inodes", inodes=True)
MOUNTS = _Mounts()
