"""Files that daemons and tools write themselves: fabric manager, DCGM, opensm, apt, timedatectl, nvidia-smi headers."""

from __future__ import annotations

from triage.sources._lines import BSD as _BSD
from triage.sources._lines import ISO as _ISO
from triage.sources._lines import LEVEL as _LEVEL
from triage.sources._lines import NUMBERED_HOST as _HOST
from triage.sources._lines import Lines as _Lines
from triage.sources.base import Layout as _Layout
from triage.vocabulary import Origin as _Origin

DAEMONS = _Lines(
    "daemon",
    (
        _Layout(
            "fabricmanager",
            rf"\[(?P<stamp>[A-Z][a-z]{{2}} \d\d \d{{4}} \d\d:\d\d:\d\d)\] \[(?P<severity>{_LEVEL})\] \[tid "
            rf"(?P<tid>\d{{1,12}})\] "
            r"(?P<program_is_fabricmanager>)",
            stamp="bsd",
            origin=_Origin.SYSLOG,
            examples=(
                (
                    "[Feb 25 2030 13:59:45] [INFO] [tid 1803] multicast group 1 is allocated.",
                    {
                        "time": "2030-02-25T13:59:45",
                        "severity": "info",
                        "program": "fabricmanager",
                        "body": "multicast group 1 is allocated.",
                        "host": None,
                    },
                ),
            ),
        ),
        _Layout(
            "dcgm",
            rf"(?P<stamp>{_ISO}) (?P<severity>{_LEVEL}) +\[(?P<pid>\d{{1,10}}):(?P<tid>\d{{1,20}})\] ",
            stamp="iso",
            origin=_Origin.SYSLOG,
            examples=(("2030-05-01 12:00:00.123 ERROR [12:34] [[NVML]] lost", {"pid": 12, "body": "[[NVML]] lost"}),),
        ),
        _Layout(
            "opensm",
            rf"(?P<stamp>{_BSD}) (?P<program_is_opensm>)(?P<tid>\d{{1,12}}|[0-9A-F]{{8}}) \["
            rf"(?P<thread>[0-9A-F]{{4,16}})\] "
            r"0x(?P<level>[0-9a-f]{1,4}) -> ",
            stamp="bsd",
            origin=_Origin.SYSLOG,
            examples=(
                ("Feb 25 13:59:45 123456 [7F3C] 0x01 -> trap: x", {"time": "--02-25T13:59:45", "body": "trap: x"}),
            ),
        ),
        _Layout(
            "rsync-daemon",
            r"(?P<program_is_rsync>)(?P<stamp>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) \[(?P<pid>\d{1,10})\] ",
            stamp="iso",
            origin=_Origin.SYSLOG,
            examples=(
                (
                    "2030/05/01 02:15:01 [123] rsync to home/",
                    {"program": "rsync", "pid": 123, "body": "rsync to home/"},
                ),
            ),
        ),
        _Layout(
            "nginx-error",
            rf"(?P<stamp>\d{{4}}/\d\d/\d\d \d\d:\d\d:\d\d) \[(?P<severity>{_LEVEL})\] (?:"
            rf"(?P<pid>\d{{1,10}})#\d{{1,10}}: )?",
            stamp="iso",
            origin=_Origin.SYSLOG,
            examples=(("2030/01/21 10:56:10 [error] 28#0: *1 open() failed", {"pid": 28, "body": "*1 open() failed"}),),
        ),
        _Layout(
            "spectrum-scale",
            r"(?P<program_is_mmfsd>)(?P<stamp>\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:[+-]\d{4})?): "
            r"(?:\[(?P<severity>[A-Z])\] )?",
            stamp="iso",
            origin=_Origin.SYSLOG,
            examples=(
                (
                    "2030-05-01_12:00:00.123+0200: [E] Disk failure",
                    {"time": "2030-05-01T12:00:00.123+02:00", "severity": "error", "body": "Disk failure"},
                ),
            ),
        ),
        _Layout(
            "lustre-debug",
            r"[0-9a-f]{8}:[0-9a-f]{8}:\d{1,4}\.\d\w?:(?P<stamp>\d{10}\.\d{6}):\d{1,10}:(?P<pid>\d{1,10}):\d{1,10}:"
            r"\((?P<code>[^)\n]{1,120}\(\))\) ",
            stamp="epoch",
            origin=_Origin.KERNEL,
            examples=(
                (
                    "00000100:00000400:3.0F:1900000000.123456:0:1234:0:(client.c:2300:ptlrpc_expire()) @@@ late",
                    {"time": "2030-03-17T17:46:40.123456+00:00", "pid": 1234, "body": "@@@ late"},
                ),
            ),
        ),
        _Layout(
            "ipmi-sel",
            r" {0,4}(?P<seq>[0-9a-f]{1,6}) \| (?P<stamp>\d\d/\d\d/\d{2,4} \| \d\d:\d\d:\d\d(?: [AP]M)?)"
            r"(?: \w{2,5})? \| ",
            stamp="mdy",
            origin=_Origin.DUMP,
            examples=(
                (
                    "   1 | 05/21/2030 | 12:00:00 | Memory #0x02 | Correctable ECC | Asserted",
                    {"time": "2030-05-21T12:00:00", "body": "Memory #0x02 | Correctable ECC | Asserted"},
                ),
            ),
        ),
        _Layout(
            "apt-history",
            r"(?P<body>(?:Start|End)-Date: (?P<stamp>\d{4}-\d\d-\d\d {1,2}\d\d:\d\d:\d\d))",
            stamp="iso",
            origin=_Origin.SYSLOG,
            examples=(("Start-Date: 2030-05-03  06:21:19", {"time": "2030-05-03T06:21:19"}),),
        ),
        _Layout(
            "timedatectl",
            r" {0,30}(?P<body>(?:Local|Universal) time: "
            r"(?P<stamp>[A-Za-z][^\W\d]{1,3}\.? \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: [A-Z]{3,4})?)\s*$)",
            stamp="weekday_iso",
            origin=_Origin.DUMP,
            examples=(("      Local time: Thu 2030-11-14 09:41:10 CET", {"time": "2030-11-14T09:41:10+01:00"}),),
        ),
        _Layout(
            "nvidia-smi-time",
            r"(?P<body>Timestamp {1,60}: (?P<stamp>[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4})\s*$)",
            stamp="bsd",
            origin=_Origin.DUMP,
            examples=(("Timestamp                    : Wed Feb 13 18:04:52 2030", {"time": "2030-02-13T18:04:52"}),),
        ),
        _Layout(
            "host-banner",
            rf"(?P<body>={{2,}} (?P<host>{_HOST}) (?P<stamp>{_ISO}) ={{2,}}\s*$)",
            stamp="iso",
            origin=_Origin.DUMP,
            examples=(("==== cn03 2030-02-11T18:04:30Z ====", {"host": "cn03", "time": "2030-02-11T18:04:30+00:00"}),),
        ),
        _Layout(
            "date-output",
            r"(?P<body>(?P<stamp>[A-Za-z][^\W\d]{1,3}\.? [^\W\d]{3,9}\.? {1,2}\d{1,2} \d\d:\d\d:\d\d(?: [AP]M)?"
            r"(?: (?:[A-Z]{3,5}|[+-]\d{2,4}))? \d{4})\s*$)",
            stamp="bsd",
            origin=_Origin.DUMP,
            examples=(
                ("Thu May 27 21:31:48 2032       ", {"time": "2032-05-27T21:31:48", "origin": "dump"}),
                ("ma sep 20 08:55:20 CEST 2032", {"time": "2032-09-20T08:55:20+02:00"}),
            ),
        ),
    ),
    priority=33,
)
