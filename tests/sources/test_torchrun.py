from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.sources.base import RowSource
from triage.sources.torchrun import TORCHRUN_SUMMARY

RULE = "=" * 60
LINE = "-" * 60
BLOCK = f"""\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\x20
{RULE}
train.py FAILED
{LINE}
Failures:
[1]:
  time      : 2026-03-01_12:00:00
  host      : node07.example
  rank      : 59 (local_rank: 3)
  exitcode  : -6 (pid: 48213)
  error_file: <N/A>
  traceback : Signal 6 (SIGABRT) received by PID 48213
{LINE}
Root Cause (first observed failure):
[0]:
  time      : 2026-03-01_11:59:58
  host      : node07.example
  rank      : 58 (local_rank: 2)
  exitcode  : -9 (pid: 48212)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 48212
{RULE}
after"""

RECORDED = f"""\
{RULE}
train.py FAILED
{LINE}
Failures:
  <NO_OTHER_FAILURES>
{LINE}
Root Cause (first observed failure):
[0]:
  time      : 2026-03-01_11:59:58
  host      : node07.example
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 512)
  error_file: /tmp/torchelastic_ab/error.json
  traceback : Traceback (most recent call last):
    File "/opt/errors/__init__.py", line 355, in wrapper
      return f(*args)
    File "/home/ana/train.py", line 9, in main
  ValueError: bad shape
\x20\x20
{RULE}"""


def rows(text: str) -> list[tuple[int, dict[str, object]]]:
    return [(row.line, dict(row.fields)) for row in TORCHRUN_SUMMARY.rows(text.split("\n"))]


def test_both_sections() -> None:
    (other_line, other), (first_line, first) = rows(BLOCK)
    assert (other_line, first_line) == (10, 19)
    assert other["is_first"] is False
    assert first == {
        "is_first": True,
        "host": "node07.example",
        "at": "2026-03-01T11:59:58",
        "rank": 58,
        "local_rank": 2,
        "exitcode": -9,
        "pid": 48212,
        "signal": 9,
        "signal_name": "SIGKILL",
        "traceback": "Signal 9 (SIGKILL) received by PID 48212",
    }


def test_recorded_traceback_gives_the_exception_line() -> None:
    [(line, fields)] = rows(RECORDED)
    assert line == 18
    assert (fields["exception"], fields["message"], fields["exitcode"]) == ("ValueError", "bad shape", 1)
    assert fields["error_file"] == "/tmp/torchelastic_ab/error.json"


def test_newest_form_names_the_signal_beside_the_pid() -> None:
    text = BLOCK.replace("-9 (pid: 48212)", "-9 (pid: 48212)  (SIGKILL)").replace(
        "Signal 9 (SIGKILL) received by PID 48212", "x"
    )
    assert rows(text)[1][1]["signal_name"] == "SIGKILL"


@pytest.mark.parametrize(
    "tag", ["[rank0]: ", "[default0]:", "E0301 12:00:01.000000 77 torch/distributed/run.py:9] ", "3: "]
)
def test_tags_before_every_line(tag: str) -> None:
    got = rows("\n".join(tag + line for line in BLOCK.split("\n")))
    assert [fields["exitcode"] for _, fields in got] == [-6, -9]


def test_no_traceback_hint_is_not_a_traceback() -> None:
    text = BLOCK.replace(
        "Signal 9 (SIGKILL) received by PID 48212",
        "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
    )
    assert "traceback" not in rows(text)[1][1]


def test_cut_blocks() -> None:
    lines = BLOCK.split("\n")
    assert [f["exitcode"] for _, f in rows("\n".join(lines[:19]))] == [-6, -9]
    assert [f["exitcode"] for _, f in rows("\n".join(lines[13:]))] == [-9]
    assert rows("\n".join(lines[:9])) == []
    assert rows("Failures: 3 of 9 tests\n[1]:\n  exitcode of nothing") == []


@given(
    st.lists(st.one_of(st.sampled_from(BLOCK.split("\n") + RECORDED.split("\n")), st.text(max_size=30)), max_size=40)
)
def test_any_lines_are_survived(lines: list[str]) -> None:
    for row in TORCHRUN_SUMMARY.rows(lines):
        assert 1 <= row.line <= len(lines)


def test_it_is_a_row_source() -> None:
    assert isinstance(TORCHRUN_SUMMARY, RowSource)
    assert not TORCHRUN_SUMMARY.sniff("a.log", BLOCK)
