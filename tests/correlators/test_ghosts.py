"""The bar: the right crontab line in at least 95 % of ghosts, a false claim in under 1 % of blind failures.

A ghost is a forgotten scheduled job that harms a training job on some nights, among innocent entries.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from triage.correlators._periodic import Culprit, Harm, Site, Write, find_culprits
from triage.model import Evidence, Record, When
from triage.schedules import (
    LoggedCommand,
    Mount,
    Schedule,
    ScheduleRun,
    match_runs,
    occurrences,
    schedules_from_records,
)
from triage.sources.crontab import SOURCE
from triage.vocabulary import Origin, TimeBasis

UTC = timezone.utc
ZONES = ("UTC", "Europe/Oslo", "Asia/Tokyo", "America/Denver")
START = datetime(2031, 1, 6, tzinfo=UTC)


@dataclass
class Ghost:
    """One generated story; ``culprit`` is the (path, line) of the guilty crontab line."""

    schedules: list[Schedule]
    runs: list[ScheduleRun]
    harms: list[Harm]
    writes: list[Write]
    site: Site
    culprit: tuple[str, int]
    notes: list[str] = field(default_factory=list)


@dataclass
class _Plan:
    rng: random.Random
    rack: int
    racks: int
    zone: str
    days: int
    tree: str
    job: str
    mounts: list[Mount]
    expr: str
    delay_min: float

    def hosts(self, rack: int) -> list[str]:
        return [f"tr{rack}n{i}" for i in range(1, 5)]


def _expression(rng: random.Random) -> tuple[str, int]:
    """A random schedule and the days of log that show it often enough."""
    m, h = rng.randrange(60), rng.randrange(24)
    day = rng.choice(("sun", "mon", "2", "6"))
    return rng.choices(
        (
            (f"{m} {h} * * *", 14),
            ("@daily", 14),
            (f"{m} {h} * * 1-5", 16),
            (f"{m} {h % 12},{h % 12 + 12} * * *", 10),
            (f"{m} */6 * * *", 8),
            (f"{m} {h} */2 * *", 20),
            (f"{m} {h} * * {day}", 49),
        ),
        weights=(8, 2, 2, 2, 2, 1, 2),
    )[0]


def _plan(rng: random.Random) -> _Plan:
    racks = rng.randint(2, 5)
    rack = rng.randint(1, racks)
    expr, days = _expression(rng)
    per_rack = rng.random() < 0.6
    tree = f"/mnt/pool{rack}/jobs" if per_rack else rng.choice(("/lustre/team", "/data/shared/runs", "/gpfs/ml/train"))
    job = f"run{rng.randint(10, 99)}"
    mounts = []
    if rng.random() < 0.6:
        point = tree.rpartition("/")[0]
        for r in range(1, racks + 1):
            for i in range(1, 5):
                at = f"/mnt/pool{r}" if per_rack else point
                source = f"filer{r}:/vol/p{r}" if per_rack else "filer0:/vol/all"
                mounts.append(Mount(f"tr{r}n{i}", source, at, "nfs4"))
                mounts.append(Mount(f"tr{r}n{i}", "vault:/mirror", "/mnt/vault", "nfs4"))
    delay = rng.uniform(1, 45 if "," in expr or "*/6" in expr else 75)
    return _Plan(rng, rack, racks, rng.choice(ZONES), days, tree, job, mounts, expr, delay)


def _guilty(plan: _Plan, scripts: dict[str, str], host: str) -> str:
    rng, tree = plan.rng, plan.tree
    command = rng.choice(
        (
            f"rsync -a --delete /mnt/vault/mirror/ {tree}/",
            f"rsync -avz --del --exclude='*.log' /mnt/vault/mirror/ {tree}/ >/dev/null 2>&1",
            f"rsync -r --delete-after vault:/mirror/{plan.job}/ {tree}/{plan.job}/",
            f"rsync -a --remove-source-files {tree}/{plan.job}/ckpt/ vault:/archive/",
            f"find {tree} -name 'step_*' -delete",
            f"find {tree}/{plan.job} -type f -mmin +0 -print0 | xargs -0 rm -f",
            f"cd {tree}/{plan.job}/ckpt && rm -rf step_*",
            f"mv {tree}/{plan.job}/ckpt/* /mnt/vault/old/",
            f"rclone sync cold:mirror {tree}",
        )
    )
    if rng.random() < 0.35:
        name = rng.choice(("nightly.sh", "tidy_pool", "mirror-pull.sh"))
        body = command.replace(tree, "$POOL")
        scripts[f"hosts/{host}/opt/ops/{name}"] = f"#!/bin/bash\nset -e\nPOOL={tree}\n# pull\n{body}\n"
        command = f"/opt/ops/{name}"
    wrap = rng.choice(("", "", "nice -n 19 ", "flock -n /run/lock/x.lock ", "timeout 3h ", "ionice -c3 nice "))
    return command if "cd " in command else wrap + command


def _decoys(plan: _Plan, own: bool) -> list[str]:
    """User-form lines that do no harm, some nearer in time than the guilty one."""
    rng, tree = plan.rng, plan.tree
    near = (int(plan.delay_min) + rng.randint(0, 3)) % 60
    hour = rng.randrange(24)
    lines = [
        f"{near} * * * * cd / && run-parts --report /etc/cron.hourly",
        f"{(near - 2) % 60} * * * * /usr/sbin/smartctl -a /dev/nvme0n1 >> /var/log/smart.log 2>&1",
        f"{near} {hour} * * * rsync -a --delete /etc/ vault:/hosts/etc/",
        "*/10 * * * * find /tmp -mtime +2 -delete",
        f"{(near + 7) % 60} 4 * * 0 /usr/sbin/fstrim -av",
        f"# {near} * * * * rsync -a --delete /mnt/vault/mirror/ {tree}/",
    ]
    if own:
        lines += [
            plan.expr + f" rsync -a {tree}/ /mnt/vault/daily/",
            f"{near} * * * * rsync -an --delete /mnt/vault/mirror/ {tree}/ > /var/log/would.log",
            f"{(near - 1) % 60} * * * * find {tree} -mtime +60 -delete",
            f"{near} {hour} * * * rsync -a --delete --exclude={plan.job} /mnt/vault/mirror/ {tree}/",
        ]
    picked = rng.sample(lines, rng.randint(2, len(lines)))
    rng.shuffle(picked)
    return picked


def build(seed: int, *, is_random: bool = False) -> Ghost:
    """Build one story; ``is_random`` keeps the crontabs and draws the failure times blindly."""
    rng = random.Random(seed)
    plan = _plan(rng)
    scripts: dict[str, str] = {}
    records: list[Record] = []
    culprit = ("", 0)
    guilty_host = rng.choice(plan.hosts(plan.rack))
    for rack in range(1, plan.racks + 1):
        for host in plan.hosts(rack)[:3] + ([guilty_host] if rack == plan.rack else []):
            if any(r.host == host for r in records):
                continue
            lines = [*_decoys(plan, rack == plan.rack)]
            guilty = None
            if host == guilty_host:
                guilty = f"{plan.expr} {_guilty(plan, scripts, host)}"
                lines.insert(rng.randint(0, len(lines)), guilty)
            elif rack != plan.rack and rng.random() < 0.3 and "/pool" in plan.tree:
                lines.append(f"{int(plan.delay_min)} * * * * rsync -a --delete /mnt/vault/m/ /mnt/pool{rack}/jobs/")
            path = f"hosts/{host}/crontab-l.txt"
            text = ["==> crontab -l -u root <==", "MAILTO=''", *lines]
            if guilty:
                culprit = (path, text.index(guilty) + 1)
            records += [
                Record(path, r.line, r.line, r.text, r.text, Origin.CRONTAB, "crontab", host=host, attributes=r.fields)
                for r in SOURCE.rows(text)
            ]
    schedules = schedules_from_records(records)
    own = next(s for s in schedules if (s.path, s.line) == culprit)
    starts = occurrences(own, START, START + timedelta(days=plan.days), plan.zone)
    racks = {h: f"rack{r}" for r in range(1, plan.racks + 1) for h in plan.hosts(r)}
    site = Site(plan.mounts, racks, scripts, dict.fromkeys(racks, plan.zone))
    harms, writes = _harm(plan, starts, is_random)
    runs: list[ScheduleRun] = []
    if rng.random() < 0.6:
        logged = [
            LoggedCommand(own.host, own.user, own.command, at + timedelta(seconds=1), Evidence("cron.log", i, "CMD"))
            for i, at in enumerate(starts, 1)
        ]
        runs, _ = match_runs(logged, schedules)
    return Ghost(schedules, runs, harms, writes, site, culprit)


def _harm(plan: _Plan, starts: list[datetime], is_random: bool) -> tuple[list[Harm], list[Write]]:
    rng = plan.rng
    most = min(len(starts), 9)
    count = rng.randint(min(3, most), most)
    picked = sorted(rng.sample(starts, count))
    host = rng.choice(plan.hosts(plan.rack))
    direct, named, shows_saves = rng.random() < 0.5, rng.random() < 0.5, rng.random() < 0.6
    folder = f"{plan.tree}/{plan.job}/ckpt"
    if is_random:
        count = rng.randint(1, 9)
        times = sorted(START + timedelta(seconds=rng.uniform(0, plan.days * 86400)) for _ in range(count))
    else:
        times = [at + timedelta(minutes=max(0.5, plan.delay_min + rng.uniform(-3, 3))) for at in picked]
    saves = _saves(plan, [] if is_random else list(zip(picked, times, strict=True)), starts)
    harms = []
    for number, at in enumerate(times):
        step = f"{folder}/step_{1000 + number}"
        what = "2 of 8 shards not found" if direct else "validation metric dropped and recovered"
        last = max((s for s in saves if s[0] <= at), default=None)
        if last is not None:
            step = f"{folder}/step_{int(last[0].timestamp()) // 60}"
        evidence = Evidence(f"jobs/{plan.job}.log", number + 1, what)
        path = step if named and direct else None
        when = When(at, 1.0, TimeBasis.STAMP)
        harms.append(Harm(when, host, f"rack{plan.rack}", plan.job, path, what, evidence, direct))
    # Something must tell which tree the job uses.
    shows_saves = shows_saves or not (named and direct)
    writes = [Write(a, b, host, plan.job, f"{folder}/step_{int(a.timestamp()) // 60}") for a, b in saves]
    return harms, writes if shows_saves else []


def _saves(
    plan: _Plan, harmed: list[tuple[datetime, datetime]], starts: list[datetime]
) -> list[tuple[datetime, datetime]]:
    """Regular saves; on nights with harm one was under way, on clean nights none was."""
    rng = plan.rng
    every = timedelta(minutes=rng.choice((60, 90, 120, 180, 240)))
    lasts = timedelta(minutes=rng.uniform(1, 8))
    reach = timedelta(minutes=plan.delay_min + 5)
    at = START + timedelta(minutes=rng.randrange(60))
    saves = []
    while at < START + timedelta(days=plan.days):
        if not harmed or not any(s - lasts <= at <= s + reach for s in starts):
            saves.append((at, at + lasts))
        at += every
    for begin, end in harmed:
        first = begin + (end - begin) * rng.uniform(0.0, 0.5)
        saves.append((first, min(first + lasts, end)))
    return sorted(saves)


N = 200


def claims(ghost: Ghost) -> list[Culprit]:
    return find_culprits(ghost.schedules, ghost.runs, ghost.harms, ghost.writes, ghost.site)


def test_the_right_line_is_named() -> None:
    wrong = []
    for seed in range(N):
        ghost = build(seed)
        found = claims(ghost)
        if not found or (found[0].schedule.path, found[0].schedule.line) != ghost.culprit:
            wrong.append(seed)
    assert len(wrong) <= 0.05 * N, wrong


def test_blind_failures_name_nobody() -> None:
    false = [seed for seed in range(10_000, 10_000 + N) if claims(build(seed, is_random=True))]
    assert len(false) < 0.01 * N, false
