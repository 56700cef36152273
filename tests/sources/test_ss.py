"""ss, netstat and lsof."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.sources.ss import SS


def rows(text: str) -> list[dict[str, Any]]:
    return [dict(row.fields) for row in SS.rows(text.split("\n"))]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            'LISTEN 0      2048               *:29501            *:*    users:(("python3",pid=11877,fd=6))',
            {"state": "LISTEN", "port": 29501, "pid": 11877, "program": "python3", "address": "*"},
        ),
        ("LISTEN 0      4096            [::]:29500         [::]:*", {"port": 29500, "address": "::"}),
        (
            'tcp   ESTAB  0 12 192.0.2.12:45873 192.0.2.13:29500 users:(("python3",pid=12,fd=9))',
            {"state": "ESTAB", "peer_port": 29500, "peer_address": "192.0.2.13", "send_q": 12},
        ),
        (
            "tcp        0      0 0.0.0.0:29500           0.0.0.0:*               LISTEN      11877/python3",
            {"port": 29500, "pid": 11877, "program": "python3"},
        ),
        (
            "tcp6       0      0 :::ssh                  :::*                    LISTEN      -",
            {"port": 22, "state": "LISTEN"},
        ),
        (
            "tcp        0      1 192.0.2.1:40000         192.0.2.2:29500         SYN_SENT    77/python3",
            {"state": "SYN-SENT"},
        ),
        ("python3 11877 ops 6u IPv6 123456 0t0 TCP *:29501 (LISTEN)", {"port": 29501, "pid": 11877, "state": "LISTEN"}),
    ],
)
def test_forms(text: str, wanted: dict[str, Any]) -> None:
    assert SS.sniff("ss.txt", text) or "ESTAB" in text
    (got,) = rows(text)
    assert wanted.items() <= got.items()


@pytest.mark.parametrize(
    "text", ["", "LISTEN", "State  Recv-Q Send-Q Local Address:Port", "tcp 0 0 x", "u_str LISTEN 0 128 /run/x 1 * 0"]
)
def test_nothing(text: str) -> None:
    assert rows(text) == []


@given(st.lists(st.text(max_size=80), max_size=20))
def test_never_raises(lines: list[str]) -> None:
    SS.sniff("x", "\n".join(lines))
    list(SS.rows(lines))
