"""The samples: what `triage demo` shows must be right, stable, readable and the same however the bundle is packed."""

from __future__ import annotations

import json
import shutil
import string
import unicodedata
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests import golden
from triage import knowledge
from triage.outputs import json as json_output
from triage.outputs import text as text_output
from triage.outputs.base import Style
from triage.outputs.safe import visible
from triage.pipeline import Options, postmortem
from triage.report import Report

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = {path.parent.name: path.parent for path in sorted(ROOT.glob("samples/*/case.yml"))}
SCHEMA = json.loads((ROOT / "triage" / "schemas" / "report-1.schema.json").read_text(encoding="utf-8"))
NOW = datetime(2031, 1, 1, tzinfo=timezone.utc)
WIDTH = 80
MAX_FILES, MAX_BYTES = 20, 60_000
# (sample, what is expected of it): why the product does not give it yet
OPEN_DEFECTS: dict[tuple[str, str], str] = {}

Run = Callable[[Path, "int | None"], Report]
ReportOf = Callable[[str], Report]
each_sample = pytest.mark.parametrize("name", SAMPLES)


@pytest.fixture(scope="module")
def run() -> Run:
    """The pipeline in this process; knowledge is loaded once."""
    loaded = knowledge.load(cache=knowledge.cache_dir())

    def run_pipeline(bundle: Path, year: int | None) -> Report:
        return postmortem([str(bundle)], loaded, Options(year=year, workers=1), now=NOW)

    return run_pipeline


@pytest.fixture(scope="module")
def report_of(run: Run) -> ReportOf:
    """The report of a sample, made once."""
    made: dict[str, Report] = {}

    def report(name: str) -> Report:
        if name not in made:
            made[name] = run(SAMPLES[name] / "bundle", case(name).get("year"))
        return made[name]

    return report


def case(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((SAMPLES[name] / "case.yml").read_text(encoding="utf-8"))
    return found


def files_of(bundle: Path) -> list[Path]:
    return sorted(path for path in bundle.rglob("*") if path.is_file())


def cited(report: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for diagnosis in report["diagnoses"]:
        yield from diagnosis["evidence"]
        for group in (*diagnosis["symptoms"], *diagnosis["alternatives"]):
            yield from group["evidence"]


def test_there_are_samples_for_the_card_classes() -> None:
    """Every card class of the product has a sample, and so has a healthy bundle."""
    classes = {case(name)["expect"]["class"] for name in SAMPLES}
    assert {None, "nccl-timeout", "gpu-oom", "host-oom", "dataloader-hang", "gradient-explosion"} <= classes
    assert {"file-lock-contention", "cron-rsync-race"} <= classes


@each_sample
def test_sample_is_small_and_whole(name: str) -> None:
    """A sample is a handful of small files with a title and an expectation that the tests know."""
    about = case(name)
    files = files_of(SAMPLES[name] / "bundle")
    assert about["title"]
    assert set(about["expect"]) <= set(SAID)
    assert 3 <= len(files) <= MAX_FILES
    assert [path.name for path in files if path.stat().st_size > MAX_BYTES] == []


def known(name: str, key: str) -> list[pytest.MarkDecorator]:
    """An open defect is expected to fail; when it is mended the test says so, and its entry goes."""
    reason = OPEN_DEFECTS.get((name, key))
    return [pytest.mark.xfail(reason=reason, raises=AssertionError, strict=True)] if reason else []


@pytest.mark.parametrize(
    ("name", "key"),
    [pytest.param(n, k, id=f"{n}-{k}", marks=known(n, k)) for n in SAMPLES for k in case(n)["expect"]],
)
def test_verdict_is_what_the_case_expects(name: str, key: str, report_of: ReportOf) -> None:
    """Class, variant, culprit and the decisive lines are those that a good engineer would name."""
    wanted = case(name)["expect"][key]
    report = report_of(name).as_dict()
    said = SAID[key](report)
    if key == "hosts":
        assert said in wanted
    elif key == "cites":
        assert [part for part in wanted if not any(part in line for line in said)] == [], said
    else:
        assert said == wanted
    assert (report["verdict"] == "no-incident") == (case(name)["expect"]["class"] is None)


def _first(report: dict[str, Any]) -> dict[str, Any]:
    diagnoses: list[dict[str, Any]] = report["diagnoses"]
    return diagnoses[0] if diagnoses else dict.fromkeys(("class", "variant"))


def _failing(report: dict[str, Any]) -> dict[str, Any]:
    assert report["diagnoses"], "no diagnosis"
    found: dict[str, Any] = _first(report)["first_failing"]
    return found


SAID: dict[str, Callable[[dict[str, Any]], Any]] = {
    "class": lambda report: _first(report)["class"],
    "variant": lambda report: _first(report)["variant"],
    "rank": lambda report: _failing(report)["rank"],
    "host": lambda report: _failing(report)["host"],
    "hosts": lambda report: _failing(report)["host"],
    "rack": lambda report: _failing(report)["rack"],
    "pci": lambda report: (_failing(report)["device"] or {}).get("pci"),
    "kind": lambda report: (_failing(report)["device"] or {}).get("kind"),
    "incidents": lambda report: len(report["diagnoses"]),
    "exclude_hosts": lambda report: report["decision"]["exclude_hosts"],
    "cites": lambda report: [item["text"] for item in _first(report)["evidence"]],
}


@each_sample
def test_report_keeps_the_contract(name: str, report_of: ReportOf) -> None:
    """The JSON validates, and every cited line stands verbatim where the report says."""
    report = json.loads(json_output.render(report_of(name), Style()))
    jsonschema.validate(report, SCHEMA)
    bundle = SAMPLES[name] / "bundle"
    for item in cited(report):
        lines = (bundle / item["path"]).read_bytes().decode("utf-8", "replace").split("\n")
        assert item["text"].strip()
        assert item["text"] in lines[item["line"] - 1], (item["path"], item["line"])


@each_sample
def test_report_equals_the_golden_one(name: str, report_of: ReportOf, request: pytest.FixtureRequest) -> None:
    """JSON and text are those next to the sample; exact confidence, weights, version and hash aside."""
    update = bool(request.config.getoption("--update-golden"))
    report = golden.scrubbed(report_of(name))
    golden.check(SAMPLES[name] / "expected.json", json_output.render(report, Style()), update=update)
    golden.check(SAMPLES[name] / "expected.txt", text_output.render(report, Style(width=WIDTH)), update=update)


@pytest.mark.parametrize("name", [pytest.param(name, marks=known(name, "text")) for name in SAMPLES])
def test_text_is_fit_for_a_terminal(name: str, report_of: ReportOf) -> None:
    """Decision, cause and culprit come first; no line is too wide to read, none acts on the terminal."""
    lines = text_output.render(report_of(name), Style(width=WIDTH)).split("\n")
    head = ["NO INCIDENT" if case(name)["expect"]["class"] is None else "Decision", "Cause", "Culprit"]
    assert [line.split("  ")[0][: len(word)] for line, word in zip(lines, head, strict=False)] == head
    assert [line for line in lines if len(line) > WIDTH and not _unbreakable(line)] == []
    assert [line for line in lines if any(unicodedata.category(c) in ("Cc", "Cf") for c in line)] == []
    assert visible("".join(lines)) == "".join(lines)


def _unbreakable(line: str) -> bool:
    """A command is never wrapped, so that it can be copied; a path has nowhere to break."""
    return line.lstrip().startswith("$ ") or len(line.split()) == 1


@each_sample
def test_packing_of_the_bundle_changes_nothing(name: str, run: Run, report_of: ReportOf, tmp_path: Path) -> None:
    """The same files read in the opposite order, one of them twice, give the same classes and culprits."""
    bundle = tmp_path / "bundle"
    entries = sorted((SAMPLES[name] / "bundle").iterdir(), reverse=True)
    for letter, entry in zip(string.ascii_lowercase, entries, strict=False):
        target = bundle / f"{letter * 2}" / entry.name
        target.parent.mkdir(parents=True)
        shutil.copytree(entry, target) if entry.is_dir() else shutil.copyfile(entry, target)
    largest = max(files_of(bundle), key=lambda path: (path.stat().st_size, path.name))
    copy = bundle / "zz" / largest.relative_to(bundle / largest.relative_to(bundle).parts[0])
    copy.parent.mkdir(parents=True)
    shutil.copyfile(largest, copy)

    again = run(bundle, case(name).get("year"))
    assert culprits(again) == culprits(report_of(name))


def culprits(report: Report) -> list[tuple[object, ...]]:
    """What must not depend on the packing: classes and places, best first."""
    return [(d.class_, d.variant, d.place.rank, d.place.host, d.place.pci, d.place.rack) for d in report.diagnoses]
