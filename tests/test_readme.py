"""What the README shows is what the product prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from triage.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"\$ triage postmortem samples/([\w-]+)/bundle")


def shown() -> list[tuple[str, list[str]]]:
    """Return (sample, lines printed) of every console block that runs one; ``...`` stands for what was left out."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL):
        parts = COMMAND.split(block)
        for sample, text in zip(parts[1::2], parts[2::2], strict=True):
            printed = text.split("\n$ ")[0].splitlines()
            found.append((sample, [line for line in printed if line.strip() and line != "..."]))
    return found


def test_the_readme_shows_output() -> None:
    """Both the first page and the demo show a report."""
    assert [sample for sample, lines in shown() if len(lines) >= 3] == ["nccl-timeout-xid79", "dataloader-hang"]


@pytest.mark.parametrize(("sample", "lines"), shown())
def test_output_is_real(sample: str, lines: list[str]) -> None:
    """Every line is printed, in this order, digit for digit."""
    result = CliRunner().invoke(main, ["postmortem", str(ROOT / "samples" / sample / "bundle")], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    printed = iter(result.stdout.splitlines())
    for line in lines:
        assert line in printed, f"README.md: not printed here, or no longer: {line}"
