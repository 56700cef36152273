"""``triage explain``: what a line, a code or a class means, what usually causes it, and what it does not prove.

Lines are matched by the scanner itself, codes by the signatures' tables; scikit-learn is imported only for lines that
no signature knows (:mod:`triage.nearest`).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from triage import codes
from triage.filescan import FileScan, FileScanner, base_id
from triage.knowledge import Knowledge
from triage.model import Scalar
from triage.outputs.safe import mask
from triage.reading import Piece
from triage.signature import Signature
from triage.vocabulary import Role

SCHEMA: Final = "triage.explain/1"
UNKNOWN: Final = "no signature knows this line"
QUOTED: Final = "The program that prints this line only quotes it (a command line, a test message): it is no evidence."
LINE_LIMIT: Final = 4096
NEAR_LINES: Final = 5  # unknown lines of standard input for which neighbours are looked up
MORE_ROWS: Final = 3  # further tables that know a code

ROLE_WORDS: Final[Mapping[Role, str]] = {
    Role.ROOT: "may be the cause itself",
    Role.SYMPTOM: "usually a consequence of something else",
    Role.CONFIRMATION: "strengthens a cause that other lines open, opens none",
    Role.CONTEXT: "a fact, no evidence of a failure",
    Role.ADVICE: "text that names possible causes; never evidence",
    Role.BENIGN: "a look-alike that is known to be harmless",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What one signature, or one row of its code table, says. ``lines`` are positions in the input, from 1."""

    signature: str
    title: str
    class_: str
    role: str
    role_means: str
    level: str
    meaning: str
    causes: tuple[str, ...]
    proves_not: str
    action: str
    variant: str | None
    variant_note: str
    mnemonic: str
    falsepositives: tuple[str, ...]
    recovered_by: tuple[str, ...]
    sources: tuple[str, ...]
    printed_by: tuple[str, ...]
    playbook: str | None
    captures: Mapping[str, Scalar] = field(default_factory=dict)
    lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Near:
    """A signature that looks like an unknown line, or a code next to an unknown one."""

    signature: str
    title: str
    class_: str
    similarity: float | None = None
    example: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole answer. ``kind``: line, code, class or signature; ``known`` is false when nothing knows it."""

    query: str
    kind: str
    known: bool
    answers: tuple[Answer, ...] = ()
    near: tuple[Near, ...] = ()
    notes: tuple[str, ...] = ()
    about: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values; ``class_`` is written ``class``."""
        return {"schema": SCHEMA, **_plain(asdict(self))}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key.rstrip("_"): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return mask(value) if isinstance(value, str) else value


def explain(text: str, knowledge: Knowledge) -> Explanation:
    """Explain a class name, a signature id, a code or log lines, in this order of reading."""
    text = text.strip("\r\n")
    word = text.strip()
    if word in knowledge.playbooks:
        return _class(word, knowledge)
    if (signature := _signature(word, knowledge.signatures)) is not None:
        return Explanation(word, "signature", True, (answer(signature, knowledge),))
    if (code := codes.parse(word, knowledge.signatures)) is not None:
        return _code(word, code, knowledge)
    return _lines(text, knowledge)


def _signature(word: str, signatures: Iterable[Signature]) -> Signature | None:
    base, _, row = word.partition("/")
    found = next((s for s in signatures if s.id == base), None)
    if found is None or not row:
        return found
    return found.resolve(row) if row in found.table else None


def answer(
    signature: Signature, knowledge: Knowledge, captures: Mapping[str, Scalar] | None = None, lines: Sequence[int] = ()
) -> Answer:
    """Put what a (resolved) signature says into words."""
    row = signature.table.get(signature.id.partition("/")[2], {})
    book = knowledge.playbooks.get(signature.class_)
    variant = book.variants.get(signature.variant) if book and signature.variant else None
    titles = {s.id: s.title for s in knowledge.signatures}
    return Answer(
        signature=signature.id,
        title=signature.title,
        class_=signature.class_,
        role=signature.role.value,
        role_means=ROLE_WORDS[signature.role],
        level=signature.level.value,
        meaning=signature.description or (book.definition if book and signature.role is Role.ROOT else ""),
        causes=_causes(signature, row, knowledge),
        proves_not=signature.proves_not,
        action=row.get("action", ""),
        variant=signature.variant,
        variant_note=f"{variant.title}. {variant.note}" if variant else "",
        mnemonic=row.get("mnemonic", ""),
        falsepositives=signature.falsepositives,
        recovered_by=tuple(f"{name}: {titles.get(base_id(name), name)}" for name in signature.recovered_by),
        sources=tuple(sorted(signature.sources)),
        printed_by=signature.references,
        playbook=signature.class_ if book else None,
        captures=dict(captures or {}),
        lines=tuple(lines),
    )


def _causes(signature: Signature, row: Mapping[str, Any], knowledge: Knowledge) -> tuple[str, ...]:
    """Return what usually causes it: the table's words, then for a symptom the classes that explain its class."""
    said = [str(row["cause"])] if row.get("cause") else []
    book = knowledge.playbooks.get(signature.class_)
    if signature.role is Role.ROOT or book is None:
        return (book.definition,) if book and signature.description and not said else tuple(said)
    behind = explained_by(signature.class_, knowledge)[:6]
    return (*said, *(f"{name}: {knowledge.playbooks[name].title}" for name in behind))


def explained_by(class_: str, knowledge: Knowledge) -> list[str]:
    """Return the classes whose playbook explains ``class_``, the strongest and most frequent first."""
    order = ("conclusive", "strong", "moderate", "weak")
    found = [
        (order.index(edge.strength.value), -book.prior, name)
        for name, book in knowledge.playbooks.items()
        for edge in book.explains
        if edge.target == class_
    ]
    return [name for _, _, name in sorted(found)]


def _class(name: str, knowledge: Knowledge) -> Explanation:
    book = knowledge.playbooks[name]
    speakers = [s for s in knowledge.signatures if s.class_ == name]
    by_role = {role.value: [s.id for s in speakers if s.role is role] for role in Role}
    about = {
        "class": name,
        "title": book.title,
        "definition": book.definition,
        "owner": book.owner.value,
        "restart": book.restart.value,
        "recovery_min": book.recovery_min,
        "explains": [f"{e.target} ({e.strength.value}, same {e.scope.value})" for e in book.explains],
        "explained_by": explained_by(name, knowledge),
        "variants": {key: f"{v.title}. {v.note}" for key, v in book.variants.items()},
        "signatures": {role: ids for role, ids in by_role.items() if ids},
        "playbook": name,
    }
    return Explanation(name, "class", True, about=about)


def _code(text: str, code: codes.Code, knowledge: Knowledge) -> Explanation:
    notes = [code.note] if code.note else []
    found = _match(code.line, knowledge)[0] if code.line else []
    found += [answer(row, knowledge) for row in codes.rows(code, knowledge.signatures)][: MORE_ROWS - len(found)]
    if found:
        return Explanation(text, "code", True, tuple(found), notes=tuple(notes))
    notes.append(f"{code.kind.name} {code.value} is unknown: no table and no signature lists it.")
    near = tuple(Near(s.id, s.title, s.class_) for s in codes.neighbours(code, knowledge.signatures))
    if near:
        notes.append("Known codes next to it are listed; they need not mean the same.")
    return Explanation(text, "code", False, near=near, notes=tuple(notes))


def _lines(text: str, knowledge: Knowledge) -> Explanation:
    found, unknown = _match(text, knowledge)
    notes: list[str] = []
    near: list[Near] = []
    if not found and (quoted := _quoted(text, knowledge)):
        found, unknown = quoted, []
        notes.append(QUOTED)
    if unknown:
        from triage import nearest

        corpus = nearest.Corpus(knowledge.signatures)
        for number, line in unknown[:NEAR_LINES]:
            near += [replace(hit, line=number) for hit in corpus.query(line)]
        numbers = ", ".join(str(number) for number, _ in unknown[:20])
        notes.append(UNKNOWN if len(unknown) == 1 and not found else f"{UNKNOWN}: {numbers}")
    return Explanation(text[:LINE_LIMIT], "line", bool(found), tuple(found), tuple(near), tuple(notes))


def _match(text: str, knowledge: Knowledge) -> tuple[list[Answer], list[tuple[int, str]]]:
    """Return what the scanner finds, in line order, and the (number, text) of the lines that nothing knows."""
    scan = FileScanner(knowledge.plan).scan(FileScan("-"), [Piece(text.encode("utf-8", "replace"), 1)])
    hits: dict[str, tuple[Signature, Mapping[str, Scalar], list[int]]] = {}
    for tally in scan.tallies.values():
        for hit in tally.hits():
            hits.setdefault(hit.signature.id, (hit.signature, hit.fields, []))[2].append(hit.line)
    covered = {line for _, _, lines in hits.values() for line in lines}
    for _, row, _ in scan.rows:
        if covered & set(range(row.line, row.end_line + 1)):
            covered.update(range(row.line, row.end_line + 1))
    ordered = sorted(hits.values(), key=lambda h: (h[2][0], h[0].role is not Role.ROOT, h[0].id))
    answers = [answer(s, knowledge, fields, sorted(set(lines))) for s, fields, lines in ordered]
    unknown = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip() and n not in covered]
    return answers, unknown


def _quoted(text: str, knowledge: Knowledge) -> list[Answer]:
    """Return what the message would mean if the right program had printed it: sudo and logger only quote."""
    from triage.peel import Peeler, strip_ansi
    from triage.signature import ECHO_PROGRAMS

    parsed = Peeler(knowledge.plan.lines).peel(strip_ansi(text.split("\n", 1)[0]))
    if (parsed.program or "").lower() not in ECHO_PROGRAMS:
        return []
    return [a for a in _match(parsed.body, knowledge)[0] if a.role != Role.BENIGN.value]


def read_query(words: Sequence[str], stdin: Iterable[str]) -> str:
    """Return the text to explain: the words, or standard input for ``-``."""
    return "".join(stdin) if list(words) == ["-"] else " ".join(words)


def command(words: Sequence[str], format_: str, knowledge: Knowledge, stdin: Iterable[str]) -> str:
    """Return what ``triage explain`` prints."""
    explanation = explain(read_query(words, stdin), knowledge)
    if format_ == "json":
        return json.dumps(explanation.as_dict(), indent=2) + "\n"  # ASCII: nothing in it acts on a screen
    from triage.explaintext import write

    return write(explanation, min(100, shutil.get_terminal_size((100, 24)).columns))


def example_texts(paths: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Yield (signature id, example line) of signature files; the loaded ones leave examples in their files."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for path in paths:
        try:
            document = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 - a safe loader
            matches = (document.get("examples") or {}).get("match") or []
        except (OSError, yaml.YAMLError, AttributeError):
            continue
        for item in matches:
            text = str(item.get("line") or item.get("text") or "")
            yield from ((str(document["id"]), line) for line in text.split("\n")[:20] if line.strip())
