"""PyTorch: the C++ logger (c10/util/Logging.cpp), glog builds, torch._logging, TorchElastic."""

from __future__ import annotations

from triage.sources._lines import CLOCK as _CLOCK
from triage.sources._lines import ISO as _ISO
from triage.sources._lines import Lines as _Lines
from triage.sources.base import Layout as _Layout
from triage.vocabulary import Origin as _Origin

_TRAINING = _Origin.TRAINING

TORCH = _Lines(
    "torch",
    (
        _Layout(
            "torch-c10",
            r"\[(?P<severity>[VIWEF])(?P<stamp>\d{3,4} \d\d:\d\d:\d\d\.\d{6,9})? "
            r"(?P<code>[\w./<>+-]{1,200}:\d{1,6})\] ?",
            stamp="glog",
            origin=_TRAINING,
            examples=(
                (
                    "[rank7]:[E126 10:21:08.164595040 ProcessGroupNCCL.cpp:616] [Rank 7] Watchdog caught",
                    {
                        "time": "--01-26T10:21:08.164595",
                        "rank": 7,
                        "severity": "error",
                        "body": "[Rank 7] Watchdog caught",
                    },
                ),
                (
                    "[W1118 01:02:03.000000001 socket.cpp:767] [c10d] x",
                    {"time": "--11-18T01:02:03", "severity": "warning"},
                ),
                ("[W socket.cpp:464] [c10d] x", {"time": None, "severity": "warning", "body": "[c10d] x"}),
                ("[rank2]:[W Utils.hpp:108] Warning", {"time": None, "rank": 2, "body": "Warning"}),
            ),
        ),
        _Layout(
            "glog",
            rf"(?P<severity>[VIWEF])(?P<stamp>(?:\d{{4}})?\d{{4}} {_CLOCK}) +(?P<pid>\d{{1,10}})(?: "
            rf"(?P<tid>\d{{1,20}}))? "
            r"(?P<code>[^\s\]]{1,300}:\d{1,6})\] ?",
            stamp="glog",
            origin=_TRAINING,
            examples=(
                (
                    "W1223 05:17:58.996000 3304089 torch/distributed/elastic/agent/api.py:908] Sending process",
                    {"time": "--12-23T05:17:58.996", "pid": 3304089, "severity": "warning", "body": "Sending process"},
                ),
                ("E20301123 10:11:12.123456 777 coll.cpp:616] x", {"time": "2030-11-23T10:11:12.123456"}),
                ("0: I0707 20:41:30.118204 4100 distributed.py:149] Connecting", {"task": 0, "pid": 4100}),
            ),
        ),
        _Layout(
            "glog-thread",
            rf"(?P<severity>[VIWEF])(?P<stamp>(?:\d{{4}})?\d{{4}} {_CLOCK}) +(?P<tid>\d{{11,20}}) "
            rf"(?P<code>[^\s\]]{{1,300}}:\d{{1,6}})\] ?",
            stamp="glog",
            origin=_TRAINING,
            examples=(
                ("W0501 22:05:18.361000 139692391809664 torch/distributed/run.py:757] hi", {"pid": None, "body": "hi"}),
            ),
        ),
        _Layout(
            "absl-early",
            r"(?P<severity>[VIWEF])0000 00:00:(?P<stamp>1\d{9}\.\d{6}) +(?P<pid>\d{1,10}) "
            r"(?P<code>[^\s\]]{1,300}:\d{1,6})\] ?",
            stamp="epoch",
            origin=_TRAINING,
            examples=(
                (
                    "W0000 00:00:1900000000.740558 1154 op.cc:699] x",
                    {"time": "2030-03-17T17:46:40.740558+00:00", "pid": 1154},
                ),
            ),
        ),
        _Layout(
            "torch-elastic-time",
            r" {1,8}(?P<body>time {2,12}: (?P<stamp>\d{4}-\d\d-\d\d[_T ]\d\d:\d\d:\d\d(?:\.\d{1,6})?))",
            stamp="iso",
            origin=_TRAINING,
            examples=(("  time      : 2030-09-27_08:47:19", {"time": "2030-09-27T08:47:19"}),),
        ),
        _Layout(
            "torch-logger",
            r"(?P<severity>DEBUG|INFO|WARNING|ERROR|CRITICAL):(?P<program>[A-Za-z_][\w.]{0,120}):",
            origin=_TRAINING,
            examples=(
                (
                    "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 7",
                    {"severity": "warning", "body": "Sending process 7", "time": None},
                ),
            ),
        ),
        _Layout(
            "tensorflow",
            rf"(?P<stamp>{_ISO}): (?P<severity>[VIWEF]) (?P<code>[^\s\]]{{1,300}}:\d{{1,6}})\] ?",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                ("2030-08-17 00:40:44.282258: W tensorflow/core/x.cc:182] hi", {"severity": "warning", "body": "hi"}),
            ),
        ),
        _Layout(
            "gloo",
            r"(?P<body>\[(?:[\w./-]*/)?(?:third_party/)?gloo/[\w./-]{1,120}:\d{1,6}\])",
            origin=_TRAINING,
            examples=(("[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed", {"time": None}),),
        ),
    ),
    priority=35,
)
