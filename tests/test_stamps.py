"""Every stamp function: what it reads, and the near misses it must refuse."""

from __future__ import annotations

from datetime import datetime

import pytest

from triage.sources.base import Stamp
from triage.stamps import STAMPS, month, zone_offset


def written(stamp: Stamp | None) -> str | None:
    """Compact form: ``--05-26T..`` without a year, ``T..`` without a date, offset at the end."""
    if stamp is None:
        return None
    text = stamp.wall.isoformat()
    if not stamp.has_date:
        text = text[10:]
    elif not stamp.has_year:
        text = "-" + text[4:]
    if stamp.offset_s is None:
        return text
    sign = "-" if stamp.offset_s < 0 else "+"
    return f"{text}{sign}{abs(stamp.offset_s) // 3600:02}:{abs(stamp.offset_s) // 60 % 60:02}"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("iso", "2031-02-03 04:05:06", "2031-02-03T04:05:06"),
        ("iso", "2031-02-03T04:05:06,789", "2031-02-03T04:05:06.789000"),
        ("iso", "2031-02-03T04:05:06.123456789Z", "2031-02-03T04:05:06.123456+00:00"),
        ("iso", "2031-02-03T04:05:06+0530", "2031-02-03T04:05:06+05:30"),
        ("iso", "2031-02-03 04:05:06 -03:30", "2031-02-03T04:05:06-03:30"),
        ("iso", "2031-02-03_04:05:06", "2031-02-03T04:05:06"),
        ("iso", "2031/02/03 04:05:06", "2031-02-03T04:05:06"),
        ("iso", "2031-02-03-04.05.06.758477", "2031-02-03T04:05:06.758477"),
        ("iso", "2031-02-03 12:05:06 AM", "2031-02-03T00:05:06"),
        ("iso", "2031-02-03 12:05:06 PM", "2031-02-03T12:05:06"),
        ("iso", "2031-02-03 23:59:60", "2031-02-04T00:00:00"),
        ("weekday_iso", "Tue 2031-02-03 04:05:06 CET", "2031-02-03T04:05:06+01:00"),
        ("yy", "31/02/03 04:05:06", "2031-02-03T04:05:06"),
        ("mdy", "02/03/2031 04:05:06", "2031-02-03T04:05:06"),
        ("mdy", "23/02/2031 04:05:06", "2031-02-23T04:05:06"),
        ("mdy", "02/03/31 04:05:06", "2031-02-03T04:05:06"),
        ("dmy", "03.02.2031 04:05:06", "2031-02-03T04:05:06"),
        ("md", "12/15 02:23:55", "--12-15T02:23:55"),
        ("md", "09-30 12:01:44.5", "--09-30T12:01:44.500000"),
        ("md", "08/21 [01:53:34", "--08-21T01:53:34"),
        ("compact", "310203 040506", "2031-02-03T04:05:06"),
        ("compact", "20310203-4:5:6:789", "2031-02-03T04:05:06.789000"),
        ("compact", "20310203T040506Z", "2031-02-03T04:05:06+00:00"),
        ("glog", "126 10:21:08.164595040", "--01-26T10:21:08.164595"),
        ("glog", "0126 10:21:08.164595", "--01-26T10:21:08.164595"),
        ("glog", "1118 10:21:08.000000001", "--11-18T10:21:08"),
        ("glog", "20311123 10:11:12.123456", "2031-11-23T10:11:12.123456"),
        ("bsd", "Mar  4 05:06:07", "--03-04T05:06:07"),
        ("bsd", "Mar 04 05:06:07.25", "--03-04T05:06:07.250000"),
        ("bsd", "Feb 29 05:06:07", "--02-29T05:06:07"),
        ("bsd", "août 25 19:38:03", "--08-25T19:38:03"),
        ("bsd", "déc. 25 19:38:03", "--12-25T19:38:03"),
        ("bsd", "11月 15 15:01:40", "--11-15T15:01:40"),
        ("bsd", "Wed May 21 08:00:03 2031", "2031-05-21T08:00:03"),
        ("bsd", "Wed May 21 08:00:03 EST 2031", "2031-05-21T08:00:03-05:00"),
        ("bsd", "Wed May 21 08:00:03 CST 2031", "2031-05-21T08:00:03"),
        ("bsd", "Sat Jul 20 21:34:49.453232 2030", "2030-07-20T21:34:49.453232"),
        ("bsd", "Feb 25 2031 13:59:45", "2031-02-25T13:59:45"),
        ("day_first", "20/Jul/2030:22:59:26 +0200", "2030-07-20T22:59:26+02:00"),
        ("day_first", "25 Apr 2030 05:32:35.018", "2030-04-25T05:32:35.018000"),
        ("clock", "15:33:36", "T15:33:36"),
        ("minute", "May26 19:31", "--05-26T19:31:00"),
        ("minute", "Dec 1 14:42", "--12-01T14:42:00"),
        ("epoch", "1900000000", "2030-03-17T17:46:40+00:00"),
        ("epoch", "1900000000.25", "2030-03-17T17:46:40.250000+00:00"),
        ("epoch", "1900000000498", "2030-03-17T17:46:40.498000+00:00"),
        ("epoch", "1900000000123456789", "2030-03-17T17:46:40.123456+00:00"),
        ("tai64n", "40000000713fb30a1dcd6500", "2030-03-17T17:46:40.500000+00:00"),
        ("slurm", "Jan 02 00:00:00", "--01-02T00:00:00"),
    ],
)
def test_reads(name: str, text: str, expected: str) -> None:
    assert written(STAMPS[name](text)) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("iso", "2031-13-03 04:05:06"),  # no such month
        ("iso", "2031-02-30 04:05:06"),  # no such day
        ("iso", "2031-02-03 25:05:06"),
        ("iso", "not a date"),
        ("bsd", "Foo  4 05:06:07"),
        ("bsd", "Mar 44 05:06:07"),
        ("bsd", "13月 15 15:01:40"),
        ("glog", "1332 10:21:08.164595040"),
        ("glog", "26 10:21:08.164595040"),
        ("epoch", "12345.678"),  # uptime, not an epoch
        ("epoch", "19000000001"),  # eleven digits are no unit
        ("clock", "25:61:00"),
        ("tai64n", "zz"),
        ("md", "13/32 00:00:00"),
        ("minute", "Foo26 19:31"),
    ],
)
def test_refuses(name: str, text: str) -> None:
    assert STAMPS[name](text) is None


def test_resolution_is_told() -> None:
    fine, coarse = STAMPS["iso"]("2031-02-03 04:05:06.123"), STAMPS["minute"]("May26 19:31")
    assert fine is not None
    assert coarse is not None
    assert fine.step_s == pytest.approx(0.001)
    assert coarse.step_s == 60


def test_a_year_less_stamp_is_of_1900() -> None:
    stamp = STAMPS["bsd"]("Mar  4 05:06:07")
    assert stamp == Stamp(datetime(1900, 3, 4, 5, 6, 7), has_year=False)


def test_month_names() -> None:
    assert [month(name) for name in ("Sept", "mars", "Mai", "dic", "5月", "smarch")] == [9, 3, 5, 12, 5, None]


def test_zone_offsets() -> None:
    assert [zone_offset(z) for z in ("Z", "+02:00", "-0930", "+05", "JST", "CST", None)] == [
        0, 7200, -34200, 18000, 32400, None, None,
    ]  # fmt: skip
