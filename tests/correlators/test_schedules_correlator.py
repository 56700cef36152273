"""The adapter between a bundle and the search for ghosts: small bundles, read by the whole pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml

from triage import events, knowledge, pipeline, topology
from triage.correlators import _ghost, schedules
from triage.correlators._ghost_harms import damage, path_in
from triage.correlators._ghost_lines import job_of, texts, zones
from triage.correlators._ghost_listing import gaps
from triage.correlators._ghost_schedules import mounts, timetable
from triage.correlators.base import Context
from triage.ingest import find_inputs, scan_inputs
from triage.knowledge import Knowledge
from triage.model import Place
from triage.report import Report
from triage.seriesevents import series_events
from triage.vocabulary import Noise, Role, Strength

NOW = datetime(2029, 7, 1, tzinfo=timezone.utc)
SAMPLE = Path(__file__).parents[2] / "samples" / "ghost"
TREE = "/pool7/moth/run5"
RACKS = "SwitchName=leaf-a Nodes=kt-a[1-4]\nSwitchName=leaf-b Nodes=kt-b[1-4]\n"
DELETE = "rsync -a --delete /mnt/mirror/moth/ /pool7/moth/"


@pytest.fixture(scope="module")
def known() -> Knowledge:
    return knowledge.load()


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def _report(folder: Path, known: Knowledge, files: Mapping[str, str]) -> Report:
    _write(folder, files)
    return pipeline.postmortem([str(folder)], known, pipeline.Options(year=2029), now=NOW)


def _context(
    folder: Path, known: Knowledge, files: Mapping[str, str], given: Mapping[str, str] | None = None
) -> Context:
    """What the pipeline hands to correlators."""
    _write(folder, files)
    inputs = find_inputs([str(folder)])
    scans = scan_inputs(inputs, known.plan)
    where = topology.build(scans, {n: t for n, t in files.items() if topology.is_rack_file(n)})
    clock = pipeline.make_clock(scans, where, pipeline.Options(year=2029), NOW)
    found = [*events.build(scans, where, clock), *series_events(scans, where, clock).events]
    window = pipeline._window(found)
    when = lambda scan, line: pipeline._line_time(clock, where, scan, line)  # noqa: E731
    return Context(found, where, scans, window, when, given or {})


def _job(nights: Mapping[int, int], host: str = "kt-a2", minute: int = 17, hours: int = 5) -> str:
    """A log over several nights (of May); ``nights``: day -> hour whose save is found short, -1 for none."""
    out, step = [], 1000
    for day, bad in nights.items():
        for hour in range(hours):
            at = datetime(2029, 5, day, hour, 2, 10)
            path = f"{TREE}/ckpt/step_{step}"
            lines = [
                (at, f"INFO saving checkpoint to {path}"),
                (at + timedelta(minutes=5), f"INFO checkpoint step_{step} written (8 shards) in 300.0s"),
                (at.replace(minute=minute), f"INFO validation: loading weights from {path}"),
            ]
            if hour == bad:
                lines.append((at.replace(minute=minute, second=20), "WARNING 2 of 8 shards not found, skipped"))
            acc = 0.61 if hour == bad else 0.80 + 0.001 * (hour % 3)
            lines.append((at.replace(minute=minute, second=50), f"INFO val_acc={acc:.4f}"))
            out += [f"{when:%Y-%m-%d %H:%M:%S},100 +0000 {host} rank=0 {text}" for when, text in lines]
            step += 10
    return "\n".join(out) + "\n"


def _cron(host: str, command: str, days: tuple[int, ...], hour: int = 2, minute: int = 0, user: str = "ops") -> str:
    rows = []
    for day in days:
        rows.append(f"May {day:>2} {hour:02d}:{minute:02d}:01 {host} CRON[{4000 + day}]: ({user}) CMD ({command})")
        rows.append(f"May {day:>2} 06:17:01 {host} CRON[{5000 + day}]: (root) CMD (run-parts /etc/cron.hourly)")
    return "\n".join(rows) + "\n"


NIGHTS = {4: 2, 5: 2, 6: 2}
DAYS = tuple(NIGHTS)
JOB = {"jobs/moth.log": _job(NIGHTS), "slurm/topology.conf": RACKS}
UNIT = "# /etc/systemd/system/pull.timer\n[Timer]\nOnCalendar=*-*-* 02:00:00\n\n"
SERVICE = f"# /etc/systemd/system/pull.service\n[Service]\nExecStart=/usr/bin/{DELETE}\n"
JOURNAL = "".join(
    f"May {day:>2} 02:00:02 kt-a4 systemd[1]: Starting pull.service - Pull the mirror...\n"
    f"May {day:>2} 02:19:02 kt-a4 systemd[1]: pull.service: Deactivated successfully.\n"
    for day in DAYS
)

GHOSTS: dict[str, tuple[dict[str, str], str, int]] = {
    "a line of a user's crontab": (
        {"hosts/kt-a4/crontab-l.txt": f"# m h dom mon dow command\n0 2 * * * {DELETE}\n"},
        "hosts/kt-a4/crontab-l.txt", 2,
    ),
    "a table of cron.d with a user column": (
        {"kt-a4/etc/cron.d/mirror": f"SHELL=/bin/sh\n0 2 * * * ops {DELETE}\n"}, "kt-a4/etc/cron.d/mirror", 2,
    ),
    "a script behind wrappers": (
        {
            "hosts/kt-a4/crontabs.txt": "0 2 * * * flock -n /run/l nice /usr/local/sbin/evening\n",
            "hosts/kt-a4/usr/local/sbin/evening": "#!/bin/sh\nexec /opt/ops/pull.sh moth\n",
            "hosts/kt-a4/opt/ops/pull.sh.txt": "#!/bin/bash\nrsync -a --delete /mnt/mirror/$1/ /pool7/$1/\n",
        },
        "hosts/kt-a4/crontabs.txt", 1,
    ),
    "a systemd timer": (
        {"kt-a4/systemctl-cat.txt": UNIT + SERVICE, "kt-a4/syslog": JOURNAL}, "kt-a4/systemctl-cat.txt", 3,
    ),
    "a cleaner of temporary files": (
        {"hosts/kt-a4/crontabs.txt": "0 2 * * * find /pool7/moth -type f -mmin +1 -delete\n"},
        "hosts/kt-a4/crontabs.txt", 1,
    ),
    "only the daemon's log": ({"kt-a4/syslog": _cron("kt-a4", DELETE, DAYS)}, "kt-a4/syslog", 1),
    "the script of a folder that run-parts runs": (
        {
            "kt-a4/cron.log": "".join(
                f"May {day:>2} 02:00:01 kt-a4 run-parts[9]: (/etc/cron.daily) starting pull-mirror\n" for day in DAYS
            ),
            "kt-a4/etc/cron.daily/pull-mirror": f"#!/bin/sh\n{DELETE}\n",
        },
        "kt-a4/cron.log", 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GHOSTS)
def test_names_the_schedule(name: str, tmp_path: Path, known: Knowledge) -> None:
    files, path, line = GHOSTS[name]
    report = _report(tmp_path, known, {**JOB, **files})
    first = report.diagnoses[0]
    assert first.class_ == "cron-rsync-race"
    assert (first.evidence[0].line.path, first.evidence[0].line.line) == (path, line)
    assert (first.place.host, first.place.rack) == ("kt-a4", "leaf-a")
    assert len(report.diagnoses) == 1


INNOCENT: dict[str, dict[str, str]] = {
    "rsync that deletes nothing": {"hosts/kt-a4/crontabs.txt": "0 2 * * * rsync -a /mnt/mirror/moth/ /var/m/\n"},
    "training is the source": {"hosts/kt-a4/crontabs.txt": "0 2 * * * rsync -a --delete /pool7/moth/ vault:/moth/\n"},
    "a disabled line": {"hosts/kt-a4/crontabs.txt": f"5 3 * * * /bin/true\n#0 2 * * * {DELETE}\n"},
    "another tree": {"hosts/kt-a4/crontabs.txt": "0 2 * * * rsync -a --delete /mnt/mirror/newt/ /pool7/newt/\n"},
    "a dry run": {"hosts/kt-a4/crontabs.txt": f"0 2 * * * {DELETE.replace('-a', '-an')}\n"},
    "the save is left out": {
        "hosts/kt-a4/crontabs.txt": f"0 2 * * * {DELETE.replace('--delete', '--delete --exclude=run5')}\n"
    },
    "old files only": {"hosts/kt-a4/crontabs.txt": "0 2 * * * find /pool7/moth -type f -mtime +30 -delete\n"},
    "at another time of day": {"hosts/kt-a4/crontabs.txt": f"0 14 * * * {DELETE}\n"},
    "a local tree of another host": {
        "hosts/kt-b1/crontabs.txt": f"0 2 * * * {DELETE}\n",
        "hosts/kt-b1/mounts.txt": "/dev/nvme0n1p1 on /pool7 type xfs (rw,noatime)\n",
        "hosts/kt-a2/mounts.txt": "/dev/nvme0n1p1 on /pool7 type xfs (rw,noatime)\n",
    },
    "no schedule at all": {"hosts/kt-a4/crontab-l.txt": "no crontab for root\n"},
}


@pytest.mark.parametrize("name", INNOCENT)
def test_claims_nothing(name: str, tmp_path: Path, known: Knowledge) -> None:
    report = _report(tmp_path, known, {**JOB, **INNOCENT[name]})
    assert "cron-rsync-race" not in {d.class_ for d in report.diagnoses}


def test_harmless_training_gives_no_ghost(tmp_path: Path, known: Knowledge) -> None:
    files = {"jobs/moth.log": _job(dict.fromkeys(DAYS, -1)), "hosts/kt-a4/crontabs.txt": f"0 2 * * * {DELETE}\n"}
    assert _report(tmp_path, known, files).verdict == "no-incident"


def test_one_night_needs_a_loss_and_a_logged_start(tmp_path: Path, known: Knowledge) -> None:
    night = {4: 2}
    table = {"hosts/kt-a4/crontabs.txt": f"0 2 * * * {DELETE}\n", "kt-a4/cron.log": _cron("kt-a4", DELETE, (4,))}
    told = _report(tmp_path / "told", known, {"jobs/moth.log": _job(night), "slurm/topology.conf": RACKS, **table})
    assert [d.class_ for d in told.diagnoses] == ["cron-rsync-race"]
    silent = _job(night).replace("WARNING 2 of 8 shards not found, skipped", "INFO averaging")
    timing_only = _report(tmp_path / "timing", known, {"jobs/moth.log": silent, **table})
    assert "cron-rsync-race" not in {d.class_ for d in timing_only.diagnoses}


@pytest.mark.parametrize("logged", [True, False])
def test_local_time_of_the_daemon_and_utc_of_the_job(logged: bool, tmp_path: Path, known: Knowledge) -> None:
    files = {
        **JOB,
        "hosts/kt-a4/crontabs.txt": f"0 5 * * * {DELETE}\n",
        "hosts/kt-a4/timedatectl.txt": "      Local time: Sun 2029-05-06 11:00:00 EEST\n"
        "  Universal time: Sun 2029-05-06 08:00:00 UTC\n"
        "       Time zone: Europe/Riga (EEST, +0300)\nSystem clock synchronized: yes\n",
    }
    if logged:
        files["hosts/kt-a4/cron.log"] = _cron("kt-a4", DELETE, DAYS, hour=5)
    first = _report(tmp_path, known, files).diagnoses[0]
    assert (first.class_, first.evidence[0].line.path) == ("cron-rsync-race", "hosts/kt-a4/crontabs.txt")
    assert first.time is not None
    assert first.time.hour == 2


def test_event_and_suspect(tmp_path: Path, known: Knowledge) -> None:
    files = {
        **JOB,
        "hosts/kt-a4/crontabs.txt": "0 2 * * * /opt/ops/pull.sh\n",
        "hosts/kt-a4/opt/ops/pull.sh": f"#!/bin/bash\nset -e\n{DELETE}\n",
        "hosts/kt-a4/cron.log": _cron("kt-a4", "/opt/ops/pull.sh", DAYS),
    }
    found = schedules.correlate(_context(tmp_path, known, files))
    assert len(found.events) == len(DAYS)
    first = found.events[0]
    assert (first.class_, first.role, first.strength, first.noise) == (
        "cron-rsync-race", Role.ROOT, Strength.CONCLUSIVE, Noise.NEVER,
    )  # fmt: skip
    cited = [(line.path.rpartition("/")[2], line.line) for line in first.lines]
    assert cited[:3] == [("crontabs.txt", 1), ("cron.log", 1), ("pull.sh", 3)]
    assert first.lines[2].text == DELETE
    assert len(first.lines) <= _ghost.MAX_LINES
    assert first.fields["checkpoint"] == f"{TREE}/ckpt/step_1020"
    assert first.fields["good_checkpoint"] == f"{TREE}/ckpt/step_1140"
    assert "--delete can delete /pool7/moth" in first.why
    (suspect,) = found.suspects
    assert suspect.place == Place(host="kt-a4", rack="leaf-a", path="/pool7/moth")
    assert suspect.classes == frozenset({"cron-rsync-race"})
    assert {link.cause for link in found.links} == {event.id for event in found.events}


def test_nothing_to_do_without_harm(tmp_path: Path, known: Knowledge) -> None:
    context = _context(tmp_path, known, {"hosts/kt-a4/crontabs.txt": f"0 2 * * * {DELETE}\n"})
    assert schedules.correlate(context).events == ()


def test_starts_keep_their_ends(tmp_path: Path, known: Knowledge) -> None:
    log = (
        "May  4 02:00:01 kt-a4 CRON[700]: pam_unix(cron:session): session opened for user ops(uid=1001) by (uid=0)\n"
        f"May  4 02:00:01 kt-a4 CRON[701]: (ops) CMD ({DELETE})\n"
        "May  4 02:08:09 kt-a4 CRON[700]: pam_unix(cron:session): session closed for user ops\n"
        "May  4 03:00:01 kt-a4 CROND[801]: (root) CMD (/opt/x/go)\n"
        "May  4 03:00:31 kt-a4 CROND[799]: (root) CMDEND (/opt/x/go)\n"
        "May  4 04:00:01 kt-a4 CRON[901]: (ops) CMD (/opt/x/other)\n"
    )
    runs = timetable(_context(tmp_path, known, {"kt-a4/cron.log": log}), {}).runs
    spans = {run.schedule.command: run.end - run.at if run.end else None for run in runs}
    assert spans == {DELETE: timedelta(seconds=488), "/opt/x/go": timedelta(seconds=30), "/opt/x/other": None}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("hosts/n1/opt/backup/nightly", True),
        ("n1/etc/cron.daily/tidy", True),
        ("scripts/pull.sh.txt", True),
        ("n1/usr/local/bin/sync.py", True),
        ("n1/usr/local/bin/sync.conf", False),
        ("n1/var/log/syslog", False),
        ("jobs/moth.log", False),
        ("crontab-l.txt", False),
    ],
)
def test_wants_text(path: str, wanted: bool) -> None:
    assert schedules.wants_text(path) is wanted


def test_whole_texts_win_over_samples(tmp_path: Path, known: Knowledge) -> None:
    files = {"n1/opt/a.sh": "echo peeled\n", "n1/opt/b.sh.txt": "echo b\n"}
    found = texts(_context(tmp_path, known, files, {"n1/opt/a.sh": "echo given\n"}))
    assert found["n1/opt/a.sh"] == "echo given\n"
    assert found["n1/opt/b.sh"].startswith("echo b")


@pytest.mark.parametrize(
    ("path", "place", "job"),
    [
        ("jobs/a1/rank3.log", Place(), "jobs/a1/*.log"),
        ("hosts/kt-07/train.log", Place(), "hosts/*/train.log"),
        ("slurm-81.out", Place(job="81"), "81"),
        ("jobs/exp41.log", Place(), "jobs/exp41.log"),
    ],
)
def test_job_of(path: str, place: Place, job: str) -> None:
    assert job_of(place, path) == job


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("No such file or directory: '/pool7/moth/step_3/r1.pt'", "/pool7/moth/step_3/r1.pt"),
        ('  File "/opt/conda/lib/python3.10/site-packages/torch/serialization.py", line 3', None),
        ("2 of 8 shards not found", None),
        ("see https://example.com/a/b for help", None),
        ("loss 3/4 of 8", None),
    ],
)
def test_path_in(text: str, path: str | None) -> None:
    assert path_in(text) == path


def _listing(sizes: Mapping[int, int], folder: str = f"{TREE}/ckpt/step_9", minute: int = 3) -> str:
    rows = [
        f"-rw-r--r-- 1 ana ml {size:>10} 2029-05-04 02:{minute:02d}:{k:02d}.000000000 +0000 model-{k:05d}-of-00006.pt"
        for k, size in sizes.items()
    ]
    return "\n".join([f"{folder}:", *rows, ""])


FULL = dict.fromkeys(range(1, 7), 5000)
LATER = "\n" + _listing(FULL, f"{TREE}/ckpt/step_10", minute=50)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (_listing(dict.fromkeys((3, 4, 5, 6), 5000)), ["2 of 6 shards missing"]),
        (_listing({**FULL, 2: 1200}), ["shard 2 of 6 truncated, shorter than its peers"]),
        (_listing(dict.fromkeys((1, 2, 3), 5000)) + LATER, ["3 of 6 shards missing"]),
        (_listing(dict.fromkeys((1, 2, 3), 5000)), []),  # the newest save is still being written
        (_listing({**FULL, 6: 900}), []),  # the last shard holds the rest
        (_listing({1: 5000, 2: 4100, 3: 5900, 4: 3000, 5: 4600, 6: 900}), []),  # uneven by nature
        (_listing(FULL), []),
    ],
)
def test_gaps_of_listings(text: str, what: list[str], tmp_path: Path, known: Knowledge) -> None:
    assert [gap.what for gap in gaps(_context(tmp_path, known, {"storage/ls.txt": text}))] == what


def test_gap_belongs_to_the_job_that_saved_there(tmp_path: Path, known: Knowledge) -> None:
    listed = _listing(dict.fromkeys((2, 3, 4, 5, 6), 5000), f"{TREE}/ckpt/step_1020")
    files = {"jobs/moth.log": _job({4: -1}), "ls.txt": listed}
    (harm,) = damage(_context(tmp_path, known, files)).harms
    assert (harm.host, harm.job, harm.direct, harm.sort) == ("kt-a2", "jobs/moth.log", True, "missing")


def test_saves_are_paired_by_name(tmp_path: Path, known: Knowledge) -> None:
    log = (
        "2029-05-04 02:00:00 INFO saving checkpoint to /p/a/step_1\n"
        "2029-05-04 02:01:00 INFO saving checkpoint to /p/a/step_2\n"
        "2029-05-04 02:03:00 INFO checkpoint step_1 written\n"
        "2029-05-04 02:05:00 INFO wrote checkpoint to /p/b/step_7 in 60.0s\n"
    )
    writes = damage(_context(tmp_path, known, {"job.log": log})).writes
    spans = [(write.path, write.end - write.at if write.end else None) for write in writes]
    minute = timedelta(minutes=1)
    assert spans == [("/p/a/step_1", 3 * minute), ("/p/a/step_2", None), ("/p/b/step_7", minute)]


def test_mounts_and_zones(tmp_path: Path, known: Knowledge) -> None:
    files = {
        "kt-a4/mounts.txt": "nas:/vol on /pool7 type nfs4 (rw)\n",
        "kt-a4/timedatectl.txt": "       Time zone: Asia/Tokyo (JST, +0900)\nSystem clock synchronized: yes\n",
        "kt-a2/train.log": "2029-05-04 02:00:00,000 +0200 kt-a2 rank=0 INFO saving checkpoint to /p/a/step_1\n",
    }
    context = _context(tmp_path, known, files)
    assert [(m.host, m.source, m.point, m.fstype) for m in mounts(context)] == [("kt-a4", "nas:/vol", "/pool7", "nfs4")]
    assert zones(context, ["kt-a2", "kt-a4"]) == {"kt-a2": "+02:00", "kt-a4": "Asia/Tokyo"}


def test_sample(known: Knowledge) -> None:
    case = yaml.safe_load((SAMPLE / "case.yml").read_text())
    report = pipeline.postmortem([str(SAMPLE / "bundle")], known, pipeline.Options(year=case["year"]), now=NOW)
    (only,) = report.diagnoses
    assert only.class_ == case["expect"]["class"]
    assert only.place.host in case["expect"]["hosts"]
    assert only.place.rack == case["expect"]["rack"]
    assert (only.evidence[0].line.path, only.evidence[0].line.line) == ("hosts/hg-304/crontabs.txt", 17)
    assert [name for name, _ in only.symptoms] == ["checkpoint-corruption"]
