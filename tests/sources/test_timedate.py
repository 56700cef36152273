"""Clocks: timedatectl old and new, chronyc tracking, ntpstat, date."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.model import Scalar
from triage.sources.timedate import TIMEDATE

CHRONY = """\
Reference ID    : {ref}
Stratum         : 3
Ref time (UTC)  : Tue Dec 01 14:42:07 2030
System time     : {offset} seconds {way} of NTP time
Last offset     : +0.000062649 seconds
RMS offset      : 0.000152495 seconds
Leap status     : {leap}
"""


@pytest.mark.parametrize(
    ("text", "line", "want"),
    [
        (
            "               Local time: Thu 2030-11-12 09:41:10 CET\n"
            "           Universal time: Thu 2030-11-12 08:41:10 UTC\n"
            "                Time zone: Europe/Paris (CET, +0100)\n"
            "System clock synchronized: yes\n              NTP service: active\n",
            4,
            {"synchronised": True, "ntp_active": True, "zone": "Europe/Paris"},
        ),
        (
            "      Local time: Thu 2030-11-12 09:41:10 CET\n       Time zone: Europe/Paris (CET, +0100)\n"
            "     NTP enabled: no\nNTP synchronized: no\n",
            4,
            {"synchronised": False, "ntp_active": False},
        ),
        (
            CHRONY.format(ref="C0000201 (ntp1.example.net)", offset="0.000004709", way="slow", leap="Normal"),
            7,
            {"synchronised": True, "offset_s": -0.000004709, "stratum": 3},
        ),
        (
            CHRONY.format(ref="C0000201 (ntp1.example.net)", offset="303.117300000", way="fast", leap="Normal"),
            4,
            {"synchronised": True, "offset_s": 303.1173, "abs_offset_s": 303.1173},
        ),
        (
            CHRONY.format(ref="00000000 ()", offset="0.000000000", way="fast", leap="Not synchronised"),
            7,
            {"synchronised": False, "reference": "00000000 ()"},
        ),
        ("unsynchronised\n   polling server every 8 s\n", 1, {"synchronised": False}),
        ("synchronised to NTP server (192.0.2.1) at stratum 3\n", 1, {"synchronised": True}),
        ("[root@k07 ~]# date\nma sep 19 08:55:20 CEST 2030\n", 2, {"host": "k07", "zone": "CEST"}),
        (
            "ops@gpu-12:~$ date\nTue Dec  1 14:42:07 UTC 2030\n",
            2,
            {"host": "gpu-12", "time": "Tue Dec  1 14:42:07 UTC 2030"},
        ),
        ("$ date\nTue 01 Dec 2030 02:42:07 PM UTC\n", 2, {"zone": "UTC"}),
        ("$ date --iso-8601=seconds\n2030-12-01T14:42:07+01:00\n", 2, {"zone": "+01:00"}),
    ],
)
def test_rows(text: str, line: int, want: dict[str, Scalar]) -> None:
    (row,) = TIMEDATE.rows(text.split("\n"))
    assert row.line == line
    assert {name: row.fields.get(name) for name in want} == want


@pytest.mark.parametrize(
    "text",
    [
        "Stratum: nowhere near\n",
        "Tue Dec  1 14:42:07 UTC 2030\n",  # a date that nobody asked for
        "$ date -s '2030-01-01'\nTue Jan  1 00:00:00 UTC 2030\n",  # sets the clock
        "Time: 12\nZone: 4\n",
    ],
)
def test_near_misses(text: str) -> None:
    assert [row for row in TIMEDATE.rows(text.split("\n")) if "synchronised" in row.fields or row.kind == "date"] == []


def test_two_hosts_in_one_file() -> None:
    text = "==== gpu-01 ====\nSystem clock synchronized: yes\n==== gpu-02 ====\nSystem clock synchronized: no\n"
    assert TIMEDATE.sniff("x", text)
    got = [(r.fields["host"], r.fields["synchronised"], r.line) for r in TIMEDATE.rows(text.split("\n"))]
    assert got == [("gpu-01", True, 2), ("gpu-02", False, 4)]


KEYS = (
    "System time     : ",
    "Leap status     : ",
    "Stratum         : ",
    "Time zone: ",
    "$ date",
    "synchronised",
    "Reference ID    : ",
)


@given(
    st.lists(st.text(max_size=60) | st.tuples(st.sampled_from(KEYS), st.text(max_size=20)).map("".join), max_size=20)
)
def test_never_raises(lines: list[str]) -> None:
    TIMEDATE.sniff("x", "\n".join(lines))
    list(TIMEDATE.rows(lines))
