"""Loggers of training frameworks and launchers, each by the format string of its source (training-formats 0.2)."""

from __future__ import annotations

from triage.sources._lines import CLOCK as _CLOCK
from triage.sources._lines import ISO as _ISO
from triage.sources._lines import LEVEL as _LEVEL
from triage.sources._lines import Lines as _Lines
from triage.sources.base import Layout as _Layout
from triage.vocabulary import Origin as _Origin

_TRAINING = _Origin.TRAINING

FRAMEWORKS = _Lines(
    "framework",
    (
        _Layout(
            "megatron-datetime",
            rf"(?P<body>\[[^\]\n]{{1,120}}\] datetime: (?P<stamp>{_ISO}))",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                (
                    "[before the start of training step] datetime: 2030-06-10 20:47:54 ",
                    {
                        "time": "2030-06-10T20:47:54",
                        "body": "[before the start of training step] datetime: 2030-06-10 20:47:54 ",
                    },
                ),
            ),
        ),
        _Layout(
            "megatron-line",
            rf" ?\[(?P<stamp>{_ISO})\] +(?=iteration |(?:\w+ ){{1,4}}checkpoint )",
            stamp="iso",
            origin=_TRAINING,
            examples=((" [2030-01-01 00:00:00] iteration  7/ 100 | x", {"body": "iteration  7/ 100 | x"}),),
        ),
        _Layout(
            "deepspeed",
            rf"\[(?P<stamp>{_ISO})\] \[(?P<severity>{_LEVEL})\] \["
            rf"(?P<code>[^\]\s]{{1,160}}:\d{{1,6}}:[^\]\s]{{1,120}})\] ?",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                (
                    "[2030-05-01 12:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=10",
                    {"time": "2030-05-01T12:00:00.123", "severity": "info", "body": "[Rank 0] step=10", "rank": None},
                ),
            ),
        ),
        _Layout(
            "deepspeed-launcher",
            rf"\[(?P<stamp>{_ISO})\] \[(?P<severity>{_LEVEL})\] \[(?P<code>[^\]\s]{{1,160}}:\d{{1,6}})\] ?",
            stamp="iso",
            origin=_TRAINING,
            examples=(("[2030-05-01 12:00:00,123] [INFO] [launch.py:96] hi", {"body": "hi", "severity": "info"}),),
        ),
        _Layout(
            "torch-logger-dated",
            rf"\[(?P<stamp>{_ISO})\] (?P<program>[A-Za-z_][\w.]{{1,120}}): \[(?P<severity>{_LEVEL})\] ?",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                (
                    "[2030-04-10 16:02:56,193] torch.distributed.elastic.multiprocessing.api: [WARNING] Sending",
                    {"time": "2030-04-10T16:02:56.193", "severity": "warning", "body": "Sending"},
                ),
            ),
        ),
        _Layout(
            "hydra",
            rf"\[(?P<stamp>{_ISO})\]\[(?P<program>[^\]\n]{{1,120}})\]\[(?P<severity>{_LEVEL})\](?: - | )",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                ("[2030-01-25 17:01:33,198][my.trainer][INFO] - Fetch", {"program": "my.trainer", "body": "Fetch"}),
            ),
        ),
        _Layout(
            "named-tag",
            rf"\[(?P<program>[a-z][\w-]{{1,30}})\] ?(?=(?:{_ISO}) )",
            origin=_TRAINING,
            wrapper=True,
            examples=(
                (
                    "[titan] 2030-05-01 12:00:00,123 - root - INFO - step:  1",
                    {"time": "2030-05-01T12:00:00.123", "program": "titan", "severity": "info", "body": "step:  1"},
                ),
            ),
        ),
        _Layout(
            "fairseq2",
            rf"\[Rank (?P<rank>\d{{1,6}})\] (?P<stamp>{_ISO}) (?P<severity>{_LEVEL}):? (?P<program>[\w.]{{1,80}}) - ",
            stamp="iso",
            origin=_TRAINING,
            examples=(("[Rank 3] 2030-05-01 12:00:00 INFO fairseq2.x - hi", {"rank": 3, "body": "hi"}),),
        ),
        _Layout(
            "nemo",
            rf"\[(?P<program>NeMo|[A-Z]{{2,8}}) (?P<severity>[DIWEC]) (?P<stamp>{_ISO}) "
            rf"(?P<code>[^\]\s]{{1,120}}:\d{{1,6}})\] ?",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                (
                    "[NeMo W 2030-05-01 12:00:00 exp_manager:396] hi",
                    {"program": "NeMo", "severity": "warning", "body": "hi"},
                ),
            ),
        ),
        _Layout(
            "composer",
            rf"(?P<stamp>{_ISO}): (?:\[[^\]]{{1,60}}\])?rank(?P<rank>\d{{1,6}})\[(?P<pid>\d{{1,10}})\]\["
            rf"(?P<thread>[^\]]{{1,60}})\]: "
            rf"(?P<severity>{_LEVEL}): (?P<program>[\w.]{{1,120}}): ",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                (
                    "2030-06-29 11:22:26,152: rank5[822][MainThread]: INFO: composer.trainer.trainer: hi",
                    {"rank": 5, "pid": 822, "severity": "info", "body": "hi"},
                ),
            ),
        ),
        _Layout(
            "nvrx",
            rf"(?P<stamp>{_ISO}) \[(?P<severity>{_LEVEL})\] \[(?P<host>[\w.-]{{1,80}})\] "
            r"\[workload:(?P<rank>\d{1,6})\((?P<local_rank>\d{1,4})\)[^\]]{0,80}\] (?P<code>\S{1,120}:\d{1,6}) ",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                (
                    "2030-05-01 12:00:00,123 [INFO] [cn7] [workload:13(5) infra:3(3)] rank_monitor_server.py:488 hi",
                    {"host": "cn7", "rank": 13, "local_rank": 5, "body": "hi"},
                ),
            ),
        ),
        _Layout(
            "huggingface",
            rf"\[(?P<severity>{_LEVEL})\|(?P<code>[^\]\s]{{1,160}}:\d{{1,6}})\] (?P<stamp>{_ISO}) >> ?",
            stamp="iso",
            origin=_TRAINING,
            examples=(("[INFO|trainer.py:2128] 2030-05-01 12:00:00,123 >> ***** Running", {"body": "***** Running"}),),
        ),
        _Layout(
            "huggingface-undated",
            rf"\[(?P<severity>{_LEVEL})\|(?P<code>[^\]\s]{{1,160}}:\d{{1,6}})\]:? (?:>> ?)?",
            origin=_TRAINING,
            examples=(("[INFO|trainer.py:2128] >> ***** Running", {"body": "***** Running", "time": None}),),
        ),
        _Layout(
            "submitit",
            rf"(?P<program>submitit) (?P<severity>{_LEVEL}) \((?P<stamp>{_ISO})\) - ",
            stamp="iso",
            origin=_TRAINING,
            examples=(("submitit INFO (2030-08-17 02:06:10,011) - Job has timed out", {"body": "Job has timed out"}),),
        ),
        _Layout(
            "mllog",
            r'(?P<body>:::(?P<program>MLLOG|MLPERF) \{(?=[^\n]{0,400}"time_ms": (?P<stamp>\d{13})\b))',
            stamp="epoch",
            origin=_TRAINING,
            examples=(
                (
                    ':::MLLOG {"namespace": "", "time_ms": 1900000000498, "key": "x"}',
                    {"time": "2030-03-17T17:46:40.498+00:00"},
                ),
            ),
        ),
        _Layout(
            "dllogger",
            rf"(?P<program>DLL) (?P<stamp>{_ISO}) - ",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                (
                    "DLL 2030-05-19 05:58:50.574254 - Iteration 0 | x : 1",
                    {"program": "DLL", "body": "Iteration 0 | x : 1"},
                ),
            ),
        ),
        _Layout(
            "mlperf-run",
            r"(?P<body>(?:STARTING|ENDING) TIMING RUN AT (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [AP]M))",
            stamp="iso",
            origin=_TRAINING,
            examples=(("STARTING TIMING RUN AT 2030-09-27 08:46:34 PM", {"time": "2030-09-27T20:46:34"}),),
        ),
        _Layout(
            "mlperf-marker",
            r"(?P<body>RUNANDTIME_(?:START|STOP) (?P<stamp>1\d{9})\s*$)",
            stamp="epoch",
            origin=_TRAINING,
            examples=(("RUNANDTIME_START 1900000000", {"time": "2030-03-17T17:46:40+00:00"}),),
        ),
        _Layout(
            "mlperf-result",
            r"(?P<body>RESULT,[^\n,]{0,80},[^\n]{0,120}?,(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [AP]M)\s*$)",
            stamp="iso",
            origin=_TRAINING,
            examples=(("RESULT,unet,,395,nvidia,2030-05-16 12:59:50 AM", {"time": "2030-05-16T00:59:50"}),),
        ),
        _Layout(
            "vllm",
            rf"(?P<severity>{_LEVEL}) (?P<stamp>\d\d-\d\d {_CLOCK}) \[(?P<code>[^\]\s]{{1,200}}:\d{{1,6}})\] ?",
            stamp="md",
            origin=_TRAINING,
            examples=(
                (
                    "(EngineCore_0 pid=204) ERROR 09-30 12:23:51 [core.py:709] EngineCore encountered",
                    {"time": "--09-30T12:23:51", "pid": 204, "severity": "error", "body": "EngineCore encountered"},
                ),
            ),
        ),
        _Layout(
            "sglang",
            rf"\[(?P<stamp>{_ISO})(?P<group>(?: (?:DP|TP|PP|EP)\d{{1,4}}){{1,4}})\] ",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                (
                    "[2030-09-16 02:51:07 DP0 TP2] Scheduler hit",
                    {"body": "Scheduler hit", "time": "2030-09-16T02:51:07"},
                ),
            ),
        ),
        _Layout(
            "mmengine",
            rf"(?P<stamp>\d\d/\d\d {_CLOCK}) - (?P<program>[\w.]{{1,60}}) - (?P<severity>{_LEVEL}) - ",
            stamp="md",
            origin=_TRAINING,
            examples=(("12/15 02:23:55 - mmengine - INFO - Epoch", {"time": "--12-15T02:23:55", "body": "Epoch"}),),
        ),
        _Layout(
            "hugectr",
            rf"\[(?P<program>HUGECTR|HCTR)\]\[(?P<stamp>{_CLOCK})\]\[(?P<severity>{_LEVEL})\]\[R(?:ANK|K)"
            rf"(?P<rank>\d{{1,6}})\]"
            r"(?:\[\w{1,20}\])?: ?",
            stamp="clock",
            origin=_TRAINING,
            examples=(("[HUGECTR][00:08:24][INFO][RANK3]: Iter: 1000", {"rank": 3, "body": "Iter: 1000"}),),
        ),
        _Layout(
            "tensorrt",
            rf"\[(?P<stamp>\d\d/\d\d/\d{{4}}-{_CLOCK})\] \[(?P<severity>[VIWEF])\] ",
            stamp="mdy",
            origin=_TRAINING,
            examples=(
                ("[06/29/2030-08:24:55] [I] Format: ONNX", {"time": "2030-06-29T08:24:55", "body": "Format: ONNX"}),
            ),
        ),
        _Layout(
            "ascend",
            rf"\[(?P<severity>{_LEVEL})\] (?P<stamp>\d{{4}}-\d\d-\d\d-\d\d:\d\d:\d\d) "
            r"\(PID:(?P<pid>\d{1,10}), Device:(?P<gpu>-?\d{1,4}), RankID:(?P<rank>-?\d{1,6})\) ?",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                (
                    "[ERROR] 2030-07-03-19:45:13 (PID:627, Device:1, RankID:43) ERR02005 x",
                    {"rank": 43, "gpu": 1, "pid": 627},
                ),
            ),
        ),
    ),
    priority=36,
)
