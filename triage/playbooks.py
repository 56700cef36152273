"""Playbooks: what a failure class is, what it explains, how likely it is and what to do (docs/playbooks.md).

Loading never raises for an author's mistake. Rendering is in :mod:`triage.templates`, re-exported here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml

from triage.errors import Problem
from triage.loader import Marks, at, suggestion
from triage.signature import Edge
from triage.templates import RenderedStep, missing_evidence, quoting_mistake, render, summary, template_mistakes
from triage.vocabulary import CLASSES, Owner, Restart, Risk, StepKind

__all__ = [
    "LoadedPlaybooks", "Missing", "Playbook", "RenderedStep", "Step", "Variant",
    "lint", "load_playbook", "load_playbooks", "missing_evidence", "render", "summary",
]  # fmt: skip

_HEADING: Final = re.compile(r"## (?P<kind>[A-Za-z]+)(?:: (?P<variant>[a-z0-9-]+))?\s*")
_ITEM: Final = re.compile(r"- \[(?P<risk>[^\]]*)\] (?P<text>.+)")
_COMMAND: Final = re.compile(r"(?P<text>.*?): `(?P<command>[^`]+)`", re.DOTALL)
_KINDS: Final = {kind.value.capitalize(): kind for kind in StepKind}
_TAGS: Final = {
    yaml.ScalarNode: "tag:yaml.org,2002:str", yaml.SequenceNode: "tag:yaml.org,2002:seq",
    yaml.MappingNode: "tag:yaml.org,2002:map",
}  # fmt: skip
_RISKS: Final = {risk.value: risk for risk in Risk}
_HELP: Final = "see docs/playbooks.md"


@dataclass(frozen=True, slots=True)
class Step:
    """One action as its author wrote it, templates not rendered. ``variant``: only that variant shows it."""

    kind: StepKind
    risk: Risk
    text: str
    command: str | None
    variant: str | None
    line: int


@dataclass(frozen=True, slots=True)
class Variant:
    """A sub-kind of a class."""

    title: str
    note: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Evidence that would decide, and how to get it."""

    what: str
    source: str
    command: str | None
    why: str


@dataclass(frozen=True)
class Playbook:
    """A failure class. See docs/playbooks.md for every field."""

    class_: str
    title: str
    definition: str
    owner: Owner
    prior: float
    prior_origin: str
    recovery_min: float
    restart: Restart
    exclude_host: bool
    suspect_checkpoints: bool
    explains: tuple[Edge, ...]
    variants: Mapping[str, Variant]
    summary: str
    missing: tuple[Missing, ...]
    steps: tuple[Step, ...]
    path: str
    title_zh: str | None = None


@dataclass(frozen=True, slots=True)
class LoadedPlaybooks:
    """The playbooks that are sound by class, and what is wrong with the others."""

    playbooks: Mapping[str, Playbook]
    problems: tuple[Problem, ...]


def load_playbooks(where: Path | Sequence[Path]) -> LoadedPlaybooks:
    """Load ``*.md`` of a directory, or of several: a later one overrides the classes of an earlier one."""
    playbooks: dict[str, Playbook] = {}
    problems: list[Problem] = []
    for directory in [where] if isinstance(where, Path) else where:
        for path in sorted(directory.glob("*.md")):
            found, wrong = load_playbook(path)
            problems.extend(wrong)
            if found is not None:
                playbooks[found.class_] = found
    return LoadedPlaybooks(playbooks, tuple(sorted(problems)))


def load_playbook(path: Path) -> tuple[Playbook | None, list[Problem]]:
    """Load one file; with problems there is no playbook."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as err:
        return None, [Problem(str(path), 1, 1, f"not readable: {err}", "a playbook is UTF-8 Markdown")]
    front, body, body_line = _split(text)
    if front is None:
        return None, [Problem(str(path), 1, 1, "no front matter", f"start with '---', YAML, '---'; {_HELP}")]
    parsed, problems = _front_matter(path, front)
    steps, wrong = _steps(path, body, body_line, parsed.variants if parsed else None)
    problems.extend(wrong)
    if parsed is None or problems:
        return None, problems
    return _build(path, parsed, steps), []


def lint(playbook: Playbook) -> list[Problem]:
    """Return what only shows when templates are compiled: syntax mistakes and names that are never filled."""
    parts: list[tuple[int, str]] = [(1, playbook.summary)]
    parts += [(1, missing.command) for missing in playbook.missing if missing.command]
    parts += [(step.line, part) for step in playbook.steps for part in (step.text, step.command) if part]
    return [
        Problem(playbook.path, line, 1, message, hint)
        for line, template in parts
        for message, hint in template_mistakes(template)
    ]


def _split(text: str) -> tuple[str | None, str, int]:
    """Return front matter, body and the line the body starts at."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return None, text, 1
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return "".join(lines[1:number]), "".join(lines[number + 1 :]), number + 2
    return None, text, 1


def _front_matter(path: Path, front: str) -> tuple[Any, list[Problem]]:
    from pydantic import ValidationError

    from triage.schemas.playbook import PlaybookFile

    try:
        root = yaml.compose(front, Loader=_loader())
        document = _value(root) if root is not None else None
    except yaml.YAMLError as err:
        return None, [_yaml_problem(path, err)]
    if root is None or not isinstance(document, dict):
        return None, [Problem(str(path), 2, 1, "the front matter is a mapping", f"'class: ...' and so on; {_HELP}")]
    try:
        parsed = PlaybookFile.model_validate(document)
    except ValidationError as err:
        marks = _marks(root)
        errors = sorted(err.errors(), key=lambda error: error["type"] == "missing")  # a misspelt key before its absence
        return None, [_validation_problem(path, error, marks) for error in errors]
    return parsed, list(_checks(path, parsed, root))


@lru_cache(maxsize=1)
def _loader() -> Any:
    """Return a loader for which every scalar is text: the schema converts, and resolving types costs half the time."""
    base: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

    class TextLoader(base):  # type: ignore[misc]
        def resolve(self, kind: type[yaml.Node], value: str, implicit: object) -> str:
            return _TAGS[kind]

    return TextLoader


def _value(node: yaml.Node, seen: set[int] | None = None) -> Any:
    """Return text, lists and mappings. Raises ``yaml.YAMLError`` for a repeated key and for aliases."""
    if isinstance(node, yaml.ScalarNode):
        return node.value
    seen = set() if seen is None else seen
    if id(node) in seen:
        raise yaml.MarkedYAMLError(problem="aliases are not used in playbooks", problem_mark=node.start_mark)
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, seen) for item in node.value]
    found: dict[str, Any] = {}
    for key, value in node.value:
        name = str(key.value)
        if name in found:
            raise yaml.MarkedYAMLError(problem=f"key {name!r} stands here twice", problem_mark=key.start_mark)
        found[name] = _value(value, seen)
    return found


def _yaml_problem(path: Path, err: yaml.YAMLError) -> Problem:
    mark = getattr(err, "problem_mark", None)
    line, column = (mark.line + 2, mark.column + 1) if mark else (2, 1)
    text = getattr(err, "problem", None) or str(err)
    return Problem(str(path), line, column, f"not readable as YAML: {text}", "quote values that hold ':', ',' or '#'")


def _marks(root: yaml.Node) -> Marks:
    """Return (line in the file, column) of each node by its path; front matter begins at line 2."""
    marks: Marks = {}

    def mark(where: tuple[str | int, ...], node: yaml.Node) -> None:
        marks[where] = (node.start_mark.line + 2, node.start_mark.column + 1)

    def walk(node: yaml.Node, where: tuple[str | int, ...]) -> None:
        mark(where, node)
        for position, item in enumerate(() if isinstance(node, yaml.ScalarNode) else node.value):
            key, value = item if isinstance(node, yaml.MappingNode) else (None, item)
            below = (*where, position if key is None else key.value)
            walk(value, below)
            mark(below, key or value)

    walk(root, ())
    return marks


def _validation_problem(path: Path, error: Any, marks: Marks) -> Problem:
    from triage.schemas import playbook as schema

    where = [part for part in error["loc"] if not (isinstance(part, str) and part.startswith("function-"))]
    line, column = at(marks, where)
    hint = ""
    if error["type"] == "extra_forbidden":
        models = {"explains": schema.ExplainsModel, "variants": schema.VariantModel, "missing": schema.MissingModel}
        model: Any = models.get(str(where[0]), schema.PlaybookFile) if len(where) > 1 else schema.PlaybookFile
        hint = suggestion(str(where[-1]), (field.alias or name for name, field in model.model_fields.items()))
    elif error["type"] == "enum":
        expected = str(error["ctx"]["expected"]).replace("'", "").replace(" or ", ", ")
        hint = suggestion(str(error["input"]), expected.split(", "))
    elif error["type"] == "missing":
        hint = f"every field of an entry is required; {_HELP}"
    return Problem(str(path), line, column, f"{'.'.join(map(str, where))}: {error['msg']}", hint or _HELP)


def _checks(path: Path, parsed: Any, root: yaml.Node) -> Iterator[Problem]:
    wrong: list[tuple[tuple[str | int, ...], str, str]] = []
    if parsed.class_ != path.stem:
        wrong.append((("class",), f"class {parsed.class_!r} is not the stem {path.stem!r}", "rename one of them"))
    if parsed.class_ not in CLASSES:
        wrong.append((("class",), f"unknown class {parsed.class_!r}", suggestion(parsed.class_, CLASSES)))
    seen: set[str] = set()
    for position, edge in enumerate(parsed.explains):
        where = ("explains", position, "class")
        if edge.class_ not in CLASSES:
            wrong.append((where, f"unknown class {edge.class_!r}", suggestion(edge.class_, CLASSES)))
        if edge.class_ in seen or edge.class_ == parsed.class_:
            wrong.append((where, f"second edge to {edge.class_!r}, or one to itself", "one edge per class; merge them"))
        seen.add(edge.class_)
    for position, missing in enumerate(parsed.missing):
        if missing.command and (mistake := quoting_mistake(missing.command)):
            wrong.append((("missing", position, "command"), mistake, "values are shell-quoted already"))
    if wrong:
        marks = _marks(root)
        for where_, message, hint in wrong:
            line, column = at(marks, where_)
            yield Problem(str(path), line, column, message, hint)


def _steps(
    path: Path, body: str, first: int, variants: Mapping[str, Any] | None
) -> tuple[tuple[Step, ...], list[Problem]]:
    """Parse the sections. ``variants`` is None when the front matter is broken: then variant names are not checked."""
    problems: list[Problem] = []
    steps: list[Step] = []
    kind: StepKind | None = None
    variant: str | None = None
    for line, text in _logical_lines(body, first):
        if text.startswith("#"):
            kind, variant, mistake = _heading(text, variants)
            problems.extend(Problem(str(path), line, 1, *m) for m in mistake)
        elif kind is not None:
            step, mistake = _step(text, kind, variant, line)
            problems.extend(Problem(str(path), line, 1, *m) for m in mistake)
            steps.extend([step] if step else [])
        else:
            hint = "sections: ## " + ", ## ".join(_KINDS)
            problems.append(Problem(str(path), line, 1, "text outside a section", hint))
    return tuple(steps), problems


def _logical_lines(body: str, first: int) -> Iterator[tuple[int, str]]:
    """Yield (line, text) with indented continuation lines joined."""
    start, current = 0, ""
    for number, raw in enumerate(body.splitlines(), start=first):
        text = raw.rstrip()
        if current and text.startswith("  ") and text.strip():
            current += " " + text.strip()
            continue
        if current:
            yield start, current
        start, current = number, text
    if current:
        yield start, current


def _heading(
    text: str, variants: Mapping[str, Any] | None
) -> tuple[StepKind | None, str | None, list[tuple[str, str]]]:
    found = _HEADING.fullmatch(text)
    kind = _KINDS.get(found["kind"]) if found else None
    if found is None or kind is None:
        return None, None, [(f"unknown section {text!r}", suggestion(text.lstrip("# ").split(":")[0], _KINDS))]
    variant = found["variant"]
    if variant and variants is not None and variant not in variants:
        hint = suggestion(variant, variants) or "list it under 'variants' in the front matter"
        return kind, variant, [(f"unknown variant {variant!r}", hint)]
    return kind, variant, []


def _step(text: str, kind: StepKind, variant: str | None, line: int) -> tuple[Step | None, list[tuple[str, str]]]:
    found = _ITEM.fullmatch(text)
    if not found:
        return None, [("not a step", "one list item each: '- [safe] Sentence: `command`'")]
    if (risk := _RISKS.get(found["risk"])) is None:
        return None, [(f"unknown risk {found['risk']!r}", suggestion(found["risk"], _RISKS))]
    command = _COMMAND.fullmatch(found["text"])
    words, shell = (command["text"], command["command"]) if command else (found["text"], None)
    if shell and (mistake := quoting_mistake(shell)):
        return None, [(mistake, "values are shell-quoted already; keep them out of quotes and nested shells")]
    return Step(kind, risk, words.strip(), shell, variant, line), []


def _build(path: Path, parsed: Any, steps: tuple[Step, ...]) -> Playbook:
    return Playbook(
        class_=parsed.class_,
        title=parsed.title,
        title_zh=parsed.title_zh,
        definition=parsed.definition,
        owner=parsed.owner,
        prior=parsed.prior,
        prior_origin=parsed.prior_origin,
        recovery_min=parsed.recovery_min,
        restart=parsed.restart,
        exclude_host=parsed.exclude_host,
        suspect_checkpoints=parsed.suspect_checkpoints,
        explains=tuple(Edge(e.class_, e.strength, e.lag, e.scope) for e in parsed.explains),
        variants={name: Variant(v.title, v.note) for name, v in parsed.variants.items()},
        summary=parsed.summary,
        missing=tuple(Missing(m.what, m.source, m.command, m.why) for m in parsed.missing),
        steps=steps,
        path=str(path),
    )
