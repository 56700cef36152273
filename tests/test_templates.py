"""Playbook templates: hostile values stay inert, failures are shown, commands are valid shell."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from triage.playbooks import Playbook, load_playbook, load_playbooks, missing_evidence, render, summary
from triage.templates import NAMES, quoting_mistake, template_mistakes
from triage.vocabulary import CLASSES, StepKind

ROOT = Path(__file__).resolve().parents[1] / "playbooks"
BOOKS = load_playbooks(ROOT).playbooks
FULL: dict[str, Any] = {
    "host": "gpu-12", "hosts": ["gpu-12", "gpu-13"], "rank": 0, "ranks": [0, 3], "gpu": 0, "pci": "0000:3b:00",
    "uuid": "GPU-11111111-2222-3333-4444-555555555555", "device": "mlx5_0", "rack": "rack3", "job": "4242",
    "path": "/data/train/ckpt", "server": "nas01", "peer": "192.0.2.7", "time": "2026-12-01T02:17:05+00:00",
    "pid": 4711,    "user": "ana", "step": 12000, "checkpoint": "/data/train/ckpt/step_11000", "count": 3,
    "fields": {"xid": 79, "comm": "pt_data_worker", "value": "12.5", "exitcode": -9, "port": 29500},
}  # fmt: skip
HOSTILE = [
    "$(rm -rf /)",
    "`id`",
    "a\nrm -rf /",
    "{{ 7*7 }}",
    "{% for x in y %}",
    "'; rm -rf / #",
    '" && reboot',
    "-oProxyCommand=x",
    "\x1b[2J",
    "x" * 9000,
]


@pytest.fixture(params=sorted(CLASSES))
def book(request: pytest.FixtureRequest) -> Playbook:
    return BOOKS[request.param]


def shown(book: Playbook, fields: dict[str, Any]) -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = []
    for variant in (None, *book.variants):
        steps = render(book, fields, variant)
        assert not [step.warning for step in steps if step.warning]
        found += [(step.text, step.command) for step in steps]
        found += [(str(item["what"]), item["command"]) for item in missing_evidence(book, fields, variant)]
        found.append((summary(book, fields, variant), None))
    return found


@pytest.mark.parametrize("fields", [{}, dict.fromkeys(NAMES), FULL], ids=["empty", "none", "full"])
def test_rendering_leaves_no_template_behind(book: Playbook, fields: dict[str, Any]) -> None:
    for text, command in shown(book, fields):
        assert text.strip()
        assert not re.search(r"\{\{|\{%", f"{text} {command}")
        assert "None" not in (command or "")
        assert "''" not in (command or "")


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_values_stay_inert(book: Playbook, value: str) -> None:
    fields: dict[str, Any] = dict.fromkeys(NAMES, value)
    fields |= {"hosts": [value, value], "ranks": [value], "fields": dict.fromkeys(FULL["fields"], value)}
    plain = shown(
        book,
        {
            **dict.fromkeys(NAMES, "V"),
            "hosts": ["V", "V"],
            "ranks": ["V"],
            "fields": dict.fromkeys(FULL["fields"], "V"),
        },
    )
    for (text, command), (_, harmless) in zip(shown(book, fields), plain, strict=True):
        assert not re.search(r"[\x00-\x1f\x7f]|\b49\b", f"{text}{command}")
        if command is not None and harmless is not None:
            assert operators(command) == operators(harmless)


def operators(command: str) -> list[str]:
    """Return the shell's own punctuation, as a POSIX lexer sees it outside quotes."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return [word for word in lexer if set(word) <= set("();<>|&")]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_shell_takes_each_value_as_one_word() -> None:
    book = BOOKS["gpu-ecc"]
    for value in HOSTILE[:8]:
        steps = [step for step in render(book, {"host": value}) if "scontrol update" in (step.command or "")]
        script = f"scontrol() {{ printf '%s\\n' \"$@\"; }}; {steps[0].command}"
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
        assert len(done.stdout.splitlines()) == 4
        assert done.stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_commands_are_valid_shell(book: Playbook) -> None:
    commands = sorted({command for _, command in shown(book, FULL) if command})
    for command in commands:
        done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"


def test_variant_steps_come_first_in_their_section() -> None:
    steps = render(BOOKS["gpu-oom"], {}, "fragmentation")
    fixes = [step for step in steps if step.kind is StepKind.FIX]
    assert [step.variant for step in fixes[:2]] == ["fragmentation"] * 2
    assert all(step.variant in (None, "fragmentation") for step in steps)
    assert [step.kind for step in steps] == sorted((s.kind for s in steps), key=list(StepKind).index)


MINIMAL = """---
class: gpu-ecc
title: T
definition: D
owner: hardware
prior: 4.0
prior_origin: here
recovery_min: 45
restart: after-fix
exclude_host: true
suspect_checkpoints: false
explains: []
summary: S
missing:
  - {what: W, source: kernel, command: dmesg, why: Y}
---
## Confirm
STEP
"""


def one_step(folder: Path, step: str) -> Playbook:
    path = folder / "gpu-ecc.md"
    path.write_text(MINIMAL.replace("STEP", step), encoding="utf-8")
    found, problems = load_playbook(path)
    assert not problems
    assert found
    return found


def test_template_failure_shows_the_raw_text(tmp_path: Path) -> None:
    found = one_step(tmp_path, "- [safe] Division {{ 1 / 0 }}: `echo {{ 1 / 0 }}`")
    (step,) = render(found, {})
    assert step.text == "Division {{ 1 / 0 }}"
    assert step.command == "echo {{ 1 / 0 }}"
    assert "ZeroDivisionError" in (step.warning or "")


def test_sandbox_forbids_reaching_out(tmp_path: Path) -> None:
    found = one_step(tmp_path, "- [safe] Types: {{ ''.__class__.__mro__ }}")
    (step,) = render(found, {})
    assert "<class" not in step.text


@pytest.mark.parametrize(
    ("command", "mistake"),
    [
        ("ls {{ path }}", False), ("ls '{{ path }}'", True), ('ls "{{ path }}"', True), ("ls {{ a }} 'b|c'", False),
        ("ssh {{ host }} uptime", True), ("sh -c 'echo hi' {{ host }}", True), ("echo \\' {{ host }}", False),
        ("srun sh -c 'ulimit -l'", False), ('grep "{% if x %}a{% endif %}" f', False),
    ],
)  # fmt: skip
def test_quoting_mistakes(command: str, mistake: bool) -> None:
    assert bool(quoting_mistake(command)) is mistake


def test_lint_names_unknown_names_and_bad_syntax() -> None:
    assert "unknown name 'hostname'" in next(template_mistakes("{{ hostname }}"))[0]
    assert "bad template" in next(template_mistakes("{% if %}"))[0]
