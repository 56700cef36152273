"""``journalctl`` outputs beyond the default one, which is RFC 3164 with a zero-padded day (systemd's logs-show.c)."""

from __future__ import annotations

from triage.sources._lines import Lines as _Lines
from triage.sources.base import Layout as _Layout

_TAG = r"(?P<host>[\w.:-]{1,80}) (?:(?P<program>[^\s:\[\]]{1,120})(?:\[(?P<pid>\d{1,10})\])?:(?: |$))"

JOURNAL = _Lines(
    "journal",
    (
        _Layout(
            "journal-json",
            r'(?P<json>\{(?=[^\n]{0,4000}"__REALTIME_TIMESTAMP"))',
            examples=(
                (
                    '{"__REALTIME_TIMESTAMP":"1900000000123456","__MONOTONIC_TIMESTAMP":"5000001","_HOSTNAME":"n4",'
                    '"_TRANSPORT":"kernel","SYSLOG_IDENTIFIER":"kernel","PRIORITY":"3","MESSAGE":"nvme0: gone"}',
                    {
                        "time": "2030-03-17T17:46:40.123456+00:00",
                        "uptime_s": 5.000001,
                        "host": "n4",
                        "program": "kernel",
                        "severity": "error",
                        "body": "nvme0: gone",
                        "origin": "kernel",
                    },
                ),
            ),
        ),
        _Layout(
            "journal-full",
            r"(?P<stamp>[A-Za-z][^\W\d]{1,3}\.? \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?"
            r" (?:[A-Z]{3,4}|[+-]\d\d(?:\d\d)?)) " + _TAG,
            stamp="weekday_iso",
            examples=(
                (
                    "Tue 2030-12-03 14:42:07 UTC node-b7 systemd[1]: Started foo",
                    {"time": "2030-12-03T14:42:07+00:00", "host": "node-b7", "program": "systemd", "pid": 1},
                ),
            ),
        ),
        _Layout(
            "journal-unix",
            r"(?P<stamp>1\d{9}\.\d{6}) " + _TAG,
            stamp="epoch",
            examples=(
                (
                    "1900000000.000001 node-b7 cron[9]: x",
                    {"time": "2030-03-17T17:46:40.000001+00:00", "origin": "cron"},
                ),
            ),
        ),
        _Layout(
            "journal-monotonic",
            r"\[ {0,12}(?P<uptime>\d{1,9}\.\d{6})(?: *<[+ ]*[\d.]+ *>)?\] (?P<host>(?=[\w.-]*[a-zA-Z])[\w.-]{1,63}) "
            r"(?:(?P<program>kernel): |(?P<program2>[^\s:\[\]]{1,120})\[(?P<pid>\d{1,10})\]: )",
            examples=(
                (
                    "[    7.123456] node-b7 kernel: eth0: renamed",
                    {"uptime_s": 7.123456, "host": "node-b7", "program": "kernel", "body": "eth0: renamed"},
                ),
                ("[  107.123456] node-b7 sshd[99]: ready", {"program": "sshd", "pid": 99, "origin": "syslog"}),
            ),
        ),
        _Layout(
            "journal-boot",
            r"(?P<body>-- (?:Boot (?P<boot_id>[0-9a-f]{32})|Reboot) --)",
            examples=(("-- Boot 0123456789abcdef0123456789abcdef --", {"time": None}),),
        ),
    ),
    priority=20,
)
