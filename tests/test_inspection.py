"""What ``triage inspect`` says of single lines."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from triage.inspection import inspect, physical_lines


@pytest.fixture
def show(tmp_path: Path) -> Any:
    def run(text: str | bytes, *lines: int, **options: Any) -> list[dict[str, Any]]:
        path = tmp_path / "a.log"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return inspect(path, lines, **options)

    return run


def test_all_fields(show: Any) -> None:
    assert show("2031-02-03T04:05:06+01:00 n1 sshd[12]: hello\n") == [
        {
            "line": 1, "record_line": 1, "source": "syslog", "layout": "syslog-iso",
            "time": "2031-02-03T04:05:06+01:00", "uptime_s": None, "inferred_time": None, "host": "n1",
            "program": "sshd", "pid": 12, "rank": None, "severity": None, "message": "hello",
        }
    ]  # fmt: skip


def test_only_the_lines_asked_for(show: Any) -> None:
    assert [row["line"] for row in show("a\nb\nc\nd", 2, 4)] == [2, 4]


def test_time_without_zone_has_no_offset(show: Any) -> None:
    (row,) = show("[2031-02-03 04:05:06,123] [INFO] [x.py:1:f] hi\n")
    assert row["time"] == "2031-02-03T04:05:06.123000"
    assert row["inferred_time"] == "2031-02-03T04:05:06.123000+00:00"


def test_zone_of_the_user(show: Any) -> None:
    (row,) = show("[2031-02-03 04:05:06,123] [INFO] [x.py:1:f] hi\n", tz="+02:00")
    assert row["time"] == "2031-02-03T04:05:06.123000+02:00"


def test_year_of_the_user(show: Any) -> None:
    assert [row["time"] for row in show("Dec 31 23:00:00 n x: a\nJan  1 01:00:00 n x: b\n", year=2015)] == [
        "2015-12-31T23:00:00",
        "2016-01-01T01:00:00",
    ]


def test_undated_line_has_only_an_inferred_time(show: Any) -> None:
    row = show("2031-02-03T04:05:06Z a\n  b\n", 2)[0]
    assert (row["time"], row["inferred_time"], row["record_line"]) == (None, "2031-02-03T04:05:06+00:00", 1)


def test_uptime_without_and_with_an_anchor(show: Any) -> None:
    (row,) = show("[   12.500000] x\n")
    assert (row["time"], row["uptime_s"]) == (None, 12.5)
    rows = show("[   10.000000] audit: type=1 audit(1900000000.000:1): x\n[   12.500000] x\n")
    assert rows[1]["time"] == "2030-03-17T17:46:42.500000+00:00"


def test_records(show: Any) -> None:
    text = (
        "2031-02-03 04:05:06,1 - r - ERROR - boom\n"  # 1
        "Traceback (most recent call last):\n"
        '  File "a.py", line 1, in f\n'
        "    g()\n"
        "ValueError: no\n"
        "loss 1.0\n"  # 6
        "loss 2.0\n"  # 7
        "[   12.000000] a\n"  # 8
        "[   12.000001]  indented message, own stamp\n"  # 9
        "               second line of a kernel record\n"
    )
    assert [row["record_line"] for row in show(text)] == [1, 1, 1, 1, 1, 6, 7, 8, 9, 9]


def test_lines_are_split_at_newline_only(show: Any) -> None:
    rows = show("a\rb\x0bc\u2028d\r\ne\n".encode())
    assert [(row["line"], row["message"]) for row in rows] == [(1, "b\x0bc\u2028d"), (2, "e")]


def test_gzip_and_a_cut_gzip(tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    packed = gzip.compress(b"2031-02-03T04:05:06Z a\n" + b"x" * 100_000 + b"\nend\n")
    path.write_bytes(packed)
    assert [row["line"] for row in inspect(path)] == [1, 2, 3]
    path.write_bytes(packed[: len(packed) // 2])
    inspect(path)  # what is there is shown


def test_giant_lines_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 5_000_000 + b"\ny")
    assert [len(line) for line in physical_lines(path)] == [65536, 1]


def test_empty_file(show: Any) -> None:
    assert show("") == []
