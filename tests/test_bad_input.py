"""Whatever lies in a bundle: a clear message or a coverage row, never a traceback, never a hang, never a lost line."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import NOW, Diagnose
from triage import pipeline
from triage.errors import UsageError
from triage.filescan import KEEP_FIRST, KEEP_LAST, FileScan, FileScanner
from triage.ingest import Input, find_inputs, scan_input, scan_inputs
from triage.knowledge import Knowledge
from triage.reading import pieces
from triage.report import Report

XID = b"[81234.500000] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
OOM = (
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB\n"
)


def scan(knowledge: Knowledge, data: bytes, *, block: int = 4 << 20) -> FileScan:
    return FileScanner(knowledge.plan).scan(FileScan("f.log"), pieces(io.BytesIO(data), block=block))


@pytest.fixture(scope="module")
def scanner(knowledge: Knowledge) -> FileScanner:
    return FileScanner(knowledge.plan)


def counts(found: FileScan) -> dict[str, int]:
    out: dict[str, int] = {}
    for (name, _), tally in found.tallies.items():
        out[name] = out.get(name, 0) + tally.count
    return out


def skipped(report: Report) -> dict[str, str | None]:
    return {row.path: row.skipped for row in report.coverage}


def classes(report: Report) -> list[str]:
    return [d.class_ for d in report.diagnoses]


# --- paths


def test_an_empty_folder_is_no_evidence(knowledge: Knowledge, tmp_path: Path) -> None:
    report = pipeline.postmortem([str(tmp_path)], knowledge, pipeline.Options(), now=NOW)
    assert (report.verdict, report.coverage) == ("no-evidence", ())


@pytest.mark.parametrize("name", ["missing", "a" * 5000, "nul\0name", ""])
def test_a_path_that_cannot_be_opened_is_a_usage_error_that_names_it(name: str) -> None:
    if name == "":
        assert find_inputs([name]) is not None  # the current folder, as for every tool that takes a Path
        return
    with pytest.raises(UsageError, match=name[:20].replace("\0", ".")):
        find_inputs([name])


def test_one_missing_path_of_several_is_a_coverage_row(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x\n")
    found = find_inputs([str(tmp_path / "a.log"), str(tmp_path / "missing")])
    assert [(i.path is not None, i.problem) for i in found] == [(True, None), (False, "no such file or folder")]
    with pytest.raises(UsageError):
        find_inputs([str(tmp_path / "missing"), str(tmp_path / "gone")])


def test_folders_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name / "logs").mkdir(parents=True)
        (tmp_path / name / "logs" / "x.log").write_text(name)
    found = find_inputs([str(tmp_path / "a" / "logs"), str(tmp_path / "b" / "logs")])
    assert len({i.name for i in found}) == 2


def test_a_path_given_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x\n")
    assert len(find_inputs([str(tmp_path / "a.log")] * 2)) == 1
    assert len(find_inputs([str(tmp_path)] * 2)) == 1


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("/etc/hostname", "link out of the bundle"),
        ("missing", "no such file"),
        ("loop", "symbolic links"),
        ("real.log", "link to real.log"),
        ("/etc", "link out of the bundle"),
    ],
)
def test_links_are_named_and_not_followed(knowledge: Knowledge, tmp_path: Path, target: str, reason: str) -> None:
    (tmp_path / "real.log").write_bytes(OOM)
    (tmp_path / "loop").symlink_to(target if target != "loop" else "loop")
    report = pipeline.postmortem([str(tmp_path)], knowledge, pipeline.Options(), now=NOW)
    assert reason in (skipped(report)["loop"] or "")
    assert skipped(report)["real.log"] is None
    assert report.diagnoses[0].evidence[0].event.count == 1


def test_a_pipe_in_the_folder_does_not_hang(diagnose: Diagnose, tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    os.mkfifo(tmp_path / "bundle" / "pipe.log")
    report = diagnose({"a.log": OOM})
    assert skipped(report)["pipe.log"] == "not a regular file"
    assert classes(report) == ["gpu-oom"]


@pytest.fixture
def nobody(knowledge: Knowledge) -> Iterator[Path]:
    """A world-readable folder while this process runs as a user who owns nothing."""
    if os.geteuid() != 0:
        pytest.skip("only root can change its user")
    FileScanner(knowledge.plan).scan(FileScan("warm-up"), pieces(io.BytesIO(OOM)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        try:
            yield folder
        finally:
            os.seteuid(0)


def test_what_may_not_be_read_is_a_coverage_row(knowledge: Knowledge, nobody: Path) -> None:
    (nobody / "secret.log").write_bytes(OOM)
    (nobody / "secret.log").chmod(0)
    (nobody / "closed").mkdir(mode=0o700)
    (nobody / "open.log").write_bytes(OOM)
    os.seteuid(65534)
    found = {s.path: s.skipped for s in scan_inputs(find_inputs([str(nobody)]), knowledge.plan)}
    assert found == {"secret.log": "Permission denied", "closed": "folder cannot be opened", "open.log": None}


def test_a_file_that_vanishes_after_listing_is_a_coverage_row(knowledge: Knowledge, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(OOM)
    (item,) = find_inputs([str(tmp_path)])
    (tmp_path / "a.log").unlink()
    assert scan_input(item, FileScanner(knowledge.plan)).skipped == "No such file or directory"


def test_a_file_replaced_by_a_folder_is_a_coverage_row(knowledge: Knowledge, tmp_path: Path) -> None:
    (tmp_path / "a.log").mkdir()
    assert scan_input(Input("a.log", tmp_path / "a.log", 10), FileScanner(knowledge.plan)).skipped == "Is a directory"


class Shrinking(io.BytesIO):
    """A file that somebody truncates, or a disk that fails, while it is read."""

    def __init__(self, data: bytes, error: Exception | None) -> None:
        super().__init__(data)
        self.error = error

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        if not data and self.error is not None:
            raise self.error
        return data


def test_a_file_truncated_while_it_is_read_keeps_what_came_before(knowledge: Knowledge) -> None:
    found = FileScanner(knowledge.plan).scan(FileScan("f"), pieces(Shrinking(OOM * 10 + OOM[:40], None), block=300))
    assert (found.lines, counts(found)["cuda-out-of-memory"]) == (11, 10)


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), EOFError("cut"), ValueError("odd")])
def test_an_error_in_the_middle_keeps_what_came_before(knowledge: Knowledge, error: Exception) -> None:
    found = FileScan("f")
    with pytest.raises(Exception, match=r"error|cut|odd"):
        FileScanner(knowledge.plan).scan(found, pieces(Shrinking(OOM * 10, error), block=300))
    assert counts(found)["cuda-out-of-memory"] == 10


def test_a_file_that_is_appended_to_and_cut_in_a_race_is_read(knowledge: Knowledge, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(OOM * 1000)
    (item,) = find_inputs([str(tmp_path)])
    os.truncate(path, len(OOM) * 3 + 5)
    assert scan_input(item, FileScanner(knowledge.plan)).lines == 4
    os.truncate(path, 0)
    assert scan_input(item, FileScanner(knowledge.plan)).skipped == "empty file"


# --- contents


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.jpg", b"\xff\xd8\xff\xe0" + b"picture" * 400, "binary file"),
        ("renamed.log", b"\xff\xd8\xff\xe0" + b"picture" * 400, "binary file"),
        ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(100), "binary file"),
        ("core", b"\x7fELF" + bytes(500), "binary file"),
        ("a.bin", bytes(range(9)) * 500, "binary file"),
        ("empty.log", b"", "empty file"),
        ("cut.gz", gzip.compress(bytes(range(256)) * 20)[:30], "cannot be read"),
        ("bad.zst", b"\x28\xb5\x2f\xfd" + b"garbage" * 30, "cannot be read"),
        ("bad.xz", b"\xfd7zXZ\x00" + b"zz" * 1000, "cannot be read"),
        ("bad.bz2", b"BZh9" + b"zz" * 1000, "cannot be read"),
    ],
    ids=lambda value: value if isinstance(value, str) else "data",
)
def test_what_is_no_log_is_named_and_skipped(diagnose: Diagnose, name: str, data: bytes, reason: str) -> None:
    report = diagnose({name: data})
    assert (report.verdict, classes(report)) == ("no-evidence", [])
    assert (skipped(report)[name] or "").startswith(reason)


def test_a_truncated_archive_keeps_its_beginning_and_says_so(diagnose: Diagnose) -> None:
    noise = b"".join(b"%s\n" % os.urandom(20).hex().encode() for _ in range(15_000))
    report = diagnose({"train.log.gz": gzip.compress(OOM + noise)[:-5000]})
    assert (skipped(report)["train.log.gz"] or "").startswith("truncated after ")
    assert classes(report) == ["gpu-oom"]


@pytest.mark.parametrize(
    "data",
    [
        OOM,
        OOM.replace(b"\n", b"\r\n"),
        b"\x00" * 20 + OOM,
        b"caf\xe9 \xa9\n" + OOM,
        codecs.BOM_UTF8 + OOM,
        OOM.decode().encode("utf-16"),
        codecs.BOM_UTF16_BE + OOM.decode().encode("utf-16-be"),
        b"".join(b"\r%3d%%|####    | %d/100" % (n, n) for n in range(100)) + b"\r" + OOM,
        b'{"log":"' + OOM.strip() + b'\\n","stream":"stderr","time":"2026-03-01T02:17:00.123456789Z"}\n',
        b"\x1b[31m\x1b[1mtorch.OutOfMemoryError\x1b[0m: CUDA out \x1b[4mof memory. Tried to allocate 2.00 GiB.\n",
        OOM.strip(),
        gzip.compress(OOM),
        gzip.compress(OOM.decode().encode("utf-16")),
    ],
    ids=[
        "plain",
        "crlf",
        "nul",
        "latin-1",
        "utf-8-bom",
        "utf-16",
        "utf-16-be",
        "progress-bar",
        "docker",
        "colour",
        "no-line-end",
        "gz",
        "gz-utf-16",
    ],
)
def test_one_line_is_found_in_every_dress(diagnose: Diagnose, data: bytes) -> None:
    report = diagnose({"train.log": data})
    assert classes(report) == ["gpu-oom"]
    assert skipped(report) == {"train.log": None}


@pytest.mark.parametrize("block", [2, 3, 5, 7, 64])
def test_utf16_is_decoded_whatever_the_reads_return(block: int) -> None:
    text = "a\U0001f600b\nsecond\n"
    got = [bytes(p.data) for p in pieces(io.BytesIO(text.encode("utf-16")), block=block)]
    assert got[-1].decode().endswith("second\n")
    assert "�" not in b"".join(got).decode()


def test_names_of_any_bytes_are_read_and_printed(diagnose: Diagnose, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / os.fsdecode(b"odd\xff\n\x1b[31m.log")).write_bytes(OOM)
    report = diagnose({})
    assert classes(report) == ["gpu-oom"]
    json.dumps(report.as_dict())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=30),
            st.sampled_from(
                [
                    XID,
                    OOM,
                    b"\n",
                    b"\r",
                    b"\x1b[31m",
                    b"\x00",
                    b"0 2 * * * rsync -a --delete /a /b\n",
                    b"Traceback (most recent call last):\n",
                    b'{"log":"',
                ]
            ),
        ),
        max_size=12,
    ).map(b"".join),
    st.sampled_from([1 << 20, 4096]),
)
def test_any_bytes_are_read_and_no_line_is_lost(scanner: FileScanner, data: bytes, block: int) -> None:
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return
    found = scanner.scan(FileScan("f.log"), pieces(io.BytesIO(data), block=block))
    assert found.lines == data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))
    assert 0 <= found.undated <= found.lines
    assert all(1 <= hit.line <= found.lines for tally in found.tallies.values() for hit in tally.hits())


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.sampled_from(["a.log", "h1/dmesg", "crontab", "nvidia-smi.txt", "racks.yaml"]),
        st.binary(max_size=200),
        max_size=3,
    )
)
def test_any_bundle_has_a_report(knowledge: Knowledge, files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as name:
        for path, data in files.items():
            target = Path(name) / path
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(data)
        report = pipeline.postmortem([name], knowledge, pipeline.Options(), now=NOW)
    assert {row.path for row in report.coverage} == set(files)


# --- floods and giants


@pytest.mark.parametrize("number", [3, 200, 10_000])
def test_repeats_are_counted_exactly_and_kept_in_part(knowledge: Knowledge, number: int) -> None:
    found = scan(knowledge, XID * number)
    ((_, tally),) = found.tallies.items()
    assert (tally.count, tally.lower_bound) == (number, False)
    assert len(list(tally.hits())) <= KEEP_FIRST + KEEP_LAST


def test_beyond_the_limit_a_count_is_marked_and_never_too_high(knowledge: Knowledge) -> None:
    near_miss = XID.replace(b"NVRM", b"logger[12]: NVRM")  # the scanner sees it, confirmation refuses it
    found = scan(knowledge, (XID + near_miss) * 11_000)
    ((_, tally),) = found.tallies.items()
    assert tally.lower_bound
    assert 10_000 <= tally.count <= 11_000


def test_ten_thousand_near_misses_do_not_hide_the_hit_after_them(knowledge: Knowledge) -> None:
    near_miss = XID.replace(b"NVRM", b"logger[12]: NVRM")
    assert counts(scan(knowledge, near_miss * 10_001 + XID)) == {"gpu-xid/79": 1}


def test_a_flood_is_one_event_in_reasonable_time(diagnose: Diagnose) -> None:
    number = 800_000 if os.environ.get("TRIAGE_SLOW") else 60_000
    began = time.process_time()
    report = diagnose({"gpu-12/dmesg.txt": XID * number})
    (diagnosis,) = report.diagnoses
    cited = [c for c in diagnosis.evidence if c.event.signature == "gpu-xid/79"]
    assert len({c.event.id for c in cited}) == 1
    assert len(cited) <= 12
    assert 10_000 <= cited[0].event.count <= number
    assert cited[0].event.count == number or cited[0].event.count_is_lower_bound
    assert report.coverage[0].lines == number
    assert time.process_time() - began < number / 10_000  # four times what an idle machine needs


def test_a_flood_over_many_devices_takes_no_longer(knowledge: Knowledge) -> None:
    began = time.process_time()
    scan(knowledge, b"".join(XID.replace(b"3b:00", b"%02x:00" % (n % 256)) for n in range(20_000)))
    assert time.process_time() - began < 15


def test_a_match_where_pieces_of_a_long_line_overlap_counts_once(knowledge: Knowledge) -> None:
    block = 70_000
    for before in range(block - 6_000, block + 200, 700):
        found = scan(knowledge, b"a" * before + b" " + OOM.strip() + b" " + b"b" * 9_000 + b"\n" + OOM, block=block)
        assert counts(found)["cuda-out-of-memory"] == 2, before
        assert found.lines == 2


GIANT = """
import io, resource, sys
from triage.engine import build
from triage.filescan import FileScan, FileScanner
from triage.plan import make_plan
from triage.reading import pieces
from triage.signature import Signature
from triage.vocabulary import Level, Noise, Role, Scope, Status, Strength

class Line(io.RawIOBase):
    left = 200 << 20
    def readable(self):
        return True
    def readinto(self, buffer):
        size = min(len(buffer), self.left)
        buffer[:size] = b"x" * size
        if self.left > 100 << 20 >= self.left - size:
            buffer[:20] = b" CUDA out of memory "
        self.left -= size
        return size

one = Signature(id="one", title="", class_="gpu-oom", role=Role.ROOT, level=Level.HIGH, status=Status.TEST,
                sources=frozenset({"training"}),
                scope=Scope.JOB, strength=Strength.STRONG, noise=Noise.RARE, patterns=("CUDA out of memory",))
scan = FileScanner(make_plan([one], [], [])).scan(FileScan("f"), pieces(Line()))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(scan.lines, sum(t.count for t in scan.tallies.values()), peak)
"""


def test_a_line_of_200_mb_is_scanned_in_little_memory() -> None:
    limit = 2 << 30  # address space, not resident memory
    out = subprocess.run(
        [sys.executable, "-c", GIANT], capture_output=True, text=True, timeout=120, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )  # fmt: skip
    assert out.returncode == 0, out.stderr[-2000:]
    lines, hits, megabytes = map(int, out.stdout.split())
    assert (lines, hits) == (1, 1)
    assert megabytes < 600


# --- hostile text


def test_hostile_text_in_a_line_changes_nothing_but_the_citation(diagnose: Diagnose) -> None:
    hostile = (
        OOM.strip()
        + b" \x1b]0;x\x07\x1b[2J {{ 7*7 }} {% for x in y %} <script>alert(1)</script> [/bold]"
        + b" $(reboot) ' ; rm -rf / ; \n"
    )
    report = diagnose({"train.log": hostile})
    assert classes(report) == ["gpu-oom"]
    text = json.dumps(report.as_dict())
    assert "49" not in report.diagnoses[0].summary
    assert "{{ 7*7 }}" in text
    for step in report.diagnoses[0].remediation:
        assert "rm -rf" not in (step.command or "")
