"""Logs from outside training that turn up in bundles: web servers, Hadoop, BlueGene, strace, multilog, phones."""

from __future__ import annotations

from triage.sources._lines import CLOCK as _CLOCK
from triage.sources._lines import ISO as _ISO
from triage.sources._lines import LEVEL as _LEVEL
from triage.sources._lines import Lines as _Lines
from triage.sources.base import Layout as _Layout
from triage.vocabulary import Origin as _Origin

FOREIGN = _Lines(
    "foreign",
    (
        _Layout(
            "bluegene",
            r"(?:-|[A-Z]\w{1,20}) (?P<stamp>\d{10}) \d{4}\.\d\d\.\d\d (?P<host>\S{1,60}) "
            r"\d{4}-\d\d-\d\d-\d\d\.\d\d\.\d\d\.\d{1,6} \S{1,60} \S{1,20} (?P<program>\S{1,30}) "
            r"(?P<severity>[A-Z]{3,10}) ",
            stamp="epoch",
            origin=_Origin.SYSLOG,
            examples=(
                (
                    "- 1911556861 2030.07.29 R02-M1 2030-07-29-05.01.01.675872 R02-M1 RAS KERNEL INFO parity error",
                    {
                        "time": "2030-07-29T12:01:01+00:00",
                        "host": "R02-M1",
                        "program": "KERNEL",
                        "body": "parity error",
                    },
                ),
            ),
        ),
        _Layout(
            "hpc-state",
            r"\d{1,10} (?P<host>\S{1,40}) (?P<component>[a-z][\w.-]{1,40}) (?P<state>[a-z][\w./-]{1,50}) "
            r"(?P<stamp>\d{10}) -?\d{1,3} ",
            stamp="epoch",
            origin=_Origin.SYSLOG,
            examples=(("13 node-2 unix.hw state_change.down 1900000000 1 Down", {"host": "node-2", "body": "Down"}),),
        ),
        _Layout(
            "hdfs",
            rf"(?P<stamp>\d{{6}} \d{{6}}) (?P<pid>\d{{1,10}}) (?P<severity>{_LEVEL}) (?P<logger>[\w.$]{{1,120}}): ",
            stamp="compact",
            origin=_Origin.SYSLOG,
            examples=(
                (
                    "301109 203615 148 INFO dfs.Data$X: done",
                    {"time": "2030-11-09T20:36:15", "pid": 148, "body": "done"},
                ),
            ),
        ),
        _Layout(
            "healthapp",
            r"(?P<stamp>\d{8}-\d{1,2}:\d{1,2}:\d{1,2}:\d{1,3})\|(?P<program>[^|]{1,60})\|(?P<pid>\d{1,12})\|",
            stamp="compact",
            origin=_Origin.SYSLOG,
            examples=(
                ("20301223-22:5:29:606|Step_X|3000|on", {"time": "2030-12-23T22:05:29.606", "program": "Step_X"}),
            ),
        ),
        _Layout(
            "android",
            rf"(?P<stamp>\d\d-\d\d {_CLOCK}) +(?P<pid>\d{{1,10}}) +(?P<tid>\d{{1,10}}) (?P<severity>[VDIWEF]) "
            rf"(?P<program>[^:\n]{{1,80}}?) *: ",
            stamp="md",
            origin=_Origin.SYSLOG,
            examples=(
                (
                    "03-17 16:13:38.811  1702  2395 D PowerX: acquired",
                    {"pid": 1702, "program": "PowerX", "body": "acquired"},
                ),
            ),
        ),
        _Layout(
            "windows-cbs",
            rf"(?P<stamp>{_ISO}), (?P<severity>[A-Z]\w{{2,10}}) {{2,}}(?P<program>[A-Z]\w{{1,10}}) {{2,}}",
            stamp="iso",
            origin=_Origin.SYSLOG,
            examples=(
                ("2030-09-28 04:30:30, Info                  CBS    Loaded", {"program": "CBS", "body": "Loaded"}),
            ),
        ),
        _Layout(
            "proxifier",
            rf"\[(?P<stamp>\d\d\.\d\d {_CLOCK})\] (?P<program>[\w. -]{{1,60}}?)(?: \*64)? - ",
            stamp="md",
            origin=_Origin.SYSLOG,
            examples=(("[10.30 16:49:06] some.exe *64 - host:1 open", {"program": "some.exe", "body": "host:1 open"}),),
        ),
        _Layout(
            "access-log",
            r"(?P<body>(?P<client>\d{1,3}(?:\.\d{1,3}){3}|[\w.-]{1,60}:\d{2,5})(?: \S{1,80}){0,4} \["
            r"(?P<stamp>\d{1,2}/[A-Za-z]{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\])",
            stamp="day_first",
            origin=_Origin.SYSLOG,
            examples=(('10.9.8.7 - - [15/Feb/2030:06:00:31 +0000] "GET"', {"time": "2030-02-15T06:00:31+00:00"}),),
        ),
        _Layout(
            "strace",
            r"(?P<pid>\d{1,10}) +(?P<stamp>1\d{9}\.\d{6}) (?=[a-z_0-9]{2,40}\(|[-+<]{3} ?)",
            stamp="epoch",
            origin=_Origin.DUMP,
            examples=(("10000 1900000000.000001 read(3, 0x7f) = 0", {"pid": 10000, "body": "read(3, 0x7f) = 0"}),),
        ),
        _Layout(
            "strace-clock",
            r"(?:(?P<pid>\d{1,10}) +)?(?P<stamp>\d\d:\d\d:\d\d\.\d{6}) (?=[a-z_0-9]{2,40}\(|[-+<]{3} ?)",
            stamp="clock",
            origin=_Origin.DUMP,
            examples=(("478 12:21:46.360433 read(3, 0x7f) = 0", {"pid": 478, "time": "T12:21:46.360433"}),),
        ),
        _Layout(
            "epoch",
            r"(?P<stamp>1\d{9})(?: - |: )|(?P<stamp2>1\d{9}\.\d{1,9})(?:[:,]? - |[:,]? |\t)",
            stamp="epoch",
            examples=(
                (
                    "1900000000 - login from 10.0.0.1",
                    {"time": "2030-03-17T17:46:40+00:00", "body": "login from 10.0.0.1"},
                ),
                ("1900000000.779 18 9.9.9.9 TCP_MISS/200", {"time": "2030-03-17T17:46:40.779+00:00"}),
            ),
        ),
        _Layout(
            "tai64n",
            r"@(?P<stamp>4[0-9a-f]{23}) ",
            stamp="tai64n",
            examples=(("@40000000713fb30a00000000 up", {"time": "2030-03-17T17:46:40+00:00", "body": "up"}),),
        ),
        _Layout(
            "vdsm",
            rf"(?P<thread>[\w.()-]{{1,40}})::(?P<severity>{_LEVEL})::(?P<stamp>{_ISO})::",
            stamp="iso",
            origin=_Origin.SYSLOG,
            examples=(
                (
                    "Thread-15::DEBUG::2031-12-07 11:44:17,737::clientIF::54",
                    {"severity": "debug", "body": "clientIF::54"},
                ),
            ),
        ),
        _Layout(
            "quoted-date",
            r'"(?P<stamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z?)"[,;\t ]',
            stamp="iso",
            examples=(('"2031-06-15 01:04:52"\tuser', {"time": "2031-06-15T01:04:52", "body": "user"}),),
        ),
        _Layout(
            "redis",
            r"(?P<pid>\d{1,10}):[XCSM] (?P<stamp>\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d\.\d{3}) [.*#-] ",
            stamp="day_first",
            origin=_Origin.SYSLOG,
            examples=(("1:C 25 Apr 2030 05:32:35.018 * ready", {"pid": 1, "body": "ready"}),),
        ),
        _Layout(
            "lsf-report",
            r"(?P<body>(?:Job|Started|Terminated|Results reported|Resource usage)[^\n]{0,300}? at "
            r"(?P<stamp>[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d(?: \d{4})?)\s*$)",
            stamp="bsd",
            origin=_Origin.TRAINING,
            examples=(("Terminated at Fri Apr 25 10:11:12 2031", {"time": "2031-04-25T10:11:12"}),),
        ),
    ),
    priority=54,
)
