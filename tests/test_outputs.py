"""Reports as text and JSON: readable in a narrow window and without colour; no log line acts on the reader."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

import triage.outputs
from tests.conftest import Diagnose
from triage.outputs.base import Style
from triage.outputs.safe import json_text, mask, visible
from triage.report import Report

HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x1b[31m\u202eevil\u202c \u200bzero <script>alert(1)</script> {{ 7*7 }} {% raw %} "
    "[bold red]markup[/] :smile: "
    "`rm -rf /` $(reboot) **md** password=hunter2hunter2 https://bob:s3cr3tpw@git.example.net/x"
)
OOM = f"[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. {HOSTILE}\n"
FORMATS = [m.name for m in pkgutil.iter_modules(triage.outputs.__path__) if m.name not in ("base", "safe")]


@pytest.fixture
def report(diagnose: Diagnose) -> Report:
    return diagnose({"train.log": OOM, "evil\x1b[31m\u202e.log": OOM, "gpu-1/dmesg.txt": b"\xff\xd8\xff\xe0"})


def render(report: Report, format_: str, style: Style) -> str:
    return str(importlib.import_module(f"triage.outputs.{format_}").render(report, style))


@pytest.mark.parametrize("width", [40, 80, 120])
def test_text_fits_the_window_but_commands_stay_whole(report: Report, width: int) -> None:
    lines = render(report, "text", Style(width=width, why=True)).splitlines()
    for line in lines:
        assert len(line) <= width or line.lstrip().startswith("$ "), line
    assert all(line == line.rstrip() for line in lines)


def test_the_first_three_lines_are_decision_cause_and_culprit(report: Report) -> None:
    assert [line.split()[0] for line in render(report, "text", Style(width=200)).splitlines()[:3]] == [
        "Decision",
        "Cause",
        "Culprit",
    ]


@pytest.mark.parametrize("format_", FORMATS)
def test_without_colour_no_escape_and_no_active_character_is_printed(report: Report, format_: str) -> None:
    text = render(report, format_, Style(why=True))
    assert not [c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def test_with_colour_only_our_own_colours_are_printed(report: Report) -> None:
    text = render(report, "text", Style(color=True))
    assert "\x1b[" in text
    assert set(re.findall(r"\x1b(.)", text)) == {"["}
    assert not re.search(r"\x1b\[[0-9;]*[A-Zac-ln-z]", text)


@pytest.mark.parametrize("format_", FORMATS)
def test_secrets_are_masked(report: Report, format_: str) -> None:
    text = render(report, format_, Style(width=400, why=True))
    assert "hunter2hunter2" not in text
    assert "s3cr3tpw" not in text


def test_markup_and_templates_in_a_log_line_are_just_text(report: Report) -> None:
    text = " ".join(render(report, "text", Style(width=1000)).split())
    for quoted in ("{{ 7*7 }}", "[bold red]markup[/]", "<script>", ":smile:", "\\x1b[31m", "\\u202e"):
        assert quoted in text
    cited = json.loads(render(report, "json", Style()))["diagnoses"][0]["evidence"][0]["text"]
    assert "{{ 7*7 }}" in cited
    assert "\x1b[31m\u202eevil" in cited


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("WANDB_API_KEY=0123456789abcdef", "WANDB_API_KEY=***"),
        ('{"token": "abcdefghij"}', '{"token": "***"}'),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"),
        ("mysqldump --password hunter2x db", "mysqldump --password *** db"),
        ("redis://:pw123456@cache:6379", "redis://:***@cache:6379"),
        ("https://bob:pw@git/x.git", "https://bob:***@git/x.git"),
        ("hf_AbCdEfGhIjKlMnOpQrSt0123", "***"),
        ("using AKIAIOSFODNN7EXAMPLE01 now", "using *** now"),
    ],
)
def test_a_secret_is_masked_and_its_name_stays(text: str, shown: str) -> None:
    assert mask(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Token indices sequence length is longer than the specified maximum",
        "per token latency 12.5 ms",
        "HF_HUB_DISABLE_PROGRESS_BARS=1",
        "password authentication failed for user",
        "sk-node-rack-12.cluster.local joined",
        "tcp://10.0.0.1:29500",
        "file:///a/b:c",
        "user@host:/path",
        "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "bearer of bad news",
    ],
)
def test_what_only_sounds_like_a_secret_stays(text: str) -> None:
    assert mask(text) == text


@given(st.text())
def test_visible_text_holds_nothing_that_acts(text: str) -> None:
    assert not [
        c for c in visible(text) if c != "\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    ]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_json_text_round_trips_and_prints_nothing_that_acts(text: str) -> None:
    shown = json_text({"path": text})
    assert json.loads(shown) == {"path": text}
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")]


def test_a_report_without_incident_says_so(diagnose: Diagnose) -> None:
    text = render(diagnose({"train.log": "2026-03-01 02:00:00 INFO step 1 loss 2.0\n"}), "text", Style())
    assert text.startswith("NO INCIDENT")
    assert render(diagnose({"train.log": ""}), "text", Style()).startswith("NO ")
