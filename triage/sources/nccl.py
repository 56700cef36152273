"""NCCL, RCCL and their network plugins, UCX/UCC and Open MPI (prefixes: nccl src/debug.cc, ucx src/ucs/debug/log.c)."""

from __future__ import annotations

from triage.sources._lines import ISO as _ISO
from triage.sources._lines import Lines as _Lines
from triage.sources.base import Layout as _Layout
from triage.vocabulary import Origin as _Origin

_LINE = r"(?P<host>[\w.%+-]{1,80}):(?P<pid>\d{1,10}):(?P<tid>\d{1,20}) " + (
    r"(?:\[(?P<gpu>-?\d{1,4})\] )?(?:(?P<code>\S{1,300}:\d{1,6}) (?:\((?P<function>[^)]{0,100})\) )?)?"
    r"(?:(?P<elapsed_ms>\d{1,12}\.\d{1,6}) \S{1,100} )?(?P<program>NCCL) "
    r"(?P<severity>INFO|WARN|TRACE|CALL|ABORT|VERSION)(?: |$)"
)

NCCL = _Lines(
    "nccl",
    (
        _Layout(
            "nccl",
            r" ?" + _LINE,
            origin=_Origin.NCCL,
            examples=(
                (
                    "cn-04:4177:5210 [3] NCCL INFO Using network IB",
                    {
                        "host": "cn-04",
                        "pid": 4177,
                        "gpu": 3,
                        "rank": None,
                        "severity": "info",
                        "time": None,
                        "body": "Using network IB",
                        "origin": "nccl",
                        "program": "NCCL",
                        "tid": "5210",
                    },
                ),
                (
                    "cn-04:4177:5210 [0] transport/net_ib.cc:88 NCCL WARN NET/IB : Got completion with error 12",
                    {"severity": "warning", "gpu": 0, "code": "transport/net_ib.cc:88"},
                ),
                ("cn-04:4177:5210 NCCL CALL ncclGroupEnd()", {"gpu": None, "body": "ncclGroupEnd()"}),
                ("cn-04:4177:5210 [1] 123.456 ncclFoo:12 NCCL TRACE x", {"severity": "debug", "gpu": 1}),
            ),
        ),
        _Layout(
            "nccl-dated",
            rf"\[?(?P<stamp>{_ISO})\]? {_LINE}",
            stamp="iso",
            origin=_Origin.NCCL,
            examples=(
                (
                    "[2030-05-01 12:00:00] cn-04:4177:5210 [0] misc/socket.cc:9 (ncclSocketTryAccept) NCCL WARN x",
                    {"time": "2030-05-01T12:00:00", "function": "ncclSocketTryAccept", "body": "x"},
                ),
            ),
        ),
        _Layout(
            "nccl-bare",
            r"(?P<body>(?P<program>NCCL) (?:git )?version \d)",
            origin=_Origin.NCCL,
            examples=(("NCCL version 2.99.1+cuda13.0", {"body": "NCCL version 2.99.1+cuda13.0", "program": "NCCL"}),),
        ),
        _Layout(
            "nccl-midline",
            r"[^:\n]{0,100}?(?<![\w.%-])(?:-1)?(?P<host>[A-Za-z][\w.%-]{0,60}):(?P<pid>\d{1,10}):(?P<tid>\d{1,20}) "
            r"\[(?P<gpu>-?\d{1,4})\] (?:\S{1,300}:\d{1,6} )?(?P<program>NCCL) (?P<severity>INFO|WARN|TRACE|ABORT) ",
            origin=_Origin.NCCL,
            examples=(
                ("  8388608  float  sum  -1cn7:65704:65704 [1] NCCL INFO AllReduce: x", {"host": "cn7", "gpu": 1}),
            ),
        ),
        _Layout(
            "ucx",
            r"\[(?P<stamp>\d{10}\.\d{1,9})\] \[(?P<host>[^\s:\]]{1,80}):(?P<pid>\d{1,10}) ?:(?P<tid>\d{1,20})\] +"
            r"(?P<code>\S{1,100}:\d{1,6}) +(?P<program>UC[XCPTM]\w*) +(?P<severity>[A-Z]{3,6}) +",
            stamp="epoch",
            origin=_Origin.NCCL,
            examples=(
                (
                    "[1900000000.426804] [cn9:1779 :0]     ucp_context.c:964  UCX  WARN  device is not available",
                    {
                        "time": "2030-03-17T17:46:40.426804+00:00",
                        "host": "cn9",
                        "pid": 1779,
                        "program": "UCX",
                        "severity": "warning",
                        "body": "device is not available",
                        "uptime_s": None,
                    },
                ),
            ),
        ),
        _Layout(
            "epoch-bracket",
            r"\[(?P<stamp>1\d{9}\.\d{1,9})\] ",
            stamp="epoch",
            examples=(("[1900000000.000001] hello", {"time": "2030-03-17T17:46:40.000001+00:00", "uptime_s": None}),),
        ),
        _Layout(
            "ucx-signal",
            r"(?P<program_is_UCX>)\[(?P<host>[A-Za-z][\w.-]{0,62}):(?P<pid>\d{1,10}) *:\d{1,10}:"
            r"(?P<tid>\d{1,20})\] (?=Caught signal )",
            origin=_Origin.TRAINING,
            examples=(
                (
                    "[cn9:227  :0:227] Caught signal 11 (Segmentation fault: address not mapped to object)",
                    {"host": "cn9", "pid": 227, "time": None},
                ),
            ),
        ),
        _Layout(
            "openmpi",
            r"\[(?![\w.-]{1,60}\.(?:py|c|cc|cpp|cxx|cu|h|hpp|go|rs|java):)(?=[\w.-]{0,60}[A-Za-z])"
            r"(?P<host>[A-Za-z0-9][\w.-]{0,62}):(?P<pid>\d{1,10})\] ",
            origin=_Origin.TRAINING,
            examples=(
                ("[cn9:356633] PMIX ERROR: ERROR in file x.c at line 1", {"host": "cn9", "pid": 356633, "time": None}),
            ),
        ),
    ),
    priority=35,
)
