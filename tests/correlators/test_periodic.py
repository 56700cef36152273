"""The periodic correlator: who is named, who is not, and what is said about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

import pytest

from triage.correlators._chance import binomial_tail, exposure_tail, range_tail
from triage.correlators._periodic import Culprit, Harm, Site, Write, find_culprits
from triage.model import Evidence, When
from triage.schedules import Mount, Schedule, ScheduleRun
from triage.vocabulary import TimeBasis

UTC = timezone.utc
NIGHT = datetime(2031, 1, 6, tzinfo=UTC)
TREE = "/mnt/pool/train"
SITE = Site(
    mounts=[Mount(h, "filer:/v", "/mnt/pool", "nfs4") for h in ("a7", "a8", "b1")],
    racks={"a7": "rackA", "a8": "rackA", "b1": "rackB"},
)
GUILTY = f"rsync -a --delete /mnt/mirror/ {TREE}/"


def line(
    command: str, expr: str = "0 2 * * *", host: str | None = "a8", number: int = 1, enabled: bool = True
) -> Schedule:
    return Schedule(host, "t", "root", command, expr, None, enabled, f"{host}/crontab", number, f"{expr} {command}")


def harm(
    day: int, minute: float, *, what: str = "2 of 8 shards not found", path: str | None = None, text: str = ""
) -> Harm:
    at = NIGHT + timedelta(days=day, minutes=minute)
    seen = Evidence("train.log", day + 1, text or what)
    direct = "not found" in what or "truncated" in what
    return Harm(When(at, 1.0, TimeBasis.STAMP), "a7", "rackA", "run7", path, what, seen, direct)


def save(day: int, minute: float, lasts: float = 6) -> Write:
    at = NIGHT + timedelta(days=day, minutes=minute)
    step = int(at.timestamp()) // 60
    return Write(at, at + timedelta(minutes=lasts), "a7", "run7", f"{TREE}/run7/ckpt/step_{step}")


def logged(schedule: Schedule, *days: int, minute: float = 120) -> list[ScheduleRun]:
    seen = Evidence("cron.log", 1, "CMD")
    return [ScheduleRun(schedule, NIGHT + timedelta(days=d, minutes=minute, seconds=1), seen) for d in days]


def named(found: Sequence[Culprit]) -> list[int]:
    return [c.schedule.line for c in found]


NIGHTS = [harm(d, 137 + d) for d in (0, 1, 3)]
SAVES = [save(d, m) for d in range(4) for m in (20, 121, 200, 260) if (d, m) != (2, 121)]


def test_the_ghost_is_told() -> None:
    guilty = line(GUILTY)
    (found,) = find_culprits([guilty], logged(guilty, 0, 1, 2, 3), NIGHTS, SAVES, SITE)
    assert found.schedule is guilty
    assert (found.rack, found.hosts, found.quiet_nights, found.quiet_exposed) == ("rackA", ("a7",), 1, 0)
    assert len(found.runs) == 3
    assert all(run.proof for run in found.runs)
    assert found.p_coincidence < 0.01
    text = " ".join(found.reasons)
    for part in (
        "rsync --delete can delete /mnt/pool/train",
        "3 of 3",
        "1 starts without harm",
        "none of them during a save",
    ):
        assert part in text


def test_nearer_innocent_lines_lose() -> None:
    schedules = [
        line("cd / && run-parts --report /etc/cron.hourly", "17 * * * *", number=2),
        line("/usr/sbin/smartctl -a /dev/nvme0n1 >> /var/log/s.log", "15 2 * * *", number=3),
        line(f"rsync -a {TREE}/ /mnt/mirror/", "16 2 * * *", number=4),
        line("rsync -a --delete /etc/ vault:/etc/", "17 2 * * *", number=5),
        line(GUILTY, "16 2 * * *", number=6, enabled=False),
        line(GUILTY.replace("-a", "-an"), "16 2 * * *", number=7),
        line(GUILTY),
    ]
    assert named(find_culprits(schedules, [], NIGHTS, SAVES, SITE)) == [1]
    assert find_culprits(schedules[:-1], [], NIGHTS, SAVES, SITE) == []


@pytest.mark.parametrize(
    "command",
    [
        f"rsync -a --delete {TREE}/ /mnt/mirror/",  # direction: training is the source
        f"rsync -a --delete --exclude=ckpt/ /mnt/mirror/ {TREE}/run7/",
        f"find {TREE} -mtime +7 -delete",  # last night's checkpoint is too young
        "rsync -a --delete /mnt/mirror/ /mnt/pool/home/",
        "tmpreaper 7d /tmp",
        "apt-get -y upgrade",  # takes no shards
    ],
)
def test_commands_that_cannot_have_done_it(command: str) -> None:
    assert find_culprits([line(command)], [], NIGHTS, SAVES, SITE) == []


@pytest.mark.parametrize(
    "command",
    [
        f"rsync -a --remove-source-files {TREE}/ vault:/old/",
        f"rsync -a --del --exclude='*.log' vault:/m/ {TREE}/",
        f"find {TREE}/run7/ckpt -name 'step_*' -delete",
        f"cd {TREE} && rm -rf run7/ckpt/*",
        f"mv {TREE}/run7/ckpt/* /mnt/old/",
        "ssh filer 'rm -rf /v/train/run7'",
        f"flock -n /l nice rclone sync cold:m {TREE}",
    ],
)
def test_commands_that_can(command: str) -> None:
    assert named(find_culprits([line(command)], [], NIGHTS, SAVES, SITE)) == [1]


def test_scripts_are_read_and_cited() -> None:
    scripts = {
        "hosts/a8/opt/ops/n.sh": f"#!/bin/sh\nD={TREE}\nrsync -a --delete /m/ $D/\n",
        "hosts/b1/opt/ops/n.sh": "true\n",
    }
    site = Site(SITE.mounts, SITE.racks, scripts)
    (found,) = find_culprits(
        [line("/opt/ops/n.sh"), line("/opt/ops/n.sh", host="b1", number=2)], [], NIGHTS, SAVES, site
    )
    assert found.schedule.line == 1
    assert (found.effects[0].script, found.effects[0].line) == ("hosts/a8/opt/ops/n.sh", 3)
    assert "hosts/a8/opt/ops/n.sh:3" in found.reasons[0]


def test_a_program_nobody_can_read_needs_more() -> None:
    opaque = line("/opt/ops/nightly-backup.sh", host="a7")
    many = [harm(d, 137) for d in range(6)]
    (found,) = find_culprits([opaque], [], many, [], SITE)
    assert found.effects[0].kind == "unknown"
    assert find_culprits([opaque], [], many[:2], [], SITE) == []
    assert find_culprits([line("/opt/ops/report.sh", host="a7")], [], many, [], SITE) == []


def test_one_night_needs_direct_evidence() -> None:
    guilty = line(GUILTY)
    runs = logged(guilty, 0)
    assert named(find_culprits([guilty], runs, [harm(0, 137)], [save(0, 121)], SITE)) == [1]
    assert find_culprits([guilty], runs, [harm(0, 137, what="loss went up")], [save(0, 121)], SITE) == []
    assert find_culprits([guilty], runs, [harm(0, 600)], [save(0, 590)], SITE) == []


def test_recurring_metric_drops_without_a_word_of_files() -> None:
    drops = [harm(d, 137 + d % 3, what="validation metric dropped") for d in (0, 1, 3, 4)]
    assert named(find_culprits([line(GUILTY)], [], drops, SAVES, SITE)) == [1]


def test_blind_times_name_nobody() -> None:
    drops = [harm(d, m, what="validation metric dropped") for d, m in ((0, 137), (1, 700), (2, 1200), (3, 30))]
    assert find_culprits([line(GUILTY)], [], drops, SAVES, SITE) == []


def test_a_period_of_its_own_is_no_ghost() -> None:
    every = [harm(0, 137 + 90 * i, what="evaluation score dropped") for i in range(30)]
    assert find_culprits([line(GUILTY)], [], every, SAVES, SITE) == []


def test_a_line_that_did_not_run_is_innocent() -> None:
    guilty, other = line(GUILTY), line("/usr/bin/true", "0 * * * *", number=2)
    runs = [*logged(guilty, 5, 6), *(r for d in range(7) for r in logged(other, d))]
    assert find_culprits([guilty, other], runs, NIGHTS, SAVES, SITE) == []


def test_other_mount_of_the_same_name() -> None:
    site = Site([Mount("a7", "f1:/v", "/mnt/pool", "nfs4"), Mount("b1", "f2:/v", "/mnt/pool", "nfs4")], SITE.racks)
    assert find_culprits([line(GUILTY, host="b1")], [], NIGHTS, SAVES, site) == []


def test_rsyncs_own_word() -> None:
    guilty = line(GUILTY)
    step = save(0, 121).path.removeprefix(TREE + "/")
    told = harm(0, 122, what="rsync", text=f"2031/01/06 02:02:05 [7] del. vault [192.0.2.9] train () {step}/a.pt 0")
    (found,) = find_culprits([guilty], [], [told, harm(0, 137)], [save(0, 121)], SITE)
    assert found.witness
    assert any("itself says" in reason for reason in found.reasons)
    # Tidying of old files hurts nobody.
    old = harm(0, 122, what="rsync", text="2031/01/06 02:02:05 [7] deleting run7/ckpt/step_1")
    assert find_culprits([guilty], [], [old], [save(0, 700)], SITE) == []


def test_a_copying_rsync_that_lost_sight_of_a_file_is_no_harm() -> None:
    vanished = harm(0, 121, text=f'file has vanished: "{TREE}/run7/ckpt/step_1.tmp"')
    assert find_culprits([line(GUILTY)], logged(line(GUILTY), 0), [vanished], [], SITE) == []


def test_updates_explain_mismatches_on_their_host() -> None:
    update = line("unattended-upgrade", "0 6 * * *", host="a7")
    broken = [harm(d, 365, what="NVML driver/library version mismatch") for d in range(3)]
    assert named(find_culprits([update], [], broken, [], SITE)) == [1]
    assert find_culprits([line("unattended-upgrade", "0 6 * * *", host="b1")], [], broken, [], SITE) == []


def test_harm_without_times_needs_a_name() -> None:
    guilty, seen = line(GUILTY), Evidence("train.log", 9, "No such file or directory")
    path = save(0, 121).path
    lost = Harm(When(), "a7", "rackA", "run7", path, "checkpoint not found", seen, direct=True)
    (found,) = find_culprits([guilty], [], [lost], [save(0, 121)], SITE)
    assert found.p_coincidence == 1.0
    assert find_culprits([guilty], [], [lost], [], SITE) == []


def test_found_missing_hours_later() -> None:
    guilty = line(GUILTY)
    written = save(0, 121)
    late = harm(0, 900, path=f"{written.path}/model-3.pt")
    (found,) = find_culprits([guilty], logged(guilty, 0), [late], [written, save(0, 850)], SITE)
    assert found.delays_s[0] < 600


def test_no_input_no_claim() -> None:
    assert find_culprits([], [], [], []) == []
    assert find_culprits([line(GUILTY)], [], [], []) == []


def test_exact_chances() -> None:
    assert binomial_tail(2, 2, 0.1) == pytest.approx(0.01)
    assert binomial_tail(0, 5, 0.1) == 1.0
    assert exposure_tail(3, 3, 3, 12) == pytest.approx(1 / 220)
    assert range_tail(2, 2, 60, 600) == pytest.approx(0.2)
    assert range_tail(1, 1, 60, 600) == 1.0
