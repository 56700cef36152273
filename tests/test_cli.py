"""The command line: documented options, exit codes, one-line errors with a hint, quiet pipes, no tracebacks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import jsonschema
import pytest
from click.testing import CliRunner, Result

from triage.catalog import data_dir
from triage.cli import main
from triage.commands import demo_cases

OOM = "2026-03-01 02:17:00,000 [rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
PYTHON = [sys.executable, "-m", "triage"]


def run(*args: str, env: dict[str, str] | None = None) -> Result:
    result = CliRunner().invoke(main, args, env=env, prog_name="triage")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def bundle(tmp_path: Path) -> str:
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "train.log").write_text(OOM)
    return str(folder)


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, group
    if isinstance(group, click.Group):
        for name, command in group.commands.items():
            yield from commands(command, (*path, name))


ALL = list(commands(main))


# --- help


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) or "triage" for path, _ in ALL])
def test_every_command_and_every_option_is_documented(path: tuple[str, ...], command: click.Command) -> None:
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert command.help
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{' '.join(path)} {option.opts}"
            assert option.opts[0] in result.output


def test_the_short_help_and_the_version_work() -> None:
    assert "Usage" in run("-h").output
    assert run("--version").output.startswith("triage, version ")


@pytest.mark.parametrize(
    "args",
    [
        ["postmortem"],
        ["nothing"],
        ["postmortem", "--nothing", "."],
        ["postmortem", ".", "--format", "pdf"],
        ["postmortem", ".", "--fail-on", "awful"],
        ["postmortem", ".", "--workers", "0"],
        ["postmortem", ".", "--year", "0"],
        ["inspect", "/nowhere"],
        ["inspect", "/"],
        ["playbooks"],
        ["completion", "tcsh"],
    ],
)
def test_bad_usage_is_exit_code_2(args: list[str]) -> None:
    assert run(*args).exit_code == 2


# --- exit codes and output of postmortem


def test_a_written_report_is_exit_code_0(bundle: str) -> None:
    result = run("postmortem", bundle)
    assert result.exit_code == 0
    assert "gpu-oom" in result.output
    assert "\x1b" not in result.output


def test_nothing_found_is_exit_code_0_too(tmp_path: Path) -> None:
    assert run("postmortem", str(tmp_path), "--fail-on", "low").exit_code == 0


@pytest.mark.parametrize(("level", "code"), [("low", 1), ("high", 1), ("critical", 0)])
def test_fail_on_is_exit_code_1_from_its_level_on(bundle: str, level: str, code: int) -> None:
    result = run("postmortem", bundle, "--format", "json", "--fail-on", level)
    assert json.loads(result.stdout)["diagnoses"][0]["level"] == "high"
    assert result.exit_code == code


def test_no_path_that_opens_is_exit_code_2_and_one_line(tmp_path: Path) -> None:
    result = run("postmortem", str(tmp_path / "missing"), str(tmp_path / "gone"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("triage: no such file or folder: ")
    assert result.stderr.count("\n") == 1


def test_one_missing_path_of_two_is_a_row(bundle: str) -> None:
    result = run("postmortem", bundle, "/nowhere/at/all", "--format", "json")
    assert result.exit_code == 0
    assert [row["skipped"] for row in json.loads(result.stdout)["coverage"]] == [None, "no such file or folder"]


def test_json_follows_its_schema(bundle: str) -> None:
    schema = json.loads(run("report-schema").stdout)
    jsonschema.validate(json.loads(run("postmortem", bundle, "--format", "json").stdout), schema)


def test_a_decision_is_one_json_line(bundle: str) -> None:
    result = run("postmortem", bundle, "--decision")
    (line,) = result.stdout.splitlines()
    assert set(json.loads(line)) == {"restart", "exclude_hosts", "drain", "resume_from", "suspect_checkpoints", "why"}


@pytest.mark.parametrize(("format_", "name"), [("text", "report.txt"), ("json", "report.json")])
def test_out_writes_a_file_or_into_a_folder(bundle: str, tmp_path: Path, format_: str, name: str) -> None:
    for target, written in ((tmp_path / "mine.out", tmp_path / "mine.out"), (tmp_path, tmp_path / name)):
        result = run("postmortem", bundle, "--format", format_, "--out", str(target))
        assert (result.exit_code, result.stdout) == (0, "")
        assert "gpu-oom" in written.read_text()


def test_out_into_a_folder_that_is_not_there_says_so(bundle: str) -> None:
    result = run("postmortem", bundle, "--out", "/nowhere/at/all/report.txt")
    assert result.exit_code == 2
    assert result.stderr == "triage: cannot write /nowhere/at/all/report.txt: No such file or directory\n"


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["--since", "yesterday"], "--since: 'yesterday' is not a time such as 2026-03-01T02:17:00Z"),
        (["--until", "2026-13-01"], "--until: '2026-13-01' is not a time such as"),
        (["--around", "02:17"], "--around: '02:17' is not a time such as"),
        (["--since", "0001-01-01T00:00:00+14:00"], "--since: "),
        (["--around", "0001-01-01", "--span", "1d"], "spans look like 30m or 2h"),
        (["--around", "2026-03-01", "--span", "99999999999d"], "--span: "),
        (["--around", "2026-03-01", "--span", "soon"], "such as 90s, 10m, 2h, 7d"),
        (["--span", "soon"], "such as 90s, 10m, 2h, 7d"),
        (["--around", "2026-03-01", "--span", "-5m"], "such as 90s, 10m, 2h, 7d"),
        (["--tz", "Mars/Olympus"], "names look like Europe/Berlin or UTC"),
        (["--tz", "Europe"], "names look like Europe/Berlin or UTC"),
        (["--tz", "../../etc/passwd"], "names look like Europe/Berlin or UTC"),
        (["--attempt", "first"], "neither a number nor 'last' nor 'all'"),
        (["--attempt", "²"], "neither a number nor 'last' nor 'all'"),
        (["--attempt", "0"], "neither a number nor 'last' nor 'all'"),
    ],
)
def test_a_bad_value_is_one_line_with_a_hint(bundle: str, args: Sequence[str], hint: str) -> None:
    result = run("postmortem", bundle, *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert hint in result.stderr
    assert result.stderr.startswith("triage: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ([], True),
        (["--since", "2026-03-01T00:00:00Z"], True),
        (["--since", "2026-03-02T00:00:00Z"], False),
        (["--until", "2026-02-28"], False),
        (["--around", "2026-03-01T02:20:00Z", "--span", "5m"], True),
        (["--around", "2026-03-01T03:20:00Z", "--span", "5m"], False),
        (["--around", "2026-03-01T03:20:00Z", "--span", "2h"], True),
        (["--attempt", "all"], True),
    ],
)
def test_spans_of_time_select(bundle: str, args: Sequence[str], found: bool) -> None:
    result = run("postmortem", bundle, "--tz", "UTC", "--format", "json", *args)
    assert bool(json.loads(result.stdout)["diagnoses"]) is found


def test_options_come_from_the_environment_too(bundle: str) -> None:
    result = run("postmortem", bundle, env={"TRIAGE_POSTMORTEM_FORMAT": "json", "TRIAGE_POSTMORTEM_FAIL_ON": "high"})
    assert json.loads(result.stdout)["verdict"] == "incident"
    assert result.exit_code == 1


def test_mistakes_in_extra_signatures_are_shown_and_stop_nothing(bundle: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yml").write_text("id: bad\n")
    result = run("postmortem", bundle, "--signatures", str(tmp_path / "bad.yml"))
    assert result.exit_code == 0
    assert "gpu-oom" in result.stdout
    assert "bad.yml:1:1: " in result.stderr
    assert run("postmortem", bundle, "--signatures", str(tmp_path / "bad.yml"), "--quiet").stderr == ""


# --- other commands


def test_signatures_are_listed_in_three_forms() -> None:
    text = run("signatures", "list", "--class", "gpu-oom").stdout.splitlines()
    rows = [json.loads(line) for line in run("signatures", "list", "--format", "json").stdout.splitlines()]
    assert len(rows) >= 60
    assert len(text) == sum(row["class"] == "gpu-oom" for row in rows)
    assert {"id", "class", "role", "title"} <= set(rows[0])


def test_patterns_are_one_a_line_never_blank_and_ripgrep_takes_each() -> None:
    patterns = run("signatures", "list", "--format", "patterns").stdout.splitlines()
    assert len(patterns) >= 60
    assert all(pattern.strip() for pattern in patterns)
    if shutil.which("rg") is None:
        pytest.skip("no ripgrep here")
    for number, pattern in enumerate(patterns):
        if number % 20 == 0 and _rg(patterns[number : number + 20]) is not None:
            for one in patterns[number : number + 20]:
                assert _rg([one]) is None, one
        assert "\n" not in pattern


def _rg(patterns: Sequence[str]) -> str | None:
    out = subprocess.run(
        ["rg", "-a", "-c", "-f", "-", "/dev/null"],
        input="\n".join(patterns),
        capture_output=True,
        text=True,
        check=False,
    )
    return out.stderr if out.returncode == 2 else None


def test_a_signature_is_shown_and_so_is_a_row_of_its_table() -> None:
    assert run("signatures", "show", "gpu-xid").stdout.startswith("id: gpu-xid")
    row = run("signatures", "show", "gpu-xid/79").stdout
    assert row.startswith("'79':")
    assert "gpu-fallen-off-bus" in row


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["signatures", "show", "gpu-xidd"], "did you mean 'gpu-xid'?"),
        (["signatures", "show", "gpu-xid/99999"], "has no row '99999'"),
        (["signatures", "new", "Bad Name"], "lower-case words joined by '-'"),
        (["playbooks", "show", "gpu-omm"], "did you mean 'gpu-oom'?"),
        (["playbooks", "show", "../README"], "no playbook"),
        (["demo", "gohst"], "no sample 'gohst'"),
    ],
)
def test_an_unknown_name_is_one_line_with_a_hint(args: list[str], hint: str) -> None:
    result = run(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert hint in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_new_signature_loads_passes_its_tests_and_is_never_overwritten(tmp_path: Path) -> None:
    assert run("signatures", "new", "my-line", "--dir", str(tmp_path / "sub")).exit_code == 0
    tested = run("signatures", "test", str(tmp_path))
    assert (tested.exit_code, tested.stdout) == (0, "1 signatures, 2 examples, 0 problems\n")
    assert run("signatures", "new", "my-line", "--dir", str(tmp_path / "sub")).exit_code == 2
    file = tmp_path / "sub" / "my-line.yml"
    file.write_text(file.read_text().replace("fields: {rank: 3}", "fields: {rank: 4}"))
    failed = run("signatures", "lint", str(file))
    assert failed.exit_code == 1
    assert "my-line.yml:" in failed.stdout
    assert "wanted 4" in failed.stdout


def test_playbooks_are_listed_and_shown() -> None:
    names = [line.split()[0] for line in run("playbooks", "list").stdout.splitlines()]
    assert {"gpu-oom", "nccl-timeout", "cron-rsync-race", "unknown"} <= set(names)
    assert "gpu-oom" in run("playbooks", "show", "gpu-oom").stdout


@pytest.mark.parametrize("name", [case.name for case in demo_cases(None)][:1])
def test_a_sample_runs_by_name(name: str) -> None:
    result = run("demo", name)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"==> {name}: ")
    assert "$ triage postmortem " in result.stdout
    assert json.loads(run("demo", name, "--format", "json").stdout)["schema"] == "triage.report/1"


def test_inspect_shows_the_lines_that_are_asked_for(bundle: str) -> None:
    file = Path(bundle) / "odd.log"
    file.write_text(OOM + "\x1b[31mred \x9b31m \u202eback\n" + OOM)
    rows = [json.loads(line) for line in run("inspect", str(file), "--line", "1", "--line", "2").stdout.splitlines()]
    assert [row["line"] for row in rows] == [1, 2]
    assert (rows[0]["rank"], rows[0]["time"]) == (2, "2026-03-01T02:17:00")
    assert "\u202e" not in run("inspect", str(file)).stdout


def test_schemas_are_json() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(run("report-schema").stdout))
    schema = json.loads(run("signatures", "schema").stdout)
    assert {"id", "class", "patterns", "examples"} <= set(schema["properties"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_command(shell: str) -> None:
    script = run("completion", shell).stdout
    assert "_TRIAGE_COMPLETE" in script
    assert "triage" in script


# --- as a process of its own


def process(args: Sequence[str], stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PYTHON, *args],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **env},
    )


def test_standard_input_is_read_as_a_file() -> None:
    out = process(["postmortem", "-", "--format", "json"], OOM)
    report = json.loads(out.stdout)
    assert (out.returncode, out.stderr) == (0, "")
    assert report["coverage"][0]["path"] == "<stdin>"
    assert report["diagnoses"][0]["class"] == "gpu-oom"


def test_a_terminal_that_cannot_show_a_character_gets_an_escape(bundle: str) -> None:
    (Path(bundle) / os.fsdecode(b"odd\xff.log")).write_text(OOM + "\u00e9\U0001f600\n")
    out = process(["postmortem", bundle, "--format", "json"], PYTHONIOENCODING="ascii")
    assert out.stderr == ""
    assert json.loads(out.stdout)["verdict"] == "incident"


def test_a_reader_that_leaves_early_gets_no_traceback(bundle: str) -> None:
    command = [*PYTHON, "postmortem", bundle, "--quiet"]
    reader, writer = os.pipe()
    os.close(reader)
    out = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    os.close(writer)
    assert (out.returncode, out.stderr) == (0, "")


@pytest.mark.parametrize(("env", "colour"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_is_for_terminals_and_no_color_turns_it_off(bundle: str, env: dict[str, str], colour: bool) -> None:
    pty = pytest.importorskip("pty")
    mine, theirs = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    with subprocess.Popen(
        [*PYTHON, "postmortem", bundle, "--quiet"],
        stdout=theirs,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        env={**clean, "TERM": "xterm", **env},
    ) as child:
        os.close(theirs)
        shown = b""
        try:
            while data := os.read(mine, 65536):
                shown += data
        except OSError:  # Linux reports the end of a terminal as an error
            pass
        assert child.wait(120) == 0
    os.close(mine)
    assert b"gpu-oom" in shown
    assert (b"\x1b[" in shown) is colour


def test_the_samples_are_where_the_code_looks() -> None:
    assert (data_dir("samples") / "ghost" / "case.yml").is_file()
