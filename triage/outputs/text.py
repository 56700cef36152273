"""``--format text``: for a terminal at 3 a.m. Decision, cause and culprit first; readable at 80 columns and without colour."""

from __future__ import annotations

import io
import shlex
from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.text import Text

from triage.outputs.base import Style
from triage.outputs.safe import mask, visible
from triage.report import Cited, Diagnosis, Report, iso

_LEVEL_STYLE: Final = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "cyan", "informational": "dim"}
_RISK_STYLE: Final = {"safe": "green", "disruptive": "yellow", "destructive": "bold red"}
_RESTART: Final = {
    "now": "RESTART NOW",
    "after-fix": "FIX FIRST, THEN RESTART",
    "do-not": "DO NOT RESTART",
    "unclear": "NO CLEAR DECISION",
}
_CITED_LINES = 6
_STEPS: Final = {"confirm": 3, "mitigate": 4, "fix": 4, "prevent": 3}


def render(report: Report, style: Style) -> str:
    """Return the report as text that ends in a newline."""
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=max(40, style.width),
        force_terminal=style.color,
        no_color=not style.color,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
        color_system="standard" if style.color else None,
    )
    _Writer(console, style).report(report)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


class _Writer:
    def __init__(self, console: Console, style: Style) -> None:
        self._console = console
        self._style = style

    def line(self, text: str = "", style: str = "", indent: int = 0) -> None:
        """Print one paragraph, wrapped with a hanging indent."""
        if not text:
            self._console.print()
            return
        width = self._console.width - indent
        for row in Text(visible(mask(text)), style=style).wrap(self._console, max(20, width)):
            self._console.print(Text(" " * indent) + row, soft_wrap=True)

    def one_line(self, head: str, text: str, tail: str) -> None:
        """Print one line that never wraps: the text in the middle gives way."""
        room = max(8, self._console.width - len(head) - len(tail))
        text = visible(text)
        self._console.print(
            Text(head + (text if len(text) <= room else text[: room - 1] + "\u2026") + tail), soft_wrap=True
        )

    def command(self, command: str, indent: int) -> None:
        """Print a command on one line, never wrapped, so that it can be copied."""
        self._console.print(Text(" " * indent + "$ " + visible(mask(command)), style="bold"), soft_wrap=True)

    def report(self, report: Report) -> None:
        self.head(report)
        for position, diagnosis in enumerate(report.diagnoses, 1):
            self.diagnosis(position, diagnosis)
        self.foot(report)

    def head(self, report: Report) -> None:
        if not report.diagnoses:
            if report.verdict == "no-evidence":
                self.line("NO EVIDENCE: nothing in the input could be read as a log.", "bold yellow")
                self.line("Cause    unknown: see the coverage below for what was skipped and why.")
            else:
                self.line("NO INCIDENT: no known failure in what was read.", "bold green")
                lines = sum(c.lines for c in report.coverage)
                self.line(f"Cause    none in evidence ({lines:,} lines in {len(report.coverage)} files).")
            self.line("Culprit  none")
            return
        first, decision = report.diagnoses[0], report.decision
        extra = f"; without {', '.join(decision.exclude_hosts)}" if decision.exclude_hosts else ""
        self.line(f"Decision {_RESTART[decision.restart.value]}{extra}", "bold")
        more = f" (+{len(report.diagnoses) - 1} more)" if len(report.diagnoses) > 1 else ""
        tail = f" [{first.class_}{f'/{first.variant}' if first.variant else ''}], {sure(first.confidence)} sure{more}"
        self.one_line("Cause    ", first.title, tail)
        self.one_line("Culprit  ", culprit(first), "")

    def diagnosis(self, position: int, diagnosis: Diagnosis) -> None:
        self.line()
        head = f"{position}. {diagnosis.title} \u2014 {diagnosis.level.value}, {sure(diagnosis.confidence)}"
        self.line(head, _LEVEL_STYLE[diagnosis.level.value])
        self.line(diagnosis.summary, indent=3)
        self.line("Evidence", "bold", 3)
        for cited in diagnosis.evidence[:_CITED_LINES]:
            self.evidence(cited)
        for name, cited_lines in diagnosis.symptoms:
            where = f"{cited_lines[0].line.path}:{cited_lines[0].line.line}" if cited_lines else ""
            self.line(f"explains {name}: {cited_lines[0].event.title if cited_lines else ''} ({where})", "dim", 3)
        for alternative in diagnosis.alternatives[:3]:
            self.line(f"or {alternative.class_} ({sure(alternative.confidence)}): {alternative.why_not}", "dim", 3)
        if self._style.why:
            self.why(diagnosis)
        self.steps(diagnosis)
        for missing in diagnosis.missing[:4]:
            self.line(f"Missing: {missing.what} \u2014 {missing.why}", indent=3)
            if missing.command:
                self.command(missing.command, 6)

    def evidence(self, cited: Cited) -> None:
        line = cited.line
        at = iso(line.when.at)
        count = (
            f" x{cited.event.count:,}{'+' if cited.event.count_is_lower_bound else ''}" if cited.event.count > 1 else ""
        )
        self.line(f"{line.path}:{line.line}{count}  {at or 'time unknown, order only'}", "cyan", 3)
        text = mask(line.text.strip())
        self.line(text if len(text) <= 300 else text[:297] + "...", indent=6)
        self._console.print(Text(f"      $ {see(cited)}", style="dim"), soft_wrap=True)

    def why(self, diagnosis: Diagnosis) -> None:
        self.line("Why (natural logarithms; positive speaks for it)", "bold", 3)
        for reason in diagnosis.reasons:
            self.line(f"{reason.weight:+7.2f}  {reason.text}", indent=3)

    def steps(self, diagnosis: Diagnosis) -> None:
        for kind, limit in _STEPS.items():
            steps = [s for s in diagnosis.remediation if s.kind.value == kind]
            if not steps:
                continue
            self.line(kind.capitalize(), "bold", 3)
            for step in steps[:limit]:
                mark = "" if step.risk.value == "safe" else f"[{step.risk.value}] "
                self.line(f"- {mark}{step.text}", _RISK_STYLE[step.risk.value] if mark else "", 3)
                if step.command:
                    self.command(step.command, 6)
            if len(steps) > limit:
                self.line(f"  ... {len(steps) - limit} more: triage playbooks show {diagnosis.class_}", "dim", 3)

    def foot(self, report: Report) -> None:
        self.line()
        for warning in report.warnings[:12]:
            self.line(f"! {warning}", "yellow")
        for unknown in report.unexplained[:5]:
            self.line(f"? {unknown.path}:{unknown.line} x{unknown.count} {mask(unknown.text)[:200]}", "dim")
        skipped = [c for c in report.coverage if c.skipped]
        lines = sum(c.lines for c in report.coverage)
        undated = sum(c.undated_lines for c in report.coverage)
        self.line(
            f"Read {len(report.coverage) - len(skipped)} of {len(report.coverage)} files, {lines:,} lines ({undated:,} without a time).",
            "dim",
        )
        for row in skipped[:10]:
            self.line(f"  skipped {row.path}: {row.skipped}", "dim")


def sure(confidence: float) -> str:
    """Return a percentage that never claims certainty."""
    return f"{min(0.99, max(0.01, confidence)):.0%}"


def culprit(diagnosis: Diagnosis) -> str:
    """Return rank, host, device and rack in words, and when it began there."""
    where = ", ".join(_parts(diagnosis)) or "not in evidence"
    return f"{where}, at {iso(diagnosis.time)}" if diagnosis.time else where


def _parts(diagnosis: Diagnosis) -> Iterator[str]:
    place = diagnosis.place
    if place.rank is not None:
        yield f"rank {place.rank}"
    if place.host:
        yield f"host {place.host}"
    if place.gpu is not None:
        yield f"GPU {place.gpu}"
    if place.pci:
        yield f"PCI {place.pci}"
    if place.device:
        yield f"{place.kind or 'device'} {place.device}"
    if place.server:
        yield f"server {place.server}"
    if place.rack:
        yield f"rack {place.rack}"


def see(cited: Cited) -> str:
    """Return the command that shows a line in its context."""
    first = max(1, cited.line.line - 5)
    return f"sed -n '{first},{cited.line.line + 5}p' {shlex.quote(visible(cited.line.path))}"
