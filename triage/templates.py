"""Rendering of playbook text and commands: Jinja2 in a sandbox, hostile field values stay inert.

Log text lands here. A value is never rendered a second time, loses its control characters, is cut in length, and is
shell-quoted in a command; a value that begins with a dash cannot become an option. A template that quotes by itself, or
hands a value to a second shell, is refused when the playbook is loaded (:func:`quoting_mistake`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from triage.vocabulary import Risk, StepKind

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

    from triage.playbooks import Playbook, Step

NAMES: Final[tuple[str, ...]] = (
    "host", "hosts", "rank", "ranks", "gpu", "pci", "uuid", "device", "rack", "job", "path", "server", "peer", "time",
    "pid", "user", "step", "checkpoint", "variant", "count", "fields",
)  # fmt: skip
"""What a template may use; None when unknown. ``fields`` holds the captures of the decisive line."""

_LONGEST: Final = 400
_MOST: Final = 64
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_TOKEN: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\\.|['\"]", re.DOTALL)
_SECOND_SHELL: Final = re.compile(r"\b(?:ssh|pdsh|clush|eval|xargs|(?:ba|da|z|k)?sh\s+-\w*c|su\s+-c|watch)\b")


@dataclass(frozen=True, slots=True)
class RenderedStep:
    """A step ready to show. ``warning`` says that a template failed and the raw text is shown."""

    kind: StepKind
    risk: Risk
    text: str
    command: str | None
    variant: str | None
    warning: str | None = None


class Captures:
    """The captures of a line for templates: a name that is not there is None."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any] | None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, name: str) -> Any:
        return self._values.get(name)


def render(playbook: Playbook, fields: Mapping[str, Any], variant: str | None = None) -> list[RenderedStep]:
    """Return the steps to show: confirm, mitigate, fix, prevent; in each the variant's own steps first."""
    context = _context(fields, variant)
    order = list(StepKind)
    shown = [step for step in playbook.steps if step.variant is None or step.variant == context["variant"]]
    shown.sort(key=lambda step: (order.index(step.kind), step.variant is None))
    return [_render_step(step, context) for step in shown]


def summary(playbook: Playbook, fields: Mapping[str, Any], variant: str | None = None) -> str:
    """Return the one-sentence summary; the raw text if its template fails."""
    return _squeeze(_rendered(playbook.summary, _context(fields, variant), command=False)[0])


def missing_evidence(
    playbook: Playbook, fields: Mapping[str, Any], variant: str | None = None
) -> list[dict[str, str | None]]:
    """Return what would decide, as the report has it: what, source, command (filled in), why."""
    context = _context(fields, variant)
    return [
        {
            "what": item.what,
            "source": item.source,
            "command": _rendered(item.command, context, command=True)[0] if item.command else None,
            "why": item.why,
        }
        for item in playbook.missing
    ]


def quoting_mistake(command: str) -> str | None:
    """Say why a value in ``command`` could not be quoted safely, or None."""
    if "{{" not in command:
        return None
    quote = ""
    for part in _TOKEN.findall(command):
        if part.startswith("{{") and quote:
            return f"a value inside quotes: {part}"
        if part in ("'", '"') and quote in ("", part):
            quote = "" if quote else part
    second = _SECOND_SHELL.search(command)
    if second and "{{" in command[second.end() :]:
        return f"a value after {second[0]!r}, which starts a second shell"
    return None


def template_mistakes(template: str) -> Iterator[tuple[str, str]]:
    """Yield (message, hint) for a template that does not compile or uses a name that is never filled."""
    from jinja2 import TemplateError, meta

    environment = _environment(command=False)
    try:
        tree = environment.parse(template)
        environment.from_string(template)
    except TemplateError as err:
        yield f"bad template: {err}", "Jinja2; see docs/playbooks.md"
        return
    for name in sorted(meta.find_undeclared_variables(tree) - set(NAMES)):
        yield f"unknown name {name!r} in a template", f"one of: {', '.join(NAMES)}; captures are fields.<name>"


def _context(fields: Mapping[str, Any], variant: str | None) -> dict[str, Any]:
    context = {name: fields.get(name) for name in NAMES}
    context["variant"] = variant if variant is not None else fields.get("variant")
    context["fields"] = Captures(fields.get("fields"))
    return context


def _render_step(step: Step, context: Mapping[str, Any]) -> RenderedStep:
    text, warning = _rendered(step.text, context, command=False)
    command, second = _rendered(step.command, context, command=True) if step.command else (None, None)
    return RenderedStep(step.kind, step.risk, _squeeze(text), command, step.variant, warning or second)


def _rendered(template: str, context: Mapping[str, Any], *, command: bool) -> tuple[str, str | None]:
    if "{" not in template:
        return template, None
    try:
        return _compiled(template, command).render(context), None
    except Exception as err:  # whatever an author's template does, the report is written
        return template, f"template not rendered: {type(err).__name__}: {err}"


def _squeeze(text: str) -> str:
    return " ".join(text.split())


@lru_cache(maxsize=1024)
def _compiled(template: str, command: bool) -> Any:
    return _environment(command=command).from_string(template)


@lru_cache(maxsize=2)
def _environment(*, command: bool) -> SandboxedEnvironment:
    from jinja2 import ChainableUndefined
    from jinja2.runtime import Context
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import missing

    class NoneContext(Context):
        """Names that nobody set are None."""

        def resolve_or_missing(self, key: str) -> Any:
            found = super().resolve_or_missing(key)
            return None if found is missing else found

    class Environment(ImmutableSandboxedEnvironment):
        """The sandbox, with a context in which unknown names are None."""

        context_class = NoneContext

    return Environment(
        undefined=ChainableUndefined, autoescape=False, finalize=_quoted if command else _plain, cache_size=0
    )


def _plain(value: Any) -> str:
    """Finalize a value in a sentence."""
    if _unknown(value):
        return "unknown"
    if isinstance(value, (list, tuple, set, frozenset)):
        items = list(value)
        rest = f" and {len(items) - _MOST} more" if len(items) > _MOST else ""
        return ", ".join(map(_clean, items[:_MOST])) + rest
    return _clean(value)


def _quoted(value: Any) -> str:
    """Finalize a value in a command: one shell word, or one for each element of a list."""
    if _unknown(value):
        return "'<unknown>'"
    if isinstance(value, (list, tuple, set, frozenset)):
        return " ".join(_word(item) for item in list(value)[:_MOST])
    return _word(value)


def _word(value: Any) -> str:
    text = _clean(value)
    return shlex.quote(f"<{text}>" if text.startswith("-") else text)


def _unknown(value: Any) -> bool:
    from jinja2 import Undefined

    return value is None or isinstance(value, Undefined)


def _clean(value: Any) -> str:
    text = _CONTROL.sub("?", str(value))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
