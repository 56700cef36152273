"""Counters of RDMA and Ethernet ports: perfquery, ibqueryerrors, sysfs trees, ``rdma statistic``, ``ethtool -S``.

Rows carry ``nic, port, lid, node`` as far as told, one field per counter in the names of sysfs (``symbol_error,
link_downed, port_rcv_errors ...``), ``link_errors`` (their sum over the physical link), ``saturated`` (counters that
stick at their maximum) and ``counters`` (how many there are).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from triage.model import Scalar
from triage.sources._dumps import Line, parts
from triage.sources.base import Row
from triage.vocabulary import Origin

_PERFQUERY: Final = re.compile(
    r"^\s*#\s*Port (?:extended )?counters: (?:Lid|GID|GUID|DR path).{0,80}?(\d{1,6})?\s*port (\d{1,3})", re.I
)
_DOTS: Final = re.compile(r"^\s*([A-Z][A-Za-z0-9]{3,50}):\.{2,60}\s*(\d{1,20})\s*$")
_RDMA: Final = re.compile(r"^\s*link ([\w.-]{2,32})/(\d{1,3}) ((?:[a-z]\w{2,50} \d{1,20} ?){1,200})\s*$")
_PATH: Final = r"infiniband/([\w.-]{2,32})/ports/(\d{1,3})/(?:hw_)?counters/(\w{3,60})"
_TREE: Final = re.compile(_PATH + r"\"?\s*(?:[:=]\s*\"?|\s)\s*(\d{1,20})(?:\\n)?\"?,?\s*$")
_TREE_HEAD: Final = re.compile(rf"^==> (?:\S*/)?{_PATH} <==")
_ETHTOOL_HEAD: Final = re.compile(r"^\s*NIC statistics:\s*$")
_ETHTOOL: Final = re.compile(r"^\s+\[?\d{0,4}\]?:?\s{0,4}([A-Za-z][\w .-]{2,60}?):\s*(\d{1,20})\s*$")
_ETHTOOL_COMMAND: Final = re.compile(r"\bethtool\s+(?:-S|--statistics)\s+([\w.@-]{2,15})")
_ERRORS_HEAD: Final = re.compile(r"^\s*Errors for (?:0x[0-9a-f]{4,16} )?\"([^\"]{1,80})\"")
_ERRORS_PORT: Final = re.compile(r"^\s*GUID 0x[0-9a-f]{4,16} port (\d{1,3}|ALL): ((?:\[[^\]]{3,80}\]\s*){1,40})")
_ERRORS_ITEM: Final = re.compile(r"\[(\w{4,60}) == (\d{1,20})[^\]]{0,40}\]")
_QUEUE: Final = re.compile(r"^(?:rx|tx|ch|q|queue|xdp)_?\d+_|^(?:rx|tx)_queue_\d+|^\[\d+\]")
_FILE: Final = re.compile(r"/ports/\d{1,3}/(?:hw_)?counters/\w{3,60}$")

_LINK: Final = frozenset({
    "symbol_error", "link_error_recovery", "link_downed", "local_link_integrity_errors", "rx_symbol_err_phy",
    "rx_pcs_symbol_err_phy", "link_down_events_phy", "rx_crc_errors_phy", "module_bus_stuck", "module_bad_shorted",
})  # fmt: skip
_WIDTH: Final = {
    "symbol_error": 16, "link_error_recovery": 8, "link_downed": 8, "port_rcv_errors": 16,
    "local_link_integrity_errors": 4, "port_rcv_remote_physical_errors": 16, "port_rcv_switch_relay_errors": 16,
    "port_xmit_discards": 16,
    "port_xmit_constraint_errors": 8, "port_rcv_constraint_errors": 8, "excessive_buffer_overrun_errors": 4,
    "vl15_dropped": 16,
}  # fmt: skip
_ALIASES: Final = {
    "local_link_integrity_error": "local_link_integrity_errors", "symbol_errors": "symbol_error",
    "link_integrity_errors": "local_link_integrity_errors", "buffer_overrun_errors": "excessive_buffer_overrun_errors",
    "link_down": "link_downed", "link_recovers": "link_error_recovery",
}  # fmt: skip
_MAX: Final = 400
_MARK: Final = re.compile(
    r"^\s*#\s*Port (?:extended )?counters: |^\s*NIC statistics:|ports/\d{1,3}/(?:hw_)?counters/\w{3,60}|"
    r"^\s*Errors for (?:0x\w+ )?\"",
    re.MULTILINE,
)


def _name(text: str) -> str:
    """Return sysfs' name of a counter: ``SymbolErrorCounter`` gives ``symbol_error``."""
    text = text.removesuffix("Counter") if text[:1].isupper() else text
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower().replace(" ", "_").replace("-", "_").replace(".", "_")
    return _ALIASES.get(snake, snake)


class _Block:
    """Counters of one port while they are read."""

    def __init__(self, line: Line, **fields: Scalar) -> None:
        self.first = self.last = self.decisive = line.number
        self.text = line.text
        self.fields = fields
        self.counters: dict[str, int] = {}

    def add(self, name: str, value: int, line: Line) -> None:
        name = _name(name)
        self.last = line.number
        if name in ("port_select", "counter_select", "counter_select2") or len(self.counters) >= _MAX:
            return
        if name in _LINK and value and not any(self.counters.get(n) for n in _LINK):
            self.decisive, self.text = line.number, line.text
        self.counters[name] = value

    def row(self, host: str | None) -> Row:
        full = sorted(n for n, v in self.counters.items() if n in _WIDTH and v == (1 << _WIDTH[n]) - 1)
        fields: dict[str, Scalar] = {k: v for k, v in self.fields.items() if v is not None}
        if host is not None:
            fields.setdefault("host", host)
        fields |= self.counters
        fields["link_errors"] = sum(v for n, v in self.counters.items() if n in _LINK)
        fields["counters"] = len(self.counters)
        if full:
            fields["saturated"] = ",".join(full)
        return Row("ib-counters", self.decisive, max(self.last, self.decisive), fields, self.text)


def _blocks(lines: Sequence[Line]) -> Iterator[_Block]:
    """Read the forms with a heading and the one-line forms; sysfs trees are read by :func:`_tree`."""
    current: _Block | None = None
    nic = node = None
    ethtool = False
    for line in lines:
        text = line.text
        if (found := _ETHTOOL_COMMAND.search(text)) is not None:
            nic = found[1]
        opened = _open(line, nic)
        if opened is not None or (not text.strip() and not ethtool):
            if current is not None and current.counters:
                yield current
            current, ethtool = opened, bool(_ETHTOOL_HEAD.match(text))
        elif current is not None and (found := (_ETHTOOL if ethtool else _DOTS).match(text)) is not None:
            if not _QUEUE.match(found[1]):
                current.add(found[1], int(found[2]), line)
        elif (found := _ERRORS_HEAD.match(text)) is not None:
            node = found[1]
        elif (single := _one_line(line, node)) is not None:
            yield single
    if current is not None and current.counters:
        yield current


def _tree(lines: Sequence[Line]) -> Iterator[_Block]:
    """Read ``grep . .../counters/*`` and ``tail -n +1 .../counters/*``."""
    blocks: dict[tuple[str, int], _Block] = {}
    heading: re.Match[str] | None = None
    for line in lines:
        value = None
        if (found := _TREE.search(line.text)) is not None:
            value = int(found[4])
        elif (head := _TREE_HEAD.match(line.text)) is not None:
            heading = head
        elif heading is not None and line.text.strip().isdecimal() and len(line.text.strip()) <= 20:
            found, value, heading = heading, int(line.text), None
        if found is not None and value is not None:
            key = (found[1], int(found[2]))
            blocks.setdefault(key, _Block(line, nic=key[0], port=key[1])).add(found[3], value, line)
    yield from blocks.values()


def _open(line: Line, nic: str | None) -> _Block | None:
    if (found := _PERFQUERY.match(line.text)) is not None:
        return _Block(line, lid=int(found[1]) if found[1] else None, port=int(found[2]))
    return _Block(line, nic=nic) if _ETHTOOL_HEAD.match(line.text) else None


def _one_line(line: Line, node: str | None) -> _Block | None:
    """Read ``rdma statistic`` and a port line of ibqueryerrors."""
    if (found := _RDMA.match(line.text)) is not None:
        block = _Block(line, nic=found[1], port=int(found[2]))
        words = found[3].split()
        for name, value in zip(words[::2], words[1::2], strict=False):
            block.add(name, int(value), line)
        return block
    if node is not None and (found := _ERRORS_PORT.match(line.text)) is not None:
        host = node.split()[0] if " HCA" in node or " mlx" in node else None
        block = _Block(line, host=host, node=node, port=int(found[1]) if found[1].isdigit() else None)
        for name, value in _ERRORS_ITEM.findall(found[2]):
            block.add(name, int(value), line)
        return block
    return None


class _Counters:
    """Rows of kind ``ib-counters``. A lone sysfs file gives ``value``; its path tells port and counter."""

    name = "ib-counters"
    origin = Origin.DUMP
    triggers: tuple[str, ...] = ()

    def sniff(self, path: str, head: str) -> bool:
        """See :class:`triage.sources.base.RowSource`."""
        if _FILE.search(path):
            return head.strip().isdecimal()
        if _MARK.search(head):
            return True
        return any(_RDMA.match(line) for line in head.split("\n")[:500])

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """See :class:`triage.sources.base.RowSource`."""
        filled = [(n, line.strip()) for n, line in enumerate(lines, 1) if line.strip()]
        if len(filled) == 1 and filled[0][1].isdecimal() and len(filled[0][1]) <= 20:
            number, text = filled[0]
            single: Mapping[str, Scalar] = {"value": int(text)}
            yield Row(self.name, number, number, single, text)
            return
        for host, members in parts(lines):
            for block in (*_blocks(members), *_tree(members)):
                if block.counters:
                    yield block.row(host)


IB_COUNTERS = _Counters()
