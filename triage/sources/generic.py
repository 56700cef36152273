"""Last resort: a date at the start of a line, alone or in brackets. What follows is read again (host label, logger)."""

from __future__ import annotations

from triage.sources._lines import BSD as _BSD
from triage.sources._lines import CLOCK as _CLOCK
from triage.sources._lines import ISO as _ISO
from triage.sources._lines import LEVEL as _LEVEL
from triage.sources._lines import NO_HOST as _NO_HOST
from triage.sources._lines import Lines as _Lines
from triage.sources.base import Layout as _Layout

GENERIC = _Lines(
    "generic",
    (
        _Layout(
            "json",
            r"(?P<json>\{)",
            examples=(
                (
                    '{"time": "2030-05-06T07:08:09Z", "level": "error", "msg": "lost", "hostname": "n3", "rank": 4}',
                    {"time": "2030-05-06T07:08:09+00:00", "severity": "error", "host": "n3", "rank": 4, "body": "lost"},
                ),
            ),
        ),
        _Layout(
            "iso-host",
            rf"(?P<stamp>{_ISO}) (?P<host>\d{{1,3}}(?:\.\d{{1,3}}){{3}}"
            rf"|{_NO_HOST}(?=[\w.-]{{0,40}}\d)[A-Za-z][\w.-]{{1,62}}): ",
            stamp="iso",
            wrapper=True,
            examples=(
                ("2030-12-22 18:00:34 10.9.1.12: {'loss': 1.8}", {"host": "10.9.1.12", "body": "{'loss': 1.8}"}),
                ("2030-12-22 18:00:34 cn12: [rank1]: boom", {"host": "cn12", "rank": 1, "body": "boom"}),
            ),
        ),
        _Layout(
            "iso",
            rf"(?P<stamp>{_ISO})(?: - | \| |[:,;]? |\t|$)",
            stamp="iso",
            wrapper=True,
            examples=(
                ("2030-02-24T10:05:00.921Z [rank7]: boom", {"time": "2030-02-24T10:05:00.921+00:00", "rank": 7}),
                (
                    "2030-04-09 19:58:07.123000 Hello, World!",
                    {"time": "2030-04-09T19:58:07.123", "body": "Hello, World!"},
                ),
            ),
        ),
        _Layout(
            "iso-bracket",
            rf"\[(?P<stamp>{_ISO})\]:? ?",
            stamp="iso",
            wrapper=True,
            examples=(("[2030-07-07 20:41:02] slurm job 26: 4 nodes", {"body": "slurm job 26: 4 nodes"}),),
        ),
        _Layout(
            "iso-parenthesis",
            rf"[(<](?P<stamp>{_ISO})[)>]:? ?",
            stamp="iso",
            wrapper=True,
            examples=(("(2030-07-07 20:41:02) hello", {"time": "2030-07-07T20:41:02", "body": "hello"}),),
        ),
        _Layout(
            "tagged-iso",
            rf"\[(?P<tag>[A-Za-z][\w. -]{{0,40}})\] ?:? ?\[?(?P<stamp>{_ISO})\]?(?:[:,]| -)? ?",
            stamp="iso",
            examples=(("[OUTPUT] 2030-06-26T14:27:00.994675 Ending epoch 1", {"body": "Ending epoch 1"}),),
        ),
        _Layout(
            "iso-loose",
            r"(?P<stamp>\d{4}[-/.]\d\d[-/.]\d\d[T _:-]{1,2}\d\d[:.]\d\d[:.]\d\d(?:[.,]\d{1,9})?)(?![.,:]?\d)[:,]? ?",
            stamp="iso",
            examples=(
                (
                    "2030/01/21 10:56:10 plugin: device lost",
                    {"time": "2030-01-21T10:56:10", "body": "plugin: device lost"},
                ),
                ("2030-10-08 16:56:38,344:WARN:foo bar", {"time": "2030-10-08T16:56:38.344"}),
            ),
        ),
        _Layout(
            "ctime",
            r"(?P<stamp>[A-Za-z][^\W\d]{1,3}\.?,? [^\W\d]{3,9}\.? {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,6})?"
            r"(?: (?:[A-Z]{3,5}|[+-]\d{4}))? \d{4})(?:[:,]? |$)",
            stamp="bsd",
            examples=(
                ("Wed May 21 08:00:03 EST 2031 line 3", {"time": "2031-05-21T08:00:03-05:00", "body": "line 3"}),
            ),
        ),
        _Layout(
            "ctime-bracket",
            r"\[(?P<stamp>[A-Za-z][^\W\d]{1,3}\.?,? [^\W\d]{3,9}\.? {1,2}\d{1,2} \d\d:\d\d:\d\d"
            r"(?:\.\d{1,6})? \d{4})\] ?"
            rf"(?:\[(?:[\w-]{{1,40}}:)?(?P<severity>{_LEVEL})\d?\] )?(?:\[pid (?P<pid>\d{{1,10}})(?::tid "
            rf"(?P<tid>\d{{1,20}}))?\] )?",
            stamp="bsd",
            examples=(
                (
                    "[Sat Jul 20 21:34:49.453232 2030] [core:error] [pid 17512:tid 14] [client 9.0.0.1:5] AH01797",
                    {"time": "2030-07-20T21:34:49.453232", "severity": "error", "pid": 17512},
                ),
            ),
        ),
        _Layout(
            "day-month-year",
            r"[\[(]?(?P<stamp>\d{1,2}[ /-][A-Za-z]{3,9}[ /-]\d{4}[ :]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?"
            r"(?: [+-]\d{4})?)[\])]?:? ?",
            stamp="day_first",
            examples=(("25 Apr 2030 05:32:35.018 * ready", {"time": "2030-04-25T05:32:35.018", "body": "* ready"}),),
        ),
        _Layout(
            "bsd-bracket",
            rf"\[(?P<stamp>{_BSD})\] ?",
            stamp="bsd",
            wrapper=True,
            examples=(("[Mar  4 05:06:07] hello", {"time": "--03-04T05:06:07", "body": "hello"}),),
        ),
        _Layout(
            "bsd-level",
            rf"(?P<stamp>{_BSD}) \[?(?P<severity>{_LEVEL})\]?:? ",
            stamp="bsd",
            examples=(("Mar 04 05:06:07 INFO starting", {"host": None, "severity": "info", "body": "starting"}),),
        ),
        _Layout(
            "bsd-bare",
            rf"(?P<stamp>{_BSD})(?:: | - | |$)",
            stamp="bsd",
            examples=(("Mar  4 05:06:07 - hello", {"time": "--03-04T05:06:07", "body": "hello"}),),
        ),
        _Layout(
            "spark",
            rf"(?P<stamp>\d\d/\d\d/\d\d \d\d:\d\d:\d\d) (?P<severity>{_LEVEL}) (?P<program>[\w.$]{{1,120}}): ",
            stamp="yy",
            examples=(
                (
                    "30/06/09 20:10:40 INFO x.Y: ready",
                    {"severity": "info", "time": "2030-06-09T20:10:40", "body": "ready"},
                ),
            ),
        ),
        _Layout(
            "us-date",
            r"[\[(]?(?P<stamp>\d{1,2}/\d{1,2}/(?:\d{4}|\d\d)[ ,-]{1,2}\d\d:\d\d:\d\d(?:[.,]\d{1,6})?"
            r"(?: [AP]M)?)[\])]?:? ?"
            rf"(?:- |\[?(?P<severity>{_LEVEL})\]?:? +)?",
            stamp="mdy",
            examples=(
                ("[12/09/2030 13:56:50] INFO   Training script", {"severity": "info", "body": "Training script"}),
                ("10/26/2030 15:50:41 [LOGIN_ERROR] x", {"time": "2030-10-26T15:50:41"}),
            ),
        ),
        _Layout(
            "dotted-date",
            r"\[?(?P<stamp>\d{1,2}\.\d{1,2}\.\d{4}[ ,]{1,2}\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)\]?:? ?",
            stamp="dmy",
            examples=(("21.05.2030 12:00:00 hi", {"time": "2030-05-21T12:00:00", "body": "hi"}),),
        ),
        _Layout(
            "month-day",
            rf"\[?(?P<stamp>\d\d[/.-]\d\d \[?{_CLOCK})\]? *(?:[|-] )?(?:\[?(?P<severity>{_LEVEL})\]?:? +(?:\| )?)?",
            stamp="md",
            examples=(
                ("08/21 [01:53:34] INFO     | >> [*] Computing", {"time": "--08-21T01:53:34", "severity": "info"}),
                ("03-17 16:13:38.811 hello", {"time": "--03-17T16:13:38.811", "body": "hello"}),
            ),
        ),
        _Layout(
            "short-year",
            rf"(?P<stamp>\d\d[-/]\d\d[-/]\d\d {_CLOCK})(?: :|:)? (?:\[?(?P<severity>{_LEVEL})\]?:? )?",
            stamp="yy",
            examples=(
                ("30-09-07 00:19:44.425 : <epoch:  0>", {"time": "2030-09-07T00:19:44.425", "body": "<epoch:  0>"}),
                ("30-09-07 00:19:44 INFO hi", {"severity": "info", "body": "hi"}),
            ),
        ),
        _Layout(
            "compact",
            r"(?P<stamp>\d{8}(?:[-_T]\d\d:?\d\d:?\d\d| {1,4}\d\d:\d\d:\d\d)(?:[.,:]\d{1,6})?Z?)(?:[ |:,]|$)",
            stamp="compact",
            examples=(("20301223T221529Z hello", {"time": "2030-12-23T22:15:29+00:00", "body": "hello"}),),
        ),
        _Layout(
            "clock-bracket",
            rf"\[(?P<stamp>{_CLOCK})\] ?(?:\[?(?P<severity>{_LEVEL})\]?:? )?",
            stamp="clock",
            examples=(
                (
                    "[15:33:36] ../src/storage.cc:199: pooled",
                    {"time": "T15:33:36", "body": "../src/storage.cc:199: pooled"},
                ),
            ),
        ),
        _Layout(
            "clock-level",
            rf"(?P<stamp>{_CLOCK}) +(?:\[?(?P<severity>{_LEVEL})\]?:? +|(?P<program>[\w.-]{{1,60}}) "
            rf"(?P<severity2>{_LEVEL}):? +)",
            stamp="clock",
            examples=(("00:00:01.000 foo DEBUG  hello", {"time": "T00:00:01", "severity": "debug", "body": "hello"}),),
        ),
        _Layout(
            "numbered-iso",
            rf"\d{{1,6}} (?P<stamp>{_ISO}) ",
            stamp="iso",
            examples=(("12 2030-05-01 12:00:00 +0000 1 Corrected error(s)", {"body": "1 Corrected error(s)"}),),
        ),
        _Layout(
            "labelled-ctime",
            r"[\t =]{0,20}(?P<body>(?!Build|Built|Compiled)[A-Z][\w() ]{1,40}?(?: at:?| time:?) {1,4}"
            r"(?P<stamp>[A-Z][a-z]{2} [A-Z][a-z]{2} "
            r"{1,2}\d{1,2} \d\d:\d\d:\d\d(?: [A-Z]{3,4})? \d{4})[\s=]*$)",
            stamp="bsd",
            examples=(
                ("\tSummary at:   Thu Mar 14 19:21:17 UTC 2030", {"time": "2030-03-14T19:21:17+00:00"}),
                ("HPL() start time Fri Feb  1 16:33:45 2030", {"time": "2030-02-01T16:33:45"}),
            ),
        ),
        _Layout(
            "level-word",
            r"(?P<body>(?:\[(?P<severity>DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\]:?"
            r"|(?P<severity2>DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL):) )",
            examples=(
                (
                    "WARNING: no metadata file",
                    {"severity": "warning", "body": "WARNING: no metadata file", "time": None},
                ),
                ("[ERROR] no metadata file", {"severity": "error", "body": "[ERROR] no metadata file"}),
            ),
        ),
    ),
    priority=90,
)
