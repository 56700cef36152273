"""The peeler: wrappers, near misses, hostile text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.test_stamps import written
from triage.inspection import line_sources
from triage.peel import Peeler, decode, last_frame, program_origin, severity, strip_ansi
from triage.sources.base import Layout
from triage.vocabulary import Origin

SOURCES = line_sources()
PEELER = Peeler(SOURCES)

# Pieces of which prefixes are made, so that random text comes near to real lines.
PIECES = st.sampled_from(
    [
        "2031-02-03T04:05:06.123Z ", "2031-02-03 04:05:06,123", "Mar  4 05:06:07 ", "[  12.345678] ", "[rank3]:",
        "[default7]:", " 3: ", "node7 ", "kernel: ", "python[12]: ", "[E126 10:21:08.164595040 x.cpp:1] ", " - ",
        "cn7:1:2 [0] NCCL WARN ", "[", "]", "{", '{"log":"', "<6>", "6,1,2,-;", "\x1b[31m", "\x00", "\r", "\n", "@4",
        "1900000000.1 ", "é", "月", "\ufeff", "￿", "ERROR:", "slurmstepd: ", "(a pid=1) ", "\t", "message", "INFO",
    ]
)  # fmt: skip
TEXT = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=12).map("".join))


@given(TEXT)
@settings(max_examples=500, deadline=None)
@example("{" * 3000)
@example('{"log":' + "[" * 500)
@example('{"level":"x","msg":' + "9" * 5000 + "}")
@example("[" + "9" * 400 + "] x")
@example("9" * 30 + ": x")
@example("<" + "9" * 3 + ">x")
@example("²³: x")
@example("٣: x")
@example("a:" * 2000)
def test_never_raises_and_is_repeatable(line: str) -> None:
    first = PEELER.peel(line)
    assert PEELER.peel(line) == first


@given(TEXT)
@settings(max_examples=300, deadline=None)
def test_the_message_is_a_part_of_the_line(line: str) -> None:
    parsed = PEELER.peel(line)
    if "json" not in (parsed.layout or "") and "{" not in line:
        assert parsed.body in strip_ansi(line.replace("\x1b[A", "\r"))


@given(st.text(max_size=100))
def test_an_unknown_line_is_left_as_it_is(line: str) -> None:
    parsed = PEELER.peel(line)
    if parsed.layout is None:
        assert parsed.stamp is None
        assert parsed.uptime_s is None
        assert parsed.origin is Origin.GENERIC


def test_five_wrappers_deep() -> None:
    parsed = PEELER.peel(
        "2031-05-01T12:00:00.1Z stderr F  3: (Worker pid=12) [default1]:[rank11]:[E512 10:21:08.164595040 a.cpp:7] boom"
    )
    assert (parsed.task, parsed.pid, parsed.local_rank, parsed.rank) == (3, 12, 1, 11)
    assert (parsed.layout, parsed.severity, parsed.body) == ("torch-c10", "error", "boom")
    assert written(parsed.stamp) == "2031-05-01T12:00:00.100000+00:00"


def test_rank_local_rank_task_and_ordinal_stay_apart() -> None:
    parsed = PEELER.peel("12: cn7:100:200 [3] NCCL INFO Using network IB")
    assert (parsed.task, parsed.gpu, parsed.rank, parsed.local_rank) == (12, 3, None, None)


def test_a_time_with_zone_wins_over_one_without() -> None:
    parsed = PEELER.peel("2031-02-24T10:05:00.921Z 2031-02-24 11:05:00,016 - root - INFO - step")
    assert written(parsed.stamp) == "2031-02-24T10:05:00.921000+00:00"
    assert parsed.body == "step"


def test_docker_json_is_unescaped_and_read_again() -> None:
    parsed = PEELER.peel(r'{"log":"[rank2]: caf\u00e9 \"x\"\n","stream":"stderr","time":"2031-05-06T07:08:09Z"}')
    assert (parsed.rank, parsed.body) == (2, 'café "x"')


def test_journal_bytes_and_missing_messages() -> None:
    stem = '{"__REALTIME_TIMESTAMP":"1900000000000000","SYSLOG_IDENTIFIER":"x","MESSAGE":'
    assert PEELER.peel(stem + "[104,105,255]}").body == "hi\ufffd"
    assert PEELER.peel(stem + "null}").body == ""


@pytest.mark.parametrize(
    ("line", "origin"),
    [
        ("[   12.345678] mlx5_core: up", Origin.KERNEL),
        ("Mar  4 05:06:07 n1 kernel: up", Origin.KERNEL),
        ("Mar  4 05:06:07 n1 kernel-daemon: up", Origin.SYSLOG),
        ("Mar  4 05:06:07 n1 CROND[3]: (root) CMD (true)", Origin.CRON),
        ("Mar  4 05:06:07 n1 anacron[3]: Job started", Origin.CRON),
        ("Mar  4 05:06:07 n1 slurmctld[3]: error: x", Origin.SLURM),
        ("Mar  4 05:06:07 n1 kubelet[3]: x", Origin.KUBERNETES),
        ("Mar  4 05:06:07 n1 chronyd[3]: x", Origin.SYSLOG),
        ("srun: error: cn1: task 0: Killed", Origin.SLURM),
        ("cn7:1:2 [0] NCCL WARN x", Origin.NCCL),
        ("[rank3]: KeyError", Origin.TRAINING),
        ("KeyError: 3", Origin.GENERIC),
    ],
)
def test_origin(line: str, origin: Origin) -> None:
    assert PEELER.peel(line).origin is origin


@pytest.mark.parametrize(
    "line",
    [
        "step:1385/1875 train_loss:3.5164 train_time:222617ms step_avg:161.90ms",
        "s:7433 trl:3.487114",
        "Epoch: [3]  [1800/3657]  eta: 0:04:14    time: 0.1369  data: 0.1232  max mem: 24815",
        "  1073741824     268435456     float     sum      -1   4301.9  249.60  468.00      0",
        "[W socket.cpp:464] [c10d] The server socket has failed",
        "cn7:1:2 [0] NCCL INFO Connected all rings",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  999.56  Tue Feb 23 23:24:34 UTC 2031",
        "-rw-r--r-- 1 ml ml 2469606195 2031-11-11 00:42:09.661569117 +0100 model.pt",
        "     77131     train    exp41    ml  R 6-03:12:44      4 cn[01-04]",
        "  startTime: '2031-11-29T14:17:12Z'",
        "[loader.py:12] x",
        "[12:34] x",
        "[Firmware Bug]: TSC_DEADLINE disabled",
        "Foo 12 10:11:12 bar baz",
        "GPU 00000000:00:09.0",
        "WARNING: no date",
    ],
)
def test_no_time_is_invented(line: str) -> None:
    parsed = PEELER.peel(line)
    assert parsed.stamp is None
    assert parsed.uptime_s is None


def test_a_source_file_in_brackets_is_no_host() -> None:
    assert PEELER.peel("[loader.py:12] x").host is None
    assert PEELER.peel("[12:34] x").host is None
    assert PEELER.peel("[cn3:412] PMIX ERROR").host == "cn3"


@pytest.mark.parametrize("word", ["epoch3", "step100", "nvme0", "mlx5_0", "eth0"])
def test_numbered_things_are_no_hosts(word: str) -> None:
    assert PEELER.peel(f"2031-02-03 04:05:06 {word}: fine").host is None
    assert PEELER.peel(f"{word}: [2031-02-03 04:05:06] x").host is None


def test_brackets_of_the_message_stay() -> None:
    for message in ("[Hardware Error]: CPU 3", "{3}[Hardware Error]: x", "[ 317702]  0 1 pause", " dump_stack+0x6d"):
        assert PEELER.peel(f"[  12.345678] {message}").body == message


def test_ten_digits_in_brackets_are_an_epoch_and_not_an_uptime() -> None:
    parsed = PEELER.peel("[1900000000.493421] [cn3:6482:0]   ucc_context.c:906  UCC  WARN  in use")
    assert parsed.uptime_s is None
    assert written(parsed.stamp) == "2030-03-17T17:46:40.493421+00:00"
    assert (parsed.host, parsed.program, parsed.pid) == ("cn3", "UCC", 6482)


def test_progress_frames() -> None:
    line = "[default3]:Epoch 0:  1%|  | 1/9\rEpoch 0:  2%|  | 2/9\r\r\n"
    assert PEELER.peel(line).body == "Epoch 0:  2%|  | 2/9"
    assert PEELER.peel(line).local_rank == 3
    assert PEELER.peel("a\rb", last=False).body == "a\rb"
    assert last_frame("\r\r") == ""


def test_carriage_return_before_the_line_end_is_no_frame() -> None:
    assert PEELER.peel("[   12.345678] hello\r\n").body == "hello"


def test_colours_and_nul() -> None:
    parsed = PEELER.peel("\x1b[0m cn7:1:2 [0] \x1b[38;2;1;2;3mNCCL INFO hi\x00")
    assert (parsed.host, parsed.body) == ("cn7", "hi")


def test_indented_capture_of_a_log() -> None:
    assert PEELER.peel("      Mar  4 05:06:07 n1 sshd[3]: x").host == "n1"


def test_hint_puts_a_source_first() -> None:
    class Tagged:
        name: str = "tagged"
        layouts: Sequence[Layout] = (Layout("tagged", r"(?P<program>\w+): "),)

    peeler = Peeler([*SOURCES, Tagged()])
    assert peeler.peel("INFO:a.b:x").layout == "torch-logger"
    assert peeler.peel("srun: x").layout == "srun"
    assert peeler.peel("srun: x", hint="tagged").layout == "tagged"


def test_decode_replaces_what_is_no_utf8() -> None:
    assert decode(b"\xef\xbb\xbfok \xff") == "ok \ufffd"


def test_severity_words() -> None:
    assert [severity(w) for w in ("W", "WARN", "Warning", "err", "FATAL", "Emerg", "hm")] == [
        "warning", "warning", "warning", "error", "fatal", "emergency", None,
    ]  # fmt: skip


def test_program_origin_of_nothing() -> None:
    assert program_origin(None) is Origin.SYSLOG
