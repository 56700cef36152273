"""RDMA ports: ibstat, ibstatus, ibv_devinfo, ``rdma link``, ibdev2netdev, sysfs trees. One row per port.

Rows carry ``nic, port, state, phys_state, rate_gbps, link_layer, active_mtu, max_mtu, sm_lid, lid, firmware, netdev``
as far as the tool tells; states are in the words of ibstat whatever the tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from triage.model import Scalar
from triage.sources._dumps import Line, parts, whole
from triage.sources.base import Row
from triage.vocabulary import Origin

_STATES: Final = {
    "1": "Down", "2": "Initializing", "3": "Armed", "4": "Active", "5": "Active",
    "down": "Down", "init": "Initializing", "initializing": "Initializing", "initialize": "Initializing",
    "armed": "Armed", "active": "Active", "nop": "No state change",
}  # fmt: skip
_PHYSICAL: Final = {
    "1": "Sleep", "2": "Polling", "3": "Disabled", "4": "PortConfigurationTraining", "5": "LinkUp",
    "6": "LinkErrorRecovery", "7": "PhyTest", "sleep": "Sleep", "polling": "Polling", "disabled": "Disabled",
    "linkup": "LinkUp",
    "portconfigurationtraining": "PortConfigurationTraining", "linkerrorrecovery": "LinkErrorRecovery",
    "phytest": "PhyTest",
}  # fmt: skip
_NIC: Final = r"[A-Za-z][\w.-]{1,31}"


def _word(text: str, table: dict[str, str]) -> str | None:
    """Return ibstat's word for ``4: ACTIVE``, ``PORT_ACTIVE (4)``, ``LINK_UP``, ``LinkUp``."""
    text = text.strip().strip("\"'").removeprefix("PORT_")
    number, _, rest = text.partition(":")
    for candidate in (rest, text.partition("(")[0], number):
        key = re.sub(r"[\s_]", "", candidate).lower()
        if key in table:
            return table[key]
    return text or None


def _gbps(text: str) -> int | float | None:
    found = re.match(r"^\s*[\"']?(\d{1,5}(?:\.\d+)?)", text)
    return whole(float(found[1])) if found else None


def _integer(text: str) -> int | None:
    try:
        return int(text.split(maxsplit=1)[0], 0)
    except (ValueError, IndexError):
        return None


@dataclass
class _Port:
    """A port while its lines are read. ``line`` is the line of its state."""

    kind: str
    nic: str
    port: int
    start: int
    end: int
    line: int = 0
    fields: dict[str, Scalar] = field(default_factory=dict)
    text: str = ""

    def put(self, name: str, value: Scalar, line: Line) -> None:
        self.end = max(self.end, line.number)
        if value is not None:
            self.fields[name] = value
        if name == "state" or not self.line:
            self.line, self.text = line.number, line.text

    def row(self, host: str | None) -> Row:
        fields: dict[str, Scalar] = {"nic": self.nic, "port": self.port, **self.fields}
        if host is not None:
            fields["host"] = host
        return Row(self.kind, self.line or self.start, self.end, fields, self.text)


_IBSTAT_CA: Final = re.compile(rf"^\s*(?:CA|Switch|Router|RNIC):? '({_NIC})'")
_IBSTAT_PORT: Final = re.compile(r"^\s*Port (\d{1,3}):\s*$")
_PAIR: Final = re.compile(r"^\s*([A-Za-z][\w ]{1,30}?)\s*:\s*(.*?)\s*$")


def _ibstat(lines: Sequence[Line]) -> Iterator[_Port]:
    nic, firmware, port = None, None, None
    for line in lines:
        if (found := _IBSTAT_CA.match(line.text)) is not None:
            if port:
                yield port
            nic, firmware, port = found[1], None, None
        elif nic and (found := _IBSTAT_PORT.match(line.text)) is not None:
            if port:
                yield port
            port = _Port("ibstat", nic, int(found[1]), line.number, line.number)
            if firmware:
                port.fields["firmware"] = firmware
        elif nic and (found := _PAIR.match(line.text)) is not None:
            key, value = found[1].lower(), found[2]
            if key == "firmware version":
                firmware = value
            elif port is not None:
                _ibstat_field(port, key, value, line)
    if port:
        yield port


def _ibstat_field(port: _Port, key: str, value: str, line: Line) -> None:
    readers: dict[str, tuple[str, Callable[[str], Scalar]]] = {
        "state": ("state", lambda v: _word(v, _STATES)),
        "physical state": ("phys_state", lambda v: _word(v, _PHYSICAL)),
        "phys state": ("phys_state", lambda v: _word(v, _PHYSICAL)),
        "phys_state": ("phys_state", lambda v: _word(v, _PHYSICAL)),
        "rate": ("rate_gbps", _gbps),
        "base lid": ("lid", _integer),
        "port_lid": ("lid", _integer),
        "sm lid": ("sm_lid", _integer),
        "sm_lid": ("sm_lid", _integer),
        "link layer": ("link_layer", str),
        "link_layer": ("link_layer", str),
        "active_mtu": ("active_mtu", _integer),
        "max_mtu": ("max_mtu", _integer),
    }
    if key in readers:
        name, read = readers[key]
        port.put(name, read(value), line)


_STATUS_HEAD: Final = re.compile(rf"^\s*Infiniband device '({_NIC})' port (\d{{1,3}}) status:", re.IGNORECASE)
_RDMA_LINK: Final = re.compile(
    rf"^\s*(?:\d+/\d+: |link )?({_NIC})/(\d{{1,3}}):? state (\w+) physical_state (\w+)(?:.*? netdev (\S+))?"
)
_IBDEV: Final = re.compile(rf"^\s*({_NIC}) port (\d{{1,3}}) (?:\(.{{0,80}}\) )?==> (\S+) \((\w+)\)")
_SYSFS: Final = re.compile(
    rf"infiniband/({_NIC})/ports/(\d{{1,3}})/(state|phys_state|rate|link_layer|sm_lid|lid)\"?\s*[:=]\s*(.{{1,80}})$"
)


def _ibstatus(lines: Sequence[Line]) -> Iterator[_Port]:
    current, tree = None, dict[tuple[str, int], _Port]()
    for line in lines:
        text = line.text
        if (found := _STATUS_HEAD.match(text)) is not None:
            if current:
                yield current
            current = _Port("ibstatus", found[1], int(found[2]), line.number, line.number)
        elif (found := _RDMA_LINK.match(text)) is not None:
            port = _Port("ibstatus", found[1], int(found[2]), line.number, line.number)
            port.put("state", _word(found[3], _STATES), line)
            port.put("phys_state", _word(found[4], _PHYSICAL), line)
            port.put("netdev", found[5], line)
            yield port
        elif (found := _IBDEV.match(text)) is not None:
            port = _Port("ibstatus", found[1], int(found[2]), line.number, line.number)
            port.put("netdev", found[3], line)
            port.put("netdev_state", found[4], line)
            yield port
        elif (found := _SYSFS.search(text)) is not None:
            key = (found[1], int(found[2]))
            port = tree.setdefault(key, _Port("ibstatus", *key, line.number, line.number))
            value = re.sub(r'\\n|[",]', "", found[4]).strip()
            _ibstat_field(port, {"lid": "base lid"}.get(found[3], found[3]), value, line)
        elif current and (found := _PAIR.match(text)) is not None:
            _ibstat_field(current, found[1].lower(), found[2], line)
    yield from tree.values()
    if current:
        yield current


_HCA: Final = re.compile(rf"^\s*hca_id:\s*({_NIC})")
_SPEEDS: Final = re.compile(r"^\s*(active_(?:width|speed)):\s*(\d{1,4}(?:\.\d+)?)")


def _devinfo(lines: Sequence[Line]) -> Iterator[_Port]:
    nic, firmware, port = None, None, None
    for line in lines:
        if (found := _HCA.match(line.text)) is not None:
            if port:
                yield _with_rate(port)
            nic, firmware, port = found[1], None, None
        elif nic and (found := _PAIR.match(line.text)) is not None:
            key, value = found[1].lower(), found[2]
            if key == "fw_ver":
                firmware = value
            elif key == "port" and value.isdigit():
                if port:
                    yield _with_rate(port)
                port = _Port("ibv_devinfo", nic, int(value), line.number, line.number)
                if firmware:
                    port.fields["firmware"] = firmware
            elif port is not None:
                if (speed := _SPEEDS.match(line.text)) is not None:
                    port.put(speed[1], float(speed[2]), line)
                _ibstat_field(port, key, value, line)
    if port:
        yield _with_rate(port)


def _with_rate(port: _Port) -> _Port:
    width, speed = port.fields.pop("active_width", None), port.fields.pop("active_speed", None)
    if isinstance(width, float) and isinstance(speed, float):
        port.fields["rate_gbps"] = whole(round(width * speed, 1))
        port.fields["width"] = int(width)
    return port


class _Ports:
    """A tool that prints the state of ports."""

    origin = Origin.DUMP
    triggers: tuple[str, ...] = ()

    def __init__(self, name: str, mark: str, read: Callable[[Sequence[Line]], Iterator[_Port]]) -> None:
        self.name = name
        self._mark = re.compile(mark, re.MULTILINE | re.IGNORECASE)
        self._read = read

    def sniff(self, path: str, head: str) -> bool:
        """See :class:`triage.sources.base.RowSource`."""
        return self._mark.search(head) is not None

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """See :class:`triage.sources.base.RowSource`."""
        for host, members in parts(lines):
            for port in self._read(members):
                yield port.row(host)


IBSTAT = _Ports("ibstat", rf"^(?:[\w.-]{{1,64}}: ?)?\s*(?:CA|Router):? '{_NIC}'", _ibstat)
IBSTATUS = _Ports(
    "ibstatus",
    rf"Infiniband device '{_NIC}' port|^\s*(?:\d+/\d+: |link )?{_NIC}/\d:? state \w+ physical_state|"
    rf"^\s*{_NIC} port \d+ (?:\(.{{0,80}}\) )?==> \S+ \(|"
    rf"infiniband/{_NIC}/ports/\d+/(?:state|phys_state|rate)\"?\s*[:=]",
    _ibstatus,
)
IBV_DEVINFO = _Ports("ibv_devinfo", rf"^(?:[\w.-]{{1,64}}: ?)?\s*hca_id:\s*{_NIC}", _devinfo)
