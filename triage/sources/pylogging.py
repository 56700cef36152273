"""Python's logging (and loguru, logback, log4j: the same few parts in another order) around a full date."""

from __future__ import annotations

from triage.sources._lines import ISO as _ISO
from triage.sources._lines import LEVEL as _LEVEL
from triage.sources._lines import Lines as _Lines
from triage.sources.base import Layout as _Layout
from triage.vocabulary import Origin as _Origin

_TRAINING = _Origin.TRAINING
_NAME = r"(?P<program>[A-Za-z_<][\w.<>$/-]{0,120})"
_CODE = r"(?P<code>[\w./<>-]{1,200}:(?:[\w<>.]{1,80}:)?\d{1,6})"
_SEVERITY = rf"(?P<severity>{_LEVEL})"

PYLOGGING = _Lines(
    "pylogging",
    (
        _Layout(
            "py-name-level",
            rf"\[?(?P<stamp>{_ISO})\]? - {_NAME}(?:\[\d{{1,6}}\])? - {_SEVERITY} - (?:{_CODE} - )?",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                (
                    "2030-05-01 12:00:00,123 - trainer.core - INFO - epoch 3",
                    {
                        "time": "2030-05-01T12:00:00.123",
                        "program": "trainer.core",
                        "severity": "info",
                        "body": "epoch 3",
                    },
                ),
            ),
        ),
        _Layout(
            "py-level-name",
            rf"\[?(?P<stamp>{_ISO})\]?(?: -)? {_SEVERITY} - {_NAME}(?::\d{{1,6}})? - ",
            stamp="iso",
            origin=_TRAINING,
            examples=(("2030-05-01 12:00:00,123 - WARNING - core.api - hi", {"program": "core.api", "body": "hi"}),),
        ),
        _Layout(
            "py-level-dash",
            rf"\[?(?P<stamp>{_ISO})\]?(?: -)? {_SEVERITY} +(?:\[(?P<thread>[^\]\n]{{0,160}}\]?[^\]\n]{{0,120}})\] )?- ",
            stamp="iso",
            origin=None,
            examples=(
                ("2030-05-01 12:00:00,123 - ERROR - hi", {"severity": "error", "body": "hi"}),
                ("2030-07-29 17:41:44,747 - INFO  [Quorum[myid=1]/0:0:21:Fast@774] - timed out", {"body": "timed out"}),
            ),
        ),
        _Layout(
            "py-pipes",
            rf"(?P<stamp>{_ISO}) +\| +{_SEVERITY} *\| +(?:{_NAME}(?::[\w<>.]{{1,80}}:\d{{1,6}})? +(?:\||-) ?)?",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                (
                    "2030-05-01 12:00:00 | INFO | train_inner | epoch 002: loss=2",
                    {"program": "train_inner", "severity": "info", "body": "epoch 002: loss=2"},
                ),
                (
                    "2030-05-01 12:00:00.123 | WARNING  | app.run:main:12 - careful",
                    {"program": "app.run", "body": "careful"},
                ),
            ),
        ),
        _Layout(
            "py-code-level",
            rf"(?P<stamp>{_ISO}) \[{_CODE}\] {_SEVERITY} {_NAME}: ",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                ("2030-05-01 12:00:00,123 [/w/run.py:63] INFO runner.x: hi", {"program": "runner.x", "body": "hi"}),
            ),
        ),
        _Layout(
            "py-name-level-colon",
            rf"(?P<stamp>{_ISO}) {_NAME} {_SEVERITY}: ",
            stamp="iso",
            origin=_TRAINING,
            examples=(("2030-05-15 16:16:08,427 core.trainer INFO: hi", {"program": "core.trainer", "body": "hi"}),),
        ),
        _Layout(
            "java-thread",
            rf"(?P<stamp>{_ISO}) {_SEVERITY} +\[(?P<thread>[^\]\n]{{1,200}})\] (?P<program>[\w.$]{{1,200}}) *: ",
            stamp="iso",
            examples=(
                (
                    "2030-10-18 18:01:58,963 INFO [main] org.apache.x.Foo: started",
                    {"program": "org.apache.x.Foo", "severity": "info", "body": "started"},
                ),
            ),
        ),
        _Layout(
            "py-ray",
            rf"(?P<stamp>{_ISO})\s{_SEVERITY} {_CODE} -- ",
            stamp="iso",
            origin=_TRAINING,
            examples=(("2030-11-29 22:14:07,410\tINFO trainer.py:172 -- hi", {"severity": "info", "body": "hi"}),),
        ),
        _Layout(
            "py-level-code",
            rf"(?P<stamp>{_ISO}) {_SEVERITY}:? \[?{_CODE}\]?:? ",
            stamp="iso",
            origin=_TRAINING,
            examples=(("2030-11-29 22:14:07,410 INFO trainer.py:172] hi", {"severity": "info", "body": "hi"}),),
        ),
        _Layout(
            "py-level-colon-name",
            rf"(?P<stamp>{_ISO}) {_SEVERITY}:? {_NAME}: ",
            stamp="iso",
            examples=(
                ("2030-05-22 22:41:16 INFO overlap_manager: cached", {"program": "overlap_manager", "body": "cached"}),
            ),
        ),
        _Layout(
            "py-level-bracket-name",
            rf"\[?(?P<stamp>{_ISO})\]?[: ] ?\[?{_SEVERITY} *\]?:? \[{_NAME}\] ",
            stamp="iso",
            examples=(("2030-06-22 20:29:12,118 INFO [watcher] idle", {"program": "watcher", "body": "idle"}),),
        ),
        _Layout(
            "openstack",
            rf"[\w.-]{{1,80}}\.log\S{{0,60}} (?P<stamp>{_ISO}) (?P<pid>\d{{1,10}}) {_SEVERITY} {_NAME} ",
            stamp="iso",
            origin=_Origin.SYSLOG,
            examples=(
                (
                    "nova-api.log.1.2030-05-16_13:53:08 2030-05-16 00:00:59.145 257 INFO nova.wsgi.server [-] GET",
                    {"time": "2030-05-16T00:00:59.145", "pid": 257, "program": "nova.wsgi.server", "body": "[-] GET"},
                ),
            ),
        ),
        _Layout(
            "oslo",
            rf"(?P<stamp>{_ISO}) (?P<pid>\d{{1,10}}) {_SEVERITY} {_NAME} ",
            stamp="iso",
            origin=_Origin.SYSLOG,
            examples=(("2030-05-16 00:00:59.145 257 INFO nova.wsgi [-] GET", {"pid": 257, "program": "nova.wsgi"}),),
        ),
        _Layout(
            "level-first-date",
            rf"\[?{_SEVERITY}\]? +\[?(?P<stamp>\d{{4}}[-/]\d\d[-/]\d\d[T _-]\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?)\]?"
            rf"(?: \[?{_NAME}\]?(?::\d{{1,6}})?:)?(?: - |:? |$)",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                (
                    "[INFO] 2030-11-02 08:11:40,011 run: Running",
                    {"program": "run", "severity": "info", "body": "Running"},
                ),
                ("[INFO] 2030-11-21 10:00:00 - hello", {"body": "hello"}),
                ("ERROR 2030-11-21 10:00:00 hello", {"severity": "error", "body": "hello"}),
            ),
        ),
        _Layout(
            "rank-word",
            rf"\[?(?P<stamp>{_ISO})\]? (?:(?P<host>(?=[\w.-]*\d)[A-Za-z][\w.-]{{1,63}}) )?rank[ =:]?"
            rf"(?P<rank>\d{{1,6}})\b:? ",
            stamp="iso",
            origin=_TRAINING,
            examples=(
                (
                    "2030-11-09 01:00:24,418 +0100 cn05 rank=3 step=1 loss=2",
                    {"time": "2030-11-09T01:00:24.418+01:00", "host": "cn05", "rank": 3, "body": "step=1 loss=2"},
                ),
                ("2030-08-31 06:00:00,798 rank0 Speed 4912 samples/sec", {"rank": 0, "body": "Speed 4912 samples/sec"}),
            ),
        ),
        _Layout(
            "bracket-date-level",
            rf"\[(?P<stamp>{_ISO})\][: ]? ?\[?{_SEVERITY}\]?(?::|,| -)? ?",
            stamp="iso",
            examples=(
                (
                    "[2030-12-10 06:56:41,099] DEBUG [m:85] Full reply",
                    {"severity": "debug", "body": "[m:85] Full reply"},
                ),
                ("[2030-12-10 06:56:41] [error] no", {"severity": "error", "body": "no"}),
            ),
        ),
        _Layout(
            "date-level",
            rf"(?P<stamp>{_ISO})[:,]? +(?:\|? ?)\[?{_SEVERITY}\]?(?: *[:|-](?: |$)| +|$)",
            stamp="iso",
            examples=(
                ("2030-12-10 06:56:41,099 WARN node is slow", {"severity": "warning", "body": "node is slow"}),
                ("2030-12-10T06:56:41Z [error] no", {"severity": "error", "body": "no"}),
            ),
        ),
        _Layout(
            "us-date-dashes",
            rf"(?P<stamp>\d{{1,2}}/\d{{1,2}}/\d{{4}} \d\d:\d\d:\d\d(?:[.,]\d{{1,6}})?) - {_SEVERITY} - {_NAME} - +",
            stamp="mdy",
            origin=_TRAINING,
            examples=(
                ("05/21/2030 12:00:00 - INFO - __main__ -   start", {"time": "2030-05-21T12:00:00", "body": "start"}),
            ),
        ),
    ),
    priority=55,
)
