"""YAML files of authors -> signatures. Every mistake of every file is collected with file:line:col and a hint."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import regex
import yaml

from triage.errors import Problem
from triage.patterns import PatternSyntaxError, probe_forms, scan_form
from triage.signature import Condition, Edge, Example, FieldTest, Signature
from triage.vocabulary import CLASSES, Level, Noise, Origin, Role, Scope, Status, Strength

_UNREADABLE: Final = (yaml.YAMLError, OSError, UnicodeDecodeError, RecursionError)
Marks = dict[tuple[str | int, ...], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Loaded:
    """The signatures that are sound, and what is wrong with the others."""

    signatures: tuple[Signature, ...]
    problems: tuple[Problem, ...]


def read_yaml(path: Path) -> tuple[Any, Marks]:
    """Return the document and the (line, column) of each of its nodes by path. Raises ``yaml.YAMLError``, ``OSError``."""
    text = path.read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    root = yaml.compose(text, Loader=loader)
    marks: Marks = {}
    if root is not None:
        _mark(root, (), marks, set())
    return yaml.load(text, Loader=loader), marks  # noqa: S506 - a safe loader


def _mark(node: yaml.Node, path: tuple[str | int, ...], marks: Marks, seen: set[int]) -> None:
    marks[path] = (node.start_mark.line + 1, node.start_mark.column + 1)
    if id(node) in seen:
        return  # an alias: its parts are marked, and a few of them can stand for millions or for themselves
    if isinstance(node, yaml.CollectionNode):
        seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = key.value if isinstance(key.value, str) else str(key.start_mark)
            inner = (*path, name)
            _mark(value, inner, marks, seen)
            marks[inner] = (key.start_mark.line + 1, key.start_mark.column + 1)
    elif isinstance(node, yaml.SequenceNode):
        for position, value in enumerate(node.value):
            _mark(value, (*path, position), marks, seen)


def at(marks: Marks, where: Sequence[str | int]) -> tuple[int, int]:
    """Return the mark of the deepest known part of ``where``."""
    path = tuple(where)
    while path and path not in marks:
        path = path[:-1]
    return marks.get(path, (1, 1))


def yaml_problem(path: Path, err: Exception) -> Problem:
    """Turn a YAML or file error into a problem."""
    if isinstance(err, OSError):
        return Problem(
            str(path), 1, 1, f"cannot be read: {err.strerror}", "check the name and the permissions of the file"
        )
    if isinstance(err, UnicodeDecodeError):
        return Problem(
            str(path), 1, 1, f"is not UTF-8: byte {err.start} is {err.object[err.start]:#04x}", "save the file as UTF-8"
        )
    mark = getattr(err, "problem_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    text = getattr(err, "problem", None) or str(err)
    return Problem(
        str(path), line, column, f"not readable as YAML: {text}", "quote values that hold ':' or '#' with '...'"
    )


def load_files(paths: Iterable[Path], known: Mapping[str, Signature] | None = None) -> Loaded:
    """Load signature files. Never raises for an author's mistake; a bad file does not disable the others.

    ``known`` are signatures loaded before, which these files may refer to or override.
    """
    problems: list[Problem] = []
    signatures: dict[str, Signature] = {}
    places: dict[str, Marks] = {}
    for path in paths:
        try:
            document, marks = read_yaml(path)
        except _UNREADABLE as err:
            problems.append(yaml_problem(path, err))
            continue
        found, wrong = _signature(path, document, marks)
        problems.extend(wrong)
        if found is None:
            continue
        if found.id in signatures:
            line, column = at(marks, ("id",))
            other = signatures[found.id].path
            problems.append(
                Problem(str(path), line, column, f"duplicate id {found.id!r}", f"also in {other}; ids are never reused")
            )
            continue
        signatures[found.id], places[found.id] = found, marks
    problems.extend(_dangling(signatures, known or {}, places))
    return Loaded(tuple(signatures.values()), tuple(sorted(problems)))


def _dangling(
    signatures: Mapping[str, Signature], loaded: Mapping[str, Signature], places: Mapping[str, Marks]
) -> Iterable[Problem]:
    pool = {**loaded, **signatures}
    known = set(pool) | {f"{s.id}/{code}" for s in pool.values() for code in s.table}
    for signature in signatures.values():
        lists: dict[tuple[str, ...], Sequence[str]] = {
            (k,): getattr(signature, k) for k in ("recovered_by", "cancels", "overlaps")
        }
        if signature.condition:
            lists["condition", "signatures"] = signature.condition.signatures
        for where, names in lists.items():
            for position, name in enumerate(names):
                if name not in known:
                    line, column = at(places[signature.id], (*where, position))
                    hint = suggestion(name, known) or "triage signatures list shows all ids"
                    yield Problem(
                        signature.path, line, column, f"{where[-1]} refers to unknown signature {name!r}", hint
                    )


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean ...`` for a misspelt word, or the list of what is allowed."""
    options = sorted(known)
    close = difflib.get_close_matches(word, options, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"one of: {', '.join(options)}" if len(options) <= 40 else ""


def _signature(path: Path, document: Any, marks: Marks) -> tuple[Signature | None, list[Problem]]:
    from pydantic import ValidationError

    from triage.schemas.signature import SignatureFile

    if not isinstance(document, dict):
        return None, [
            Problem(str(path), 1, 1, "a signature file is a mapping", "start with 'id: ...'; see docs/signatures.md")
        ]
    try:
        parsed = SignatureFile.model_validate(document)
    except ValidationError as err:
        return None, [_validation_problem(path, error, marks) for error in err.errors()]
    problems = list(_checks(path, parsed, marks))
    table: Mapping[str, Mapping[str, Any]] = {}
    if parsed.table and not (path.parent / parsed.table).is_file():
        problems.append(
            Problem(
                str(path),
                *at(marks, ("table",)),
                f"no code table {parsed.table!r}",
                "it stands beside the signature file",
            )
        )
    elif parsed.table:
        table, wrong = _table(path.parent / parsed.table)
        problems.extend(wrong)
    if problems:
        return None, problems
    return _build(path, parsed, table, marks), []


def _validation_problem(path: Path, error: Any, marks: Marks) -> Problem:
    where = [part for part in error["loc"] if not (isinstance(part, str) and part.startswith("function-"))]
    line, column = at(marks, where)
    name, message, hint = ".".join(map(str, where)), error["msg"].removeprefix("Value error, "), ""
    if error["type"] == "extra_forbidden":
        message, hint = "unknown key", suggestion(str(where[-1]), _keys(where))
    elif error["type"] == "enum":
        hint = suggestion(
            str(error["input"]), str(error["ctx"]["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
        )
    elif error["type"] == "missing" and where[-1] in ("match", "near_miss", "examples"):
        hint = "a signature without examples of both kinds does not load; see docs/signatures.md"
    elif error["type"] == "missing" and where[-1] == "why":
        hint = "a near miss says why it must not match"
    elif error["type"] == "value_error":
        message, _, hint = message.partition("; ")
        hint = hint or ("write 90s, 10m, 2h or 7d" if "time span" in message else "")
    elif error["type"] == "string_pattern_mismatch":
        message, hint = f"{error['input']!r} is no word for this", _wanted(where, str(error["input"]))
    return Problem(
        str(path),
        line,
        column,
        f"{name}: {message}" if name else message,
        hint or f"see {name or 'the fields'} in docs/signatures.md",
    )


def _wanted(where: Sequence[str | int], word: str) -> str:
    if where[-1] == "type":
        return suggestion(word, ("event_count", "value_count", "temporal", "temporal_ordered"))
    return "lower-case words joined by '-'"


def _keys(where: Sequence[str | int]) -> list[str]:
    """Return the keys that are allowed where an unknown one stands."""
    from triage.schemas import signature as schema

    inner = {"explains": schema.EdgeModel, "condition": schema.ConditionModel}
    model: Any = schema.SignatureFile
    if where[0] == "examples":
        model = schema.ExamplesModel if len(where) == 2 else schema.NearMissModel
    elif len(where) > 1:
        model = inner.get(str(where[0]), schema.TableRow)
    return [field.alias or name for name, field in model.model_fields.items()]


def _checks(path: Path, parsed: Any, marks: Marks) -> Iterable[Problem]:
    def problem(where: Sequence[str | int], message: str, hint: str = "") -> Problem:
        line, column = at(marks, where)
        return Problem(str(path), line, column, message, hint)

    if parsed.id != path.stem:
        yield problem(("id",), f"id {parsed.id!r} is not the file's stem {path.stem!r}", "rename one of them")
    if parsed.class_ not in CLASSES and parsed.class_ != "none":
        yield problem(("class",), f"unknown class {parsed.class_!r}", suggestion(parsed.class_, CLASSES))
    for position, edge in enumerate(parsed.explains):
        if edge.class_ not in CLASSES:
            yield problem(
                ("explains", position, "class"), f"unknown class {edge.class_!r}", suggestion(edge.class_, CLASSES)
            )
    for key, patterns in (("patterns", parsed.patterns), ("not", parsed.not_)):
        for position, pattern in enumerate(patterns):
            if (message := pattern_mistake(pattern, scanned=key == "patterns")) is not None:
                yield problem(
                    (key, position), f"bad pattern: {message}", "docs/signatures.md, 'What a pattern may hold'"
                )
    if not (parsed.patterns or parsed.where or parsed.condition):
        yield problem((), "nothing to match", "give 'patterns', 'where' or 'condition'")
    if parsed.condition is None and not (parsed.examples.match and parsed.examples.near_miss):
        yield problem(
            ("examples",),
            "needs at least one 'match' and one 'near_miss' example",
            "a near miss says why it must not match",
        )


def pattern_mistake(pattern: str, *, scanned: bool) -> str | None:
    """Return what is wrong with a pattern, or None. ``scanned`` patterns must also compile for the scanner."""
    try:
        regex.compile(pattern, regex.ASCII)
        if scanned:
            form = scan_form(pattern)
            from triage.engine import compile_mistake

            return compile_mistake(form)
    except regex.error as err:
        return f"{err.msg} at position {err.pos}"
    except PatternSyntaxError as err:
        return f"{err} at position {err.position}"
    return None


def _table(path: Path) -> tuple[Mapping[str, Mapping[str, Any]], list[Problem]]:
    from pydantic import ValidationError

    from triage.schemas.signature import TableRow

    try:
        document, marks = read_yaml(path)
    except _UNREADABLE as err:
        return {}, [yaml_problem(path, err)]
    if not isinstance(document, dict):
        return {}, [
            Problem(str(path), 1, 1, "a code table is a mapping of codes to rows", "79: {title: ..., class: ...}")
        ]
    rows: dict[str, Mapping[str, Any]] = {}
    problems: list[Problem] = []
    for code, row in document.items():
        try:
            parsed = TableRow.model_validate(row)
        except ValidationError as err:
            problems.extend(
                _validation_problem(path, {**e, "loc": (str(code), *e["loc"])}, marks) for e in err.errors()
            )
            continue
        if parsed.class_ is not None and parsed.class_ not in CLASSES and parsed.class_ != "none":
            line, column = at(marks, (str(code), "class"))
            problems.append(
                Problem(str(path), line, column, f"unknown class {parsed.class_!r}", suggestion(parsed.class_, CLASSES))
            )
        for name in parsed.codes(str(code)):
            rows[name] = parsed.model_dump(by_alias=True, exclude_none=True, mode="json")
    return rows, problems


def _build(path: Path, parsed: Any, table: Mapping[str, Mapping[str, Any]], marks: Marks) -> Signature:
    def examples(kind: str, items: Sequence[Any]) -> tuple[Example, ...]:
        return tuple(
            Example(
                item.line if item.line is not None else (item.text or ""),
                item.fields,
                Origin(item.origin) if item.origin else None,
                item.source,
                item.why,
                at(marks, ("examples", kind, position))[0],
            )
            for position, item in enumerate(items)
        )

    return Signature(
        id=parsed.id,
        title=parsed.title,
        class_=parsed.class_,
        role=Role(parsed.role),
        level=Level(parsed.level),
        status=Status(parsed.status),
        sources=frozenset(parsed.sources),
        scope=Scope(parsed.scope),
        strength=Strength(parsed.strength),
        noise=Noise(parsed.noise),
        patterns=tuple(parsed.patterns),
        not_patterns=tuple(parsed.not_),
        where=tuple(field_tests(parsed.where)),
        condition=_condition(parsed.condition),
        group=parsed.group,
        variant=parsed.variant,
        recovered_by=tuple(parsed.recovered_by),
        recovery_s=parsed.recovery,
        cancels=tuple(parsed.cancels),
        overlaps=tuple(parsed.overlaps),
        explains=tuple(Edge(e.class_, Strength(e.strength), e.lag, Scope(e.scope)) for e in parsed.explains),
        description=parsed.description,
        proves_not=parsed.proves_not,
        falsepositives=tuple(parsed.falsepositives),
        references=tuple(parsed.references),
        matches=examples("match", parsed.examples.match),
        near_misses=examples("near_miss", parsed.examples.near_miss),
        probes=tuple(sorted({form for pattern in parsed.patterns for form in probe_forms(pattern)})),
        table_key=parsed.key,
        table=table,
        path=str(path),
    )


def field_tests(where: Mapping[str, Any]) -> Iterable[FieldTest]:
    """Read ``{"temperature_c|gte": 85}`` into tests; a list of values means any of them."""
    for key, value in where.items():
        name, _, operator = key.partition("|")
        yield FieldTest(name, operator or "eq", tuple(value) if isinstance(value, list) else value)


def _condition(parsed: Any) -> Condition | None:
    if parsed is None:
        return None
    return Condition(
        parsed.type, tuple(parsed.signatures), tuple(parsed.group_by), parsed.timespan, parsed.gte, parsed.value
    )
