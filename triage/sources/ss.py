"""Sockets: ``ss``, ``netstat``, ``lsof -i``. One row per socket.

Fields: ``state`` (LISTEN, ESTAB ...), ``address``, ``port``, ``peer_address``, ``peer_port``, ``pid``, ``program``,
``protocol``, ``recv_q``, ``send_q``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from triage.model import Scalar
from triage.sources._dumps import Line, parts
from triage.sources.base import Row
from triage.vocabulary import Origin

_STATES: Final = (
    r"(?:LISTEN(?:ING)?|ESTAB(?:LISHED)?|SYN[-_](?:SENT|RECV)|FIN[-_]?WAIT[-_]?[12]|TIME[-_]WAIT|CLOSE[-_]WAIT|"
    r"LAST[-_]ACK|CLOSING|UNCONN|CLOSED?)"
)
_ADDRESS: Final = r"(?:\[[0-9a-fA-F:.%\w]{0,60}\]|[\w.%*-]{0,80}|[0-9a-fA-F:.]{0,45}(?:%\w+)?)"
_PORT: Final = r"\d{1,5}|[a-z][\w-]{0,20}"
_SS: Final = re.compile(
    rf"^\s*(?:(?P<netid>tcp6?|udp6?|mptcp|sctp)\s+)?(?P<state>{_STATES})\s+(?P<recv>\d{{1,12}})\s+(?P<send>\d{{1,12}})"
    rf"\s+(?P<address>{_ADDRESS}):(?P<port>{_PORT}|\*)\s+(?P<peer>{_ADDRESS}):(?P<peer_port>{_PORT}|\*)(?P<rest>.{{0,4000}})$"
)
_USERS: Final = re.compile(r'\("(?P<program>[^"]{1,64})",(?:pid=)?(?P<pid>\d{1,10}),')
_NETSTAT: Final = re.compile(
    rf"^\s*(?P<netid>tcp6?|udp6?)\s+(?P<recv>\d{{1,12}})\s+(?P<send>\d{{1,12}})\s+(?P<address>\S{{1,80}}):(?P<port>{_PORT}|\*)"
    rf"\s+(?P<peer>\S{{1,80}}):(?P<peer_port>{_PORT}|\*)\s+(?P<state>{_STATES})"
    r"(?:\s+(?:(?P<pid>\d{1,10})/(?P<program>\S.{0,60}?)|-))?\s*$"
)
_LSOF: Final = re.compile(
    r"^(?P<program>\S{1,32})\s+(?P<pid>\d{1,10})\s+(?:\d+\s+)?\S+\s+\d+\w?\s+IPv[46]\s+\S+\s+\S+\s+(?P<netid>TCP|UDP)\s+"
    rf"(?P<address>\S{{0,80}}?):(?P<port>{_PORT})(?:->(?P<peer>\S{{1,80}}):(?P<peer_port>\S{{1,20}}))?"
    r"(?:\s+\((?P<state>\w{4,12})\))?\s*$"
)
_SERVICES: Final = {"ssh": 22, "http": 80, "https": 443, "nfs": 2049, "sunrpc": 111, "domain": 53, "smtp": 25}
_MARK: Final = re.compile(
    r"^\s*(?:Netid\s+)?State\s+Recv-Q|^\s*Proto\s+Recv-Q|^\s*(?:(?:tcp|udp)6?\s+)?LISTEN\s+\d+\s+\d+\s+\S+:\S+\s|"
    rf"^\s*(?:tcp|udp)6?\s+\d+\s+\d+\s+\S+:\S+\s+\S+:\S+\s+{_STATES}|^COMMAND\s+PID\s+.*NODE NAME|"
    r"^\S+\s+\d+\s+.{4,80}\sTCP\s\S*:\S+ \(LISTEN\)",
    re.MULTILINE,
)


def _port(text: str | None) -> int | None:
    if text is None:
        return None
    value = int(text) if text.isdecimal() else _SERVICES.get(text)
    return value if value is not None and value < 65536 else None


def _state(text: str | None) -> str | None:
    if text is None:
        return None
    word = text.upper().replace("_", "-")
    return {"LISTENING": "LISTEN", "ESTABLISHED": "ESTAB"}.get(word, word)


def _row(line: Line, host: str | None) -> Row | None:
    text = line.text[:5000]
    found = _SS.match(text) or _NETSTAT.match(text) or _LSOF.match(text)
    if found is None:
        return None
    got = found.groupdict()
    fields: dict[str, Scalar] = {
        "state": _state(got.get("state")),
        "address": (got["address"] or "*").strip("[]"),
        "port": _port(got["port"]),
        "peer_address": (got.get("peer") or "").strip("[]") or None,
        "peer_port": _port(got.get("peer_port")),
        "program": got.get("program"),
        "pid": int(got["pid"]) if got.get("pid") else None,
        "protocol": (got.get("netid") or "tcp").lower(),
        "recv_q": int(got["recv"]) if got.get("recv") else None,
        "send_q": int(got["send"]) if got.get("send") else None,
        "host": host,
    }
    if (user := _USERS.search(got.get("rest") or "")) is not None:
        fields["program"], fields["pid"] = user["program"], int(user["pid"])
    return Row("ss", line.number, line.number, {k: v for k, v in fields.items() if v is not None}, line.text)


class _Sockets:
    """Rows of kind ``ss``."""

    name = "ss"
    origin = Origin.DUMP
    triggers: tuple[str, ...] = ()

    def sniff(self, path: str, head: str) -> bool:
        """See :class:`triage.sources.base.RowSource`."""
        return _MARK.search(head) is not None

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """See :class:`triage.sources.base.RowSource`."""
        for host, members in parts(lines):
            for line in members:
                if (row := _row(line, host)) is not None:
                    yield row


SS = _Sockets()
