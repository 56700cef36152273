"""When schedules start, and what their commands do to files."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.model import Evidence, Record, Scalar
from triage.schedules import (
    Effect,
    LoggedCommand,
    Mount,
    Schedule,
    covers,
    deleted_path,
    effects,
    is_readers_complaint,
    locate,
    match_runs,
    occurrences,
    overlaps,
    read_mounts,
    same_tree,
    schedules_from_records,
    zone_of,
)
from triage.schedules.schedule import ScheduleKind
from triage.vocabulary import Origin

UTC = timezone.utc
MONDAY = datetime(2031, 1, 6, tzinfo=UTC)


def schedule(expr: str, tz: str | None = None, kind: ScheduleKind = "cron", random_delay_s: float = 0.0) -> Schedule:
    return Schedule("a7", "t", None, "x", expr, tz, True, "p", 1, expr, kind, random_delay_s)


def times(expr: str, days: int = 7, tz: str | None = None, kind: ScheduleKind = "cron") -> list[str]:
    found = occurrences(schedule(expr, kind=kind), MONDAY, MONDAY + timedelta(days=days), tz)
    return [at.strftime("%d %H:%M") for at in found]


@pytest.mark.parametrize(
    ("expr", "days", "expected"),
    [
        ("0 2 * * *", 2, ["06 02:00", "07 02:00"]),
        ("@daily", 1, ["06 00:00", "07 00:00"]),
        ("@weekly", 7, ["12 00:00"]),
        ("@reboot", 7, []),
        ("0 4 10 * 2", 7, ["07 04:00", "10 04:00"]),  # either day matches
        ("0 4 */2 * 2", 7, ["07 04:00"]),  # a star in front: both must match
        ("*/35 3 * * mon", 1, ["06 03:00", "06 03:35"]),
        ("5 1 * * 7", 7, ["12 01:05"]),
        ("10~40 2 * * *", 1, ["06 02:10"]),
        ("0 0 31 2 *", 7, []),
        ("nonsense", 7, []),
        ("0 0 0 2 * *", 7, []),  # six fields would be seconds
    ],
)
def test_cron_times(expr: str, days: int, expected: list[str]) -> None:
    assert times(expr, days) == expected


def test_zones() -> None:
    assert times("0 2 * * *", 1, "Asia/Tokyo") == ["06 17:00"]
    assert times("0 2 * * *", 1, "+01:00") == ["06 01:00"]
    own = occurrences(schedule("0 2 * * *", "Asia/Tokyo"), MONDAY, MONDAY + timedelta(days=1), "Europe/Oslo")
    assert [at.hour for at in own] == [17]
    assert zone_of("No/Where") is UTC


def test_daylight_saving_does_not_fire_twice() -> None:
    start = datetime(2031, 10, 25, 12, tzinfo=UTC)
    found = occurrences(schedule("30 2 * * *"), start, start + timedelta(days=1), "Europe/Oslo")
    assert len(found) == 1


def test_spread_of_random_starts() -> None:
    assert schedule("10~40 2 * * *").spread_s == 30 * 60
    assert schedule("~ 2 * * *").spread_s == 59 * 60
    assert schedule("0 2 * * *", random_delay_s=900).spread_s == 900


@pytest.mark.parametrize(
    ("expr", "days", "expected"),
    [
        ("*-*-* 02:00:00", 1, ["06 02:00"]),
        ("Mon..Wed *-*-* 08..10:00/30", 1, ["06 08:00", "06 08:30", "06 09:00", "06 09:30", "06 10:00", "06 10:30"]),
        ("Sun *-*-1..7 03:10", 7, []),
        ("Sun *-*-8..14 03:10", 7, ["12 03:10"]),
        ("weekly", 7, ["06 00:00", "13 00:00"]),
        ("*-*~25 04:00", 7, ["07 04:00"]),
        ("02:00 Asia/Tokyo", 1, ["06 17:00"]),
        ("Mon", 7, ["06 00:00", "13 00:00"]),
        ("what", 7, []),
    ],
)
def test_calendar_times(expr: str, days: int, expected: list[str]) -> None:
    assert times(expr, days, kind="calendar") == expected


def brief(command: str, scripts: dict[str, str] | None = None) -> list[tuple[str, str | None]]:
    return [(e.kind, e.path) for e in effects(command, scripts)]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("rsync -a --delete /m/ /t/", [("delete", "/t"), ("read-load", "/m")]),
        ("rsync -a --delete /m/run /t", [("delete", "/t/run"), ("read-load", "/m/run")]),
        ("rsync -avz /t/ vault:/b/", [("overwrite", "/b"), ("read-load", "/t")]),
        ("rsync -an --delete /m/ /t/", [("none", "/t"), ("none", "/m")]),
        ("rsync --delete /m/ /t/", [("none", "/t"), ("read-load", "/m")]),
        ("rsync -a --delete --no-delete /m/ /t/", [("overwrite", "/t"), ("read-load", "/m")]),
        ("rsync -a -u /m/ /t/", [("none", "/t"), ("read-load", "/m")]),
        ("rsync -a --inplace /m/ /t/", [("overwrite", "/t"), ("read-load", "/m")]),
        ("rsync -a --remove-source-files /t/ /m/", [("overwrite", "/m"), ("delete", "/t")]),
        ("rsync -a -e 'ssh -p 22' --bwlimit 9 --delete /m/ /t/", [("delete", "/t"), ("read-load", "/m")]),
        ("cd /t/ckpt && rm -rf old_*", [("delete", "/t/ckpt/old_*")]),
        ("find /t -name '*.pt' -mtime +7 -delete", [("delete", "/t")]),
        ("find /t -type f -exec rm {} \\;", [("delete", "/t")]),
        ("find /t -type f", [("none", "/t")]),
        ("ls -t /t | tail -n +5 | xargs rm -rf", [("delete", "/t")]),
        ('find /t -type d | while read d; do rm -r "$d"; done', [("none", "/t"), ("delete", "/t/*")]),
        ("for d in /t/a /t/b; do rm -rf $d/tmp; done", [("delete", "/t/*/tmp")]),
        ("tmpwatch -m 48 /t", [("delete", "/t")]),
        ("truncate -s 0 /t/x.log", [("truncate", "/t/x.log")]),
        ("> /t/x.log", [("truncate", "/t/x.log")]),
        ("echo hi >> /t/x.log 2>&1", []),
        ("mv /t/a /m/a", [("delete", "/t/a"), ("overwrite", "/m/a")]),
        ("cp -f /m/a /t/a", [("read-load", "/m/a"), ("overwrite", "/t/a")]),
        ("rclone sync cold:m /t", [("delete", "/t")]),
        ("rclone copy /t cold:m", [("read-load", "/t")]),
        ("aws s3 sync s3://b/m /t --delete", [("delete", "/t")]),
        ("gsutil -m rsync -d -r gs://b/m /t", [("delete", "/t")]),
        ("tar czf /m/x.tgz --remove-files /t/a", [("delete", "/t/a")]),
        ("nice -n 19 ionice -c3 flock -w 5 /l timeout -k 5 1h env A=1 rm -r /t", [("lock", "/l"), ("delete", "/t")]),
        ("sh -c 'cd /t && rm -r x'", [("delete", "/t/x")]),
        ('D=/t; rm -rf "${D}/x"', [("delete", "/t/x")]),
        ("rm -rf ${UNSET:-/t}/x", [("delete", "/t/x")]),
        ("/usr/sbin/fstrim -av", [("read-load", None)]),
        ("smartctl -a /dev/nvme0n1 >/dev/null", [("read-load", None)]),
        ("apt-get update", [("none", None)]),
        ("apt-get -y dist-upgrade", [("update", None)]),
        ("systemctl is-active x", [("none", None)]),
        ("test -x /usr/sbin/anacron || { cd / && run-parts /etc/cron.daily; }", [("none", None)]),
        ("/opt/ops/nightly.sh >/dev/null 2>&1", [("unknown", None)]),
    ],
)
def test_effects(command: str, expected: list[tuple[str, str | None]]) -> None:
    assert brief(command) == expected


def test_details_of_effects() -> None:
    (found, _) = effects("rsync -a --delete --exclude=ckpt/ --exclude '*.tmp' /m/ a9:/t/")
    assert (found.host, found.role, found.option) == ("a9", "destination", "--delete")
    assert not found.touches("/t/run/ckpt/step_1")
    assert not found.touches("/t/run/w.tmp")
    assert found.touches("/t/run/logs")
    assert effects("rsync -a --delete --delete-excluded --exclude=ckpt/ /m/ /t/")[0].touches("/t/ckpt/x")
    (cleaner,) = effects("find /t -name '*.log' -mtime +2 -delete")
    assert cleaner.min_age_s == 2 * 86400
    assert not cleaner.touches("/t/a.pt")
    (_, piped) = effects("find /t -mmin +30 -print0 | xargs -0 rm")
    assert piped.min_age_s == 1800
    (remote,) = effects("ssh ops@a9 'rm -rf /t'")
    assert remote.host == "a9"


SCRIPTS = {
    "hosts/a7/opt/ops/nightly.sh": (
        '#!/bin/bash\n# pull\nPOOL=/mnt/pool\nDST="$POOL/train"\ncat <<EOF\nrm -rf /never\nEOF\n'
        "if true; then\n  /usr/bin/rsync -a \\\n    --delete /m/ ${DST}/\nfi\n"
    ),
    "hosts/a7/etc/cron.daily/sweep": "#!/bin/sh\nrm -rf /t/old\n",
    "hosts/a7/opt/ops/sweep.py": (
        "#!/usr/bin/env python3\nimport shutil, subprocess\nDST = '/t'\nshutil.rmtree(DST)\n"
        "subprocess.run(['rsync', '-a', '--delete', '/m/', DST])\n"
    ),
    "hosts/a7/etc/logrotate.d/train": "/t/*.log {\n  copytruncate\n}\n",
    "hosts/a7/opt/ops/loop.sh": "/opt/ops/loop.sh\n",
}


def test_scripts_of_the_bundle_are_read() -> None:
    (deleted, _) = effects("/opt/ops/nightly.sh", SCRIPTS)
    assert (deleted.kind, deleted.path, deleted.script, deleted.line) == (
        "delete",
        "/mnt/pool/train",
        "hosts/a7/opt/ops/nightly.sh",
        9,
    )
    assert brief("bash /opt/ops/nightly.sh", SCRIPTS)[0] == ("delete", "/mnt/pool/train")
    assert brief("run-parts /etc/cron.daily", SCRIPTS) == [("delete", "/t/old")]
    assert brief("python3 /opt/ops/sweep.py", SCRIPTS) == [("delete", "/t"), ("delete", "/t"), ("read-load", "/m")]
    assert brief("logrotate /etc/logrotate.d/train", SCRIPTS) == [("truncate", "/t/*.log")]
    assert brief("/opt/ops/loop.sh", SCRIPTS) == []


def test_overlap() -> None:
    assert overlaps("/t", "/t/a/b")
    assert overlaps("/t/a//b/", "/t/./a")
    assert overlaps("/t/*/x", "/t/run/x/y")
    assert not overlaps("/t/a", "/t/ab")
    assert not overlaps("t", "/t")
    assert covers("/", "/t")
    assert not covers("/t/a", "/t")


def test_mounts_tie_hosts() -> None:
    lines = [
        "filer3:/vol/a on /mnt/a type nfs4 (rw)",
        "bee_nodev on /mnt/b type beegfs (rw,cfg=1)",
        "/dev/x on / type xfs (rw)",
    ]
    mounts = [*read_mounts(lines, "a7.example.net"), *read_mounts(["filer3:/vol /data nfs4 rw 0 0"], "a8")]
    assert len(mounts) == 4
    assert locate("a7", "/mnt/a/x", mounts).path == "/vol/a/x"
    assert same_tree(("a7", "/mnt/a/x"), ("a8", "/data/a/x/y"), mounts) == 1.0
    assert same_tree(("a7", "/mnt/a/x"), ("a8", "/data/b"), mounts) == 0.0
    assert same_tree(("filer3", "/vol/a"), ("a7", "/mnt/a/x"), mounts) == 1.0
    assert same_tree(("a7", "/mnt/a"), ("a9", "/mnt/a/x"), mounts) == 0.7
    assert same_tree(("x1", "/mnt/q"), ("x2", "/mnt/q"), []) == 0.5
    assert same_tree(("x1", "/tmp/q"), ("x2", "/tmp/q"), []) == 0.0
    assert same_tree((None, "/mnt/q"), ("x2", "/mnt/q"), []) == 0.7
    other = [Mount("x1", "f1:/v", "/mnt/q", "nfs"), Mount("x2", "f2:/v", "/mnt/q", "nfs")]
    assert same_tree(("x1", "/mnt/q"), ("x2", "/mnt/q"), other) == 0.0


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (
            "2031/01/06 02:17:05 [31702] del. vault [192.0.2.9] train () runs/e/step_12.pt.tmp 0",
            "runs/e/step_12.pt.tmp",
        ),
        ("Jan  6 02:17:05 a7 CROND[31637]: (root) CMDOUT (deleting runs/e/step_12.pt)", "runs/e/step_12.pt"),
        ("2031/01/06 02:17:05 [31702] deleting runs/e/", "runs/e"),
        ("*deleting   runs/e/step_12.pt", "runs/e/step_12.pt"),
        ("removed '/t/x.pt'", "/t/x.pt"),
        ("tmpreaper: (PID 123) removing /t/x.pt", "/t/x.pt"),
        ("we are deleting old stuff: see wiki", None),
        ('file has vanished: "/t/x.pt.tmp"', None),
    ],
)
def test_what_tools_say_they_deleted(line: str, path: str | None) -> None:
    assert deleted_path(line) == path


def test_a_copying_rsync_only_complains() -> None:
    assert is_readers_complaint(
        "rsync warning: some files vanished before they could be transferred (code 24) at main.c"
    )


def record(path: str, line: int, host: str | None, fields: dict[str, Scalar]) -> Record:
    return Record(path, line, line, "text", "text", Origin.CRONTAB, "crontab", host=host, attributes=fields)


def test_paths_overrule_the_guessed_form() -> None:
    fields: dict[str, Scalar] = {
        "form": "user", "form_is_sure": False, "schedule": "0 2 * * *", "user": None, "enabled": True,
        "command": "grace tool /x", "rest": "grace tool /x",
    }  # fmt: skip
    system, user = schedules_from_records(
        [record("a7/etc/cron.d/x", 1, "a7", fields), record("a7/var/spool/cron/root", 1, "a7", fields)]
    )
    assert (system.user, system.command) == ("grace", "tool /x")
    assert (user.user, user.command) == ("root", "grace tool /x")


def test_timers_get_their_service_and_states_fill_in() -> None:
    rows = [
        record("u/pull.timer", 4, "a7", {"form": "timer", "schedule": "daily", "unit": None}),
        record("u/pull.service", 3, "a7", {"form": "service", "command": "rm -rf /t", "user": "ops", "unit": None}),
        record("t.txt", 2, "a7", {"form": "timer-state", "unit": "x.timer", "last": "Mon 2031-01-06 03:10:09 CET"}),
    ]
    pull, state = schedules_from_records(rows, {"a7": "Europe/Oslo"})
    assert (pull.table, pull.command, pull.user, pull.kind) == ("pull.timer", "rm -rf /t", "ops", "calendar")
    assert occurrences(state, MONDAY, MONDAY + timedelta(days=1)) == [datetime(2031, 1, 6, 2, 10, 9, tzinfo=UTC)]


def test_logged_runs_join_their_line() -> None:
    known = schedule("0 2 * * *")
    seen = Evidence("cron.log", 1, "CMD (x)")
    runs, extra = match_runs(
        [LoggedCommand("a7", None, " x ", MONDAY, seen), LoggedCommand("a7", "root", "y", MONDAY, seen)], [known]
    )
    assert runs[0].schedule is known
    assert [(s.command, s.kind) for s in extra] == [("y", "observed")]


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.sampled_from("rm find|>;&'\"$(){}`\\/*-t=\n<#"), max_size=120))
def test_any_shell_text_is_survived(text: str) -> None:
    assert all(isinstance(e, Effect) for e in effects(text, {"x/rm": text}))
