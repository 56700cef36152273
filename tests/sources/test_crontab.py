"""Cron tables and systemd timers: recognised by path and content, read line by line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.model import Scalar
from triage.sources.base import RowSource
from triage.sources.crontab import SOURCE as CRONTAB
from triage.sources.timers import SOURCE as TIMERS

SEVERAL = r"""==> /etc/crontab <==
# /etc/crontab: system-wide crontab
SHELL=/bin/sh
CRON_TZ=Asia/Tokyo
17 *	* * *	root	cd / && run-parts --report /etc/cron.hourly
5 4 * * sun  batch  /opt/x/sweep --all

==> /etc/fstab <==
filer3:/vol/a /mnt/a nfs4 rw 0 0
==> crontab -l -u ada <==
# m h  dom mon dow   command
RANDOM_DELAY = 15
*/20 8-18 * jan-mar,12 Mon-Fri date +\%F >> log % first % second
#30 3 * * * rsync -a --delete /a/ /b/
# remember the milk at 5 * * * every day
@daily ~/bin/tidy
@reboot /opt/x/start
61 3 * * * /never
"""


def read(text: str) -> list[dict[str, Scalar]]:
    return [dict(row.fields) | {"line": row.line} for row in CRONTAB.rows(text.splitlines())]


def test_both_are_row_sources() -> None:
    assert isinstance(CRONTAB, RowSource)
    assert isinstance(TIMERS, RowSource)


def test_several_tables_in_one_file() -> None:
    rows = read(SEVERAL)
    assert [(r["line"], r["schedule"], r["user"]) for r in rows] == [
        (5, "17 * * * *", "root"),
        (6, "5 4 * * sun", "batch"),
        (13, "*/20 8-18 * jan-mar,12 Mon-Fri", "ada"),
        (14, "30 3 * * *", "ada"),
        (16, "@daily", "ada"),
        (17, "@reboot", "ada"),
    ]
    assert rows[0]["command"] == "cd / && run-parts --report /etc/cron.hourly"
    assert [r["tz"] for r in rows] == ["Asia/Tokyo", "Asia/Tokyo", None, None, None, None]
    assert [r["table"] for r in rows[:3]] == ["/etc/crontab", "/etc/crontab", "crontab -l -u ada"]
    assert [r["enabled"] for r in rows] == [True, True, True, False, True, True]
    assert rows[2]["command"] == "date +%F >> log"
    assert rows[2]["stdin"] == " first \n second"
    assert rows[2]["random_delay_s"] == 900.0
    assert rows[2]["dow"] == "Mon-Fri"
    assert rows[4]["minute"] is None


@pytest.mark.parametrize(
    ("line", "user", "command"),
    [
        ("17 * * * * root cd / && run-parts /etc/cron.hourly", "root", "cd / && run-parts /etc/cron.hourly"),
        ("0 1 * * * grace /opt/x/run.sh", "grace", "/opt/x/run.sh"),
        ("0 1 * * * run-parts /etc/cron.hourly", None, "run-parts /etc/cron.hourly"),
        ("0 1 * * * /usr/bin/x --all", None, "/usr/bin/x --all"),
        ("0 1 * * * [ -x /opt/y ] && /opt/y", None, "[ -x /opt/y ] && /opt/y"),
        ("0 1 * * * test -x /opt/y || exit", None, "test -x /opt/y || exit"),
        ("0 1 * * * cd /opt && ./y", None, "cd /opt && ./y"),
        ("0 1 * * * rsync -a /a/ /b/", None, "rsync -a /a/ /b/"),
    ],
)
def test_user_column_without_header(line: str, user: str | None, command: str) -> None:
    (row,) = read(line)
    assert (row["user"], row["command"]) == (user, command)


@pytest.mark.parametrize(
    ("header", "table", "form"),
    [
        ("==> /var/spool/cron/crontabs/ada <==", "/var/spool/cron/crontabs/ada", "user"),
        ("# /etc/cron.d/tidy: entries for tidy", "/etc/cron.d/tidy", "system"),
        ("=== a7: crontab -l ===", "crontab -l", "user"),
        ("root@a7:~# crontab -l", "crontab -l", "user"),
        ("+ cat /etc/crontab", "/etc/crontab", "system"),
        ("### /etc/cron.d/tidy ###", "/etc/cron.d/tidy", "system"),
    ],
)
def test_headers(header: str, table: str, form: str) -> None:
    (row,) = read(f"{header}\n3 4 * * * root /opt/x\n")
    assert (row["table"], row["form"]) == (table, form)


def test_a_comment_that_mentions_a_table_is_no_header() -> None:
    (row,) = read("==> crontab -l -u ada <==\n# see /etc/cron.d/tidy for the rest\n3 4 * * * rm -rf /x\n")
    assert (row["table"], row["user"]) == ("crontab -l -u ada", "ada")


def test_grep_and_pdsh_prefixes() -> None:
    rows = read("/etc/cron.d/tidy:3:0 4 * * * root /opt/tidy\na7: 0 5 * * * /opt/other\n")
    assert (rows[0]["table"], rows[0]["user"]) == ("/etc/cron.d/tidy", "root")
    assert rows[1]["host"] == "a7"


def test_anacrontab() -> None:
    (row,) = read("START_HOURS_RANGE=3-22\nRANDOM_DELAY=45\n1\t5\tcron.daily\tnice run-parts /etc/cron.daily\n")
    assert (row["form"], row["schedule"], row["command"]) == ("anacron", "1 5", "nice run-parts /etc/cron.daily")
    assert (row["hours"], row["random_delay_s"]) == ("3-22", 2700.0)


@pytest.mark.parametrize(
    ("path", "head", "is_one"),
    [
        ("a7/crontab-l.txt", "0 2 * * * /opt/x\n", True),
        ("a7/crontab-l.txt", "# no crontab for ada\n", True),
        ("a7/schedules.txt", SEVERAL, True),
        ("a7/notes.txt", "0 2 * * * /opt/x\n*/5 * * * * /opt/y\n", True),
        ("a7/etc/anacrontab", "1 5 cron.daily run-parts /etc/cron.daily\n", True),
        ("a7/syslog-cron.txt", "Jan  6 02:00:01 a7 CRON[12]: (root) CMD (/opt/x)\n" * 3, False),
        ("a7/var/log/cron", "Jan  6 02:00:01 a7 CROND[12]: (root) CMD (/opt/x)\n" * 3, False),
        ("a7/table.txt", "1 2 3 4 5 6 7\n2 3 4 5 6 7 8\n", False),
        ("train.log", "step 5 loss 2.0\n", False),
        ("empty", "", False),
    ],
)
def test_sniff(path: str, head: str, is_one: bool) -> None:
    assert CRONTAB.sniff(path, head) is is_one


UNITS = """# /etc/systemd/system/pull.timer
[Unit]
Description=Pull
[Timer]
OnCalendar=Mon..Fri *-*-* 03:10
RandomizedDelaySec=1h 30min
Persistent=true
# /etc/systemd/system/pull.service
[Service]
User=ops
ExecStart=-/usr/bin/rsync -a --delete /a/ /b/
"""
LIST = """NEXT                        LEFT     LAST                        PASSED  UNIT           ACTIVATES
Tue 2031-01-07 03:10:00 CET 5h left  Mon 2031-01-06 03:10:09 CET 18h ago pull.timer     pull.service
Tue 2031-01-07 00:00:00 CET 2h 1min  -                           -       logrotate.timer logrotate.service

2 timers listed.
"""


def test_timer_units() -> None:
    assert TIMERS.sniff("units.txt", UNITS)
    timer, service = TIMERS.rows(UNITS.splitlines())
    assert (timer.kind, timer.line, timer.fields["unit"]) == ("timer", 5, "pull.timer")
    assert (timer.fields["schedule"], timer.fields["random_delay_s"]) == ("Mon..Fri *-*-* 03:10", 5400.0)
    assert (service.kind, service.line, service.fields["user"]) == ("service", 11, "ops")
    assert service.fields["command"] == "/usr/bin/rsync -a --delete /a/ /b/"


def test_list_timers() -> None:
    assert TIMERS.sniff("timers.txt", LIST)
    first, second = TIMERS.rows(LIST.splitlines())
    assert (first.line, first.fields["unit"], first.fields["last"]) == (2, "pull.timer", "Mon 2031-01-06 03:10:09 CET")
    assert (second.fields["activates"], second.fields["last"]) == ("logrotate.service", None)
    assert not TIMERS.sniff("unit.service", "[Unit]\nDescription=x\n")


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from("0123456789*/-,~@#=%: \t\nabrootcd<>[]()'\"\\$"), max_size=200))
def test_no_input_raises(text: str) -> None:
    for source in (CRONTAB, TIMERS):
        source.sniff("crontab", text)
        list(source.rows(text.splitlines()))
