"""Package histories: ``/var/log/apt/history.log``, ``dpkg.log``, ``dnf.rpm.log`` and ``yum.log``.

Row fields: package, arch, old, new, action (install, upgrade, downgrade, remove, purge), at, command, by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from triage.model import Scalar
from triage.sources.base import Row
from triage.vocabulary import Origin

_ACTIONS: Final = ("Install", "Reinstall", "Upgrade", "Downgrade", "Remove", "Purge")
_APT: Final = re.compile(
    r"^(Start-Date|Commandline|Requested-By|End-Date|Error|Install|Reinstall|Upgrade|Downgrade|Remove|Purge): (.*)$"
)
_APT_PACKAGE: Final = re.compile(r"([a-z0-9][a-z0-9+.\-]{0,200})(?::([a-z0-9\-]{1,20}))? \(([^()]{1,300})\)")
_DPKG: Final = re.compile(
    r"^(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<action>install|upgrade|remove|purge) "
    r"(?P<package>[a-z0-9][a-z0-9+.\-]{0,200})(?::(?P<arch>\S{1,20}))? (?P<old>\S{1,100}) (?P<new>\S{1,100})\s*$"
)
_RPM: Final = re.compile(
    r"^(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{0,6}|[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d) "
    r"(?:(?:SUB|D)?DEBUG |INFO )?(?P<action>Installed|Upgraded|Upgrade|Updated|Downgraded|Erased|Removed): "
    r"(?P<nevra>\S{1,300})\s*$"
)
_NEVRA: Final = re.compile(
    r"^(?:\d{1,4}:)?(?P<package>.+?)-(?P<version>(?:\d{1,4}:)?[^-]+-[^-]+?)(?:\.(?P<arch>x86_64|noarch|aarch64|i686))?$"
)
_RPM_ACTIONS: Final = {
    "Installed": "install", "Upgrade": "upgrade", "Updated": "upgrade", "Downgraded": "downgrade", "Erased": "remove",
    "Removed": "remove", "Upgraded": "upgrade",
}  # fmt: skip


def _row(number: int, line: str, fields: dict[str, Scalar]) -> Row:
    known = {name: value for name, value in fields.items() if value is not None and value not in ("", "<none>")}
    return Row("package", number, number, known, line)


def _apt(lines: Sequence[str]) -> Iterator[Row]:
    stanza: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        found = _APT.match(line)
        if found is None:
            stanza = {} if not line.strip() else stanza
        elif found[1] not in _ACTIONS:
            if found[1] == "Start-Date":
                stanza = {}
            stanza[found[1]] = " ".join(found[2].split())
        else:
            for package in _APT_PACKAGE.finditer(found[2]):
                versions = [word.strip() for word in package[3].split(",") if word.strip() != "automatic"] or [""]
                yield _row(number, line, {
                    "package": package[1],
                    "arch": package[2],
                    "old": versions[0] if len(versions) > 1 or found[1] in ("Remove", "Purge") else None,
                    "new": versions[-1] if found[1] not in ("Remove", "Purge") else None,
                    "action": found[1].lower(),
                    "at": stanza.get("Start-Date"),
                    "command": stanza.get("Commandline"),
                    "by": stanza.get("Requested-By"),
                })  # fmt: skip


def _dpkg(lines: Sequence[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if (found := _DPKG.match(line)) is not None:
            yield _row(number, line, dict(found.groupdict()))


def _rpm(lines: Sequence[str]) -> Iterator[Row]:
    """Read rpm transactions; dnf writes ``Upgrade: <new>`` and, later, ``Upgraded: <old>`` for one package."""
    found = [(n, line, m) for n, line in enumerate(lines, 1) if (m := _RPM.match(line)) is not None]
    named = [(n, line, m, nevra) for n, line, m in found if (nevra := _NEVRA.match(m["nevra"])) is not None]
    old = {nevra["package"]: nevra["version"] for _, _, m, nevra in named if m["action"] == "Upgraded"}
    new = {nevra["package"] for _, _, m, nevra in named if m["action"] == "Upgrade"}
    for number, line, match, nevra in named:
        package, replaced = nevra["package"], match["action"] == "Upgraded"
        if replaced and package in new:
            continue
        action = _RPM_ACTIONS[match["action"]]
        gone = replaced or action == "remove"
        yield _row(number, line, {
            "package": package,
            "arch": nevra["arch"],
            "old": nevra["version"] if gone else old.get(package),
            "new": None if gone else nevra["version"],
            "action": action,
            "at": match["at"],
        })  # fmt: skip


@dataclass(frozen=True)
class _History:
    """A package history: a pattern of one of its lines and a reader."""

    name: str
    _line: re.Pattern[str]
    _read: Callable[[Sequence[str]], Iterator[Row]]
    origin: Origin = Origin.DUMP
    triggers: Sequence[str] = ()

    def sniff(self, path: str, head: str) -> bool:
        """Look for one typical line."""
        del path
        return any(self._line.match(line) for line in head.splitlines()[:2000])

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """Yield one row for each package."""
        yield from self._read(lines)


APT_HISTORY = _History("apt-history", re.compile(r"^Start-Date: \d{4}-\d\d-\d\d "), _apt)
DPKG_LOG = _History(
    "dpkg-log", re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (?:status|install|upgrade|startup|configure) "), _dpkg
)
DNF_LOG = _History("dnf-log", _RPM, _rpm)
