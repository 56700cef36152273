"""Syslog files and wire messages: RFC 3164, RFC 5424, rsyslog's ISO form, BusyBox, Thunderbird's archive form."""

from __future__ import annotations

from triage.sources._lines import BSD as _BSD
from triage.sources._lines import ISO as _ISO
from triage.sources._lines import KERNEL_LEVEL as _LEVEL
from triage.sources._lines import LEVEL as _WORD
from triage.sources._lines import Lines as _Lines
from triage.sources.base import Layout as _Layout

_PRI = r"(?:<(?P<priority>\d{1,3})>)?"
_NOT_LEVEL = rf"(?!{_WORD})"
_FACILITY = (
    rf"(?:(?:kern|user|mail|daemon|auth|authpriv|syslog|lpr|news|uucp|cron|ftp|local\d)\.(?P<severity>{_LEVEL}) )?"
)
# kern.log keeps the kernel's own stamp behind the tag; a tag may hold blanks only when a pid follows
_TAG = (
    r"(?:(?P<program>kernel)(?:\[(?P<pid>0)\])?: (?:\[ {0,12}(?P<uptime>\d{1,9}\.\d{6})\](?: |$))?(?:\[ *[TC]\d+\] )?"
    r"|(?P<program2>[^\s:\[\]]{1,120})(?:\[(?P<pid2>\d{1,10})\])?:(?: |$)"
    r"|(?P<program3>[A-Za-z][\w.()-]*(?: [\w.()-]+){1,3})\[(?P<pid3>\d{1,10})\]: )"
)

SYSLOG = _Lines(
    "syslog",
    (
        _Layout(
            "syslog-bsd",
            rf"{_PRI}(?P<stamp>{_BSD}) (?P<host>{_NOT_LEVEL}\w(?:\S{{0,120}}[^\s:])?) {_FACILITY}{_TAG}",
            stamp="bsd",
            examples=(
                (
                    "Mar  4 05:06:07 node-b7 sshd[2114]: Accepted publickey for ops",
                    {
                        "time": "--03-04T05:06:07",
                        "host": "node-b7",
                        "program": "sshd",
                        "pid": 2114,
                        "body": "Accepted publickey for ops",
                        "origin": "syslog",
                    },
                ),
                (
                    "Mar 04 05:06:07 node-b7 kernel: [34798.540185] aufs: mounted",
                    {"uptime_s": 34798.540185, "program": "kernel", "body": "aufs: mounted", "origin": "kernel"},
                ),
                ("Mar  4 05:06:07 node-b7 kernel: NVRM: Xid", {"program": "kernel", "body": "NVRM: Xid"}),
                (
                    "Mar  4 05:06:07 node-b7 CRON[77]: (root) CMD (true)",
                    {"program": "CRON", "pid": 77, "origin": "cron", "body": "(root) CMD (true)"},
                ),
                ("août 24 19:38:03 tour-2 systemd[1]: Démarrage", {"time": "--08-24T19:38:03", "program": "systemd"}),
                ("11月 15 15:01:40 jia-3 sshd[7]: ok", {"time": "--11-15T15:01:40", "host": "jia-3", "pid": 7}),
                ("Mar  4 05:06:07 box kern.err kernel: oops", {"severity": "error", "program": "kernel"}),
                ("<34>Mar  4 05:06:07 box su: denied", {"severity": "critical", "program": "su"}),
                ("Mar  4 05:06:07 mac9 Backup Agent[14]: done", {"program": "Backup Agent", "pid": 14}),
                ("Mar  4 05:06:07 n1 slurmd[900]: error: x", {"origin": "slurm", "body": "error: x"}),
            ),
        ),
        _Layout(
            "syslog-bsd-year",
            rf"{_PRI}(?P<stamp>[A-Z][a-z]{{2}} {{1,2}}\d{{1,2}} (?:\d{{4}} \d\d:\d\d:\d\d|\d\d:\d\d:\d\d \d{{4}}))"
            rf" (?P<host>{_NOT_LEVEL}\w(?:\S{{0,120}}[^\s:])?) {_TAG}",
            stamp="bsd",
            examples=(("Mar  4 2031 05:06:07 sw9 link: down", {"time": "2031-03-04T05:06:07", "host": "sw9"}),),
        ),
        _Layout(
            "syslog-bsd-message",
            rf"{_PRI}(?P<stamp>{_BSD}) (?P<host>{_NOT_LEVEL}\w(?:\S{{0,120}}[^\s:])?) ",
            stamp="bsd",
            examples=(
                (
                    "Mar  4 05:06:07 node-b7 last message repeated 3 times",
                    {"host": "node-b7", "program": None, "body": "last message repeated 3 times"},
                ),
            ),
        ),
        _Layout(
            "syslog-iso-tag",
            rf"{_PRI}(?P<stamp>\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)?) "
            rf"(?P<host>{_NOT_LEVEL}[\w.:-]{{0,80}}[\w.]) {_FACILITY}{_TAG}",
            stamp="iso",
            examples=(
                (
                    "2030-12-01T14:42:07.123456+01:00 node-b7 rsyslogd: started",
                    {
                        "time": "2030-12-01T14:42:07.123456+01:00",
                        "host": "node-b7",
                        "program": "rsyslogd",
                        "pid": None,
                        "body": "started",
                    },
                ),
            ),
        ),
        _Layout(
            "syslog-iso",
            rf"(?P<stamp>{_ISO}) (?P<host>{_NOT_LEVEL}[\w.:-]{{0,80}}[\w.]) "
            r"(?:(?P<program>[^\s:\[\]]{1,120})\[(?P<pid>\d{1,10})\]:(?: |$)|(?P<program2>kernel): )",
            stamp="iso",
            examples=(
                (
                    "2030-12-01T14:42:07.123456+00:00 node-b7 dockerd[812]: started",
                    {
                        "time": "2030-12-01T14:42:07.123456+00:00",
                        "host": "node-b7",
                        "program": "dockerd",
                        "pid": 812,
                        "body": "started",
                    },
                ),
                ("2030-12-01T14:42:07+0100 node-b7 kernel: eth0: up", {"time": "2030-12-01T14:42:07+01:00"}),
                ("2030-12-01 14:42:07 node-b7 sshd[812]: started", {"host": "node-b7", "program": "sshd"}),
            ),
        ),
        _Layout(
            "syslog-5424",
            rf"<(?P<priority>\d{{1,3}})>\d (?P<stamp>{_ISO}) (?:-|(?P<host>\S{{1,200}})) (?:-|(?P<program>\S{{1,60}})) "
            r"(?:(?P<pid>\d{1,10})|\S{1,128}) \S{1,40} (?:-|(?:\[[^\]]{0,600}\]){1,6})(?: \ufeff?|$)",
            stamp="iso",
            examples=(
                (
                    '<165>1 2030-10-11T22:14:15.003Z node7 slurmd 8710 ID47 [a@1 k="v"] error: down',
                    {
                        "time": "2030-10-11T22:14:15.003+00:00",
                        "host": "node7",
                        "program": "slurmd",
                        "pid": 8710,
                        "severity": "notice",
                        "body": "error: down",
                        "origin": "slurm",
                    },
                ),
                ("<14>1 2030-10-11T22:14:15Z - - - - - hello", {"host": None, "program": None, "body": "hello"}),
            ),
        ),
        _Layout(
            "syslog-thunderbird",
            rf"(?:-|[A-Z][\w-]{{0,20}}) (?P<stamp>\d{{10}}) \d{{4}}\.\d\d\.\d\d (?P<host>\S+) {_BSD} \S+ (?:{_TAG})?",
            stamp="epoch",
            examples=(
                (
                    "- 1911556861 2030.07.29 cn228 Jul 29 12:01:01 cn228/cn228 crond(pam_unix)[2915]: session closed",
                    {
                        "time": "2030-07-29T12:01:01+00:00",
                        "host": "cn228",
                        "program": "crond(pam_unix)",
                        "pid": 2915,
                        "body": "session closed",
                        "origin": "cron",
                    },
                ),
            ),
        ),
    ),
    priority=40,
)
