"""docs/reference from the playbooks and signature files: ``python -m triage.reference docs/reference``.

One page per failure class and one per signature domain with a section per signature: eight hundred pages of one
signature each could not be read or searched by eye. The text depends on the files alone; a test fails when it is stale.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from triage.catalog import data_dir, signature_files
from triage.loader import load_files
from triage.playbooks import Playbook, load_playbooks
from triage.signature import Edge, Example, FieldTest, Signature
from triage.vocabulary import CLASSES, Noise, Role, StepKind, Strength

HEAD: Final = "<!-- Written by `make docs` from the files named on the page; do not edit. -->\n"
STRENGTH_WORDS: Final[Mapping[Strength, str]] = {
    Strength.CONCLUSIVE: "nearly always printed when the class is present",
    Strength.STRONG: "usually printed when the class is present",
    Strength.MODERATE: "often printed when the class is present",
    Strength.WEAK: "sometimes printed when the class is present",
}
NOISE_WORDS: Final[Mapping[Noise, str]] = {
    Noise.NEVER: "never seen without it",
    Noise.RARE: "seldom seen without it",
    Noise.COMMON: "common without it",
}
EDGE_WORDS: Final[Mapping[Strength, str]] = {
    Strength.CONCLUSIVE: "nearly always",
    Strength.STRONG: "usually",
    Strength.MODERATE: "often",
    Strength.WEAK: "sometimes",
}
ROLE_ORDER: Final = list(Role)


def pages() -> dict[str, str]:
    """Return every page by its path below docs/reference."""
    signatures = load_files(signature_files([data_dir("signatures")])).signatures
    books = load_playbooks(data_dir("playbooks")).playbooks
    domains = {name: list(found) for name, found in groupby(signatures, domain)}
    out = {"index.md": HEAD + "\n".join(_index(books, signatures, domains)) + "\n"}
    for name, book in books.items():
        out[f"classes/{name}.md"] = HEAD + "\n".join(_class_page(book, books, signatures)) + "\n"
    for name, found in domains.items():
        out[f"signatures/{name}.md"] = HEAD + "\n".join(_domain_page(name, found)) + "\n"
    return out


def stale(folder: Path) -> list[str]:
    """Return what differs from the files: pages to write and pages to remove."""
    wanted = pages()
    there = {str(path.relative_to(folder)): path for path in folder.rglob("*.md")}
    changed = [p for p, text in wanted.items() if p not in there or there[p].read_text(encoding="utf-8") != text]
    return sorted([*changed, *(set(there) - set(wanted))])


def write(folder: Path) -> int:
    """Write every page, remove pages of what is gone, return the number of pages."""
    wanted = pages()
    for path, text in wanted.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    for old in folder.rglob("*.md"):
        if str(old.relative_to(folder)) not in wanted:
            old.unlink()
    return len(wanted)


def domain(signature: Signature) -> str:
    """Return the folder a signature lies in."""
    return Path(signature.path).parent.name


def escape(text: str) -> str:
    """Make text inert in Markdown, on one line."""
    return re.sub(r"([\\`*_<>|\[\]#])", r"\\\1", " ".join(str(text).split()))


def fence(lines: Iterable[str], kind: str = "text") -> Iterator[str]:
    """Yield a code block whose fence no line can close."""
    body = [line.replace("\x1b", "\\x1b").replace("\r", "\\r").replace("\x00", "\\0") for line in lines]
    marks = "`" * max(3, *(len(run) + 1 for line in body for run in re.findall(r"`+", line)), 3)
    yield from (f"{marks}{kind}", *body, marks)


def link(signature: Signature, up: str = "") -> str:
    """Return a link to a signature's section."""
    return f"[{signature.id}]({up}signatures/{domain(signature)}.md#{signature.id})"


def span(seconds: float) -> str:
    """Write a span in the largest unit that divides it."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def _index(
    books: Mapping[str, Playbook], signatures: Sequence[Signature], domains: Mapping[str, Sequence[Signature]]
) -> Iterator[str]:
    codes = sum(len(s.table) for s in signatures)
    examples = sum(len(s.matches) + len(s.near_misses) for s in signatures)
    yield from ("# Reference", "", f"{len(books)} failure classes, {len(signatures)} signatures, {examples} examples,")
    yield f"{codes} rows of code tables. Written by `make docs`."
    yield "One page per class; one page per signature domain with a section (and an anchor) per signature."
    yield from ("", "## Classes", "", "| class | title | owner | signatures |", "| --- | --- | --- | --- |")
    for name in (c for c in CLASSES if c in books):
        count = sum(s.class_ == name for s in signatures)
        yield f"| [{name}](classes/{name}.md) | {escape(books[name].title)} | {books[name].owner.value} | {count} |"
    yield from ("", "## Signatures by domain", "", "| domain | signatures | of role root |", "| --- | --- | --- |")
    for name, found in domains.items():
        yield f"| [{name}](signatures/{name}.md) | {len(found)} | {sum(s.role is Role.ROOT for s in found)} |"


def _class_page(book: Playbook, books: Mapping[str, Playbook], signatures: Sequence[Signature]) -> Iterator[str]:
    yield from (f"# {book.class_}: {escape(book.title)}", "", escape(book.definition), "")
    yield f"- Owner: {book.owner.value}"
    yield f"- Prior: {book.prior:g} of 100 interruptions. {escape(book.prior_origin)}"
    yield f"- Recovery: about {book.recovery_min:g} min; restart {book.restart.value}"
    if book.exclude_host:
        yield "- The host is left out of the restart."
    if book.suspect_checkpoints:
        yield "- Checkpoints written meanwhile are suspect."
    yield from ("", "## Explains", "")
    yield from (f"- {_edge(edge)}" for edge in book.explains)
    if not book.explains:
        yield "Nothing else: it is an end in itself."
    back = [(name, e) for name, other in books.items() for e in other.explains if e.target == book.class_]
    yield from ("", "## Explained by", "")
    yield from (f"- [{name}]({name}.md), {EDGE_WORDS[e.strength]}, same {e.scope.value}" for name, e in back)
    if not back:
        yield "No other class: it stands at the start of a chain."
    if book.variants:
        yield from ("", "## Variants", "")
        yield from (f"- `{key}`: {escape(v.title)}. {escape(v.note)}" for key, v in book.variants.items())
    yield from ("", "## Evidence to ask for", "")
    for missing in book.missing:
        yield f"- {escape(missing.what)}: {escape(missing.why)}"
    yield from _steps(book)
    yield from _speakers(book.class_, signatures)
    yield from ("", f"Source: `playbooks/{book.class_}.md`")


def _edge(edge: Edge) -> str:
    first, last = edge.lag_s
    when = f"within {span(last)}" if not first else f"{span(first)} to {span(last)} later"
    return f"{EDGE_WORDS[edge.strength]} [{edge.target}]({edge.target}.md), {when}, same {edge.scope.value}"


def _steps(book: Playbook) -> Iterator[str]:
    for kind in StepKind:
        found = [step for step in book.steps if step.kind is kind]
        if not found:
            continue
        yield from ("", f"## {kind.value.capitalize()}", "")
        for step in found:
            only = f" ({step.variant})" if step.variant else ""
            yield f"- **{step.risk.value}**{only} {escape(step.text)}"
            if step.command:
                yield from (f"  {line}" for line in fence([step.command], "sh"))


def _speakers(class_: str, signatures: Sequence[Signature]) -> Iterator[str]:
    mine = [s for s in signatures if s.class_ == class_]
    rows = [(s, code, row) for s in signatures for code, row in s.table.items() if row.get("class") == class_]
    yield from ("", f"## Signatures that speak for it ({len(mine)})", "")
    for role in ROLE_ORDER:
        yield from (f"- {role.value}: {link(s, '../')}: {escape(s.title)}" for s in mine if s.role is role)
    if rows:
        yield from ("", "Rows of code tables:", "")
        yield from (f"- {link(s, '../')} {escape(code)}: {escape(row.get('title', s.title))}" for s, code, row in rows)


def _domain_page(name: str, signatures: Sequence[Signature]) -> Iterator[str]:
    yield from (f"# Signatures: {name}", "", "Each section is one file, `signatures/" + name + "/<id>.yml`.", "")
    yield from (f"- [{s.id}](#{s.id}): {escape(s.title)}" for s in signatures)
    for signature in signatures:
        yield from ("", f'<a id="{signature.id}"></a>', "", f"## {signature.id}", "")
        yield from _section(signature)


def _section(s: Signature) -> Iterator[str]:
    yield from (f"**{escape(s.title)}.** {escape(s.description)}".rstrip(), "")
    class_ = f"[{s.class_}](../classes/{s.class_}.md)" if s.class_ in CLASSES else "none"
    variant = f", variant `{s.variant}`" if s.variant else ""
    yield f"- Class {class_}{variant}; role {s.role.value}; level {s.level.value}; status {s.status.value}"
    yield f"- As evidence: {STRENGTH_WORDS[s.strength]}, {NOISE_WORDS[s.noise]}; counts per {s.scope.value}"
    yield f"- Printed in: {', '.join(sorted(s.sources))}" + (f"; counted once with `{s.group}`" if s.group else "")
    if s.recovered_by:
        yield f"- Recovered by {', '.join(f'`{r}`' for r in s.recovered_by)} within {span(s.recovery_s)}"
    captures = sorted({found for p in s.patterns for found in re.findall(r"\(\?P<(\w+)>", p)})
    yield from ([f"- Reads: {', '.join(f'`{c}`' for c in captures)}"] if captures else [])
    yield from ([f"- Does not prove: {escape(s.proves_not)}"] if s.proves_not else [])
    yield from ([f"- False positives: {'; '.join(map(escape, s.falsepositives))}"] if s.falsepositives else [])
    yield from ([f"- Printed by: {'; '.join(map(escape, s.references))}"] if s.references else [])
    yield from ([f"- May share a line with: {', '.join(f'`{o}`' for o in s.overlaps)}"] if s.overlaps else [])
    yield from _what_matches(s)
    yield from _table(s)
    yield from _examples(s)


def _what_matches(s: Signature) -> Iterator[str]:
    if s.where:
        yield from ("", "Fields:", "", *(f"- {_test(test)}" for test in s.where))
    if s.patterns:
        yield from ("", "Patterns:", "", *fence(s.patterns, "regex"))
    if s.not_patterns:
        yield from ("", "Not when the line holds:", "", *fence(s.not_patterns, "regex"))
    if s.condition:
        c = s.condition
        groups = f" per {', '.join(c.group_by)}" if c.group_by else ""
        of = ", ".join(f"`{name}`" for name in c.signatures)
        yield from ("", f"Condition: {c.type} of {of}{groups} within {span(c.timespan_s)}, at least {c.gte}.")


def _test(test: FieldTest) -> str:
    wanted = test.value if isinstance(test.value, tuple) else (test.value,)
    return f"`{test.name}` {test.operator} {' or '.join(f'`{value}`' for value in wanted)}"


def _table(s: Signature) -> Iterator[str]:
    if not s.table:
        return
    yield from ("", f"Codes (`{s.table_key}`):", "", "| code | title | class | role | meaning |")
    yield "| --- | --- | --- | --- | --- |"
    for code, row in s.table.items():
        yield "| " + " | ".join(_cells(s, code, row)) + " |"


def _cells(s: Signature, code: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    role, class_ = row.get("role", s.role.value), row.get("class", s.class_)
    return escape(code), escape(row.get("title", "")), class_, role, escape(row.get("meaning", ""))


def _examples(s: Signature) -> Iterator[str]:
    if s.matches:
        yield from ("", "Matches:", "", *fence(_texts(s.matches)))
    if s.near_misses:
        yield from ("", "Does not match:", "", *fence(_texts(s.near_misses)))


def _texts(examples: Sequence[Example]) -> Iterator[str]:
    for example in examples:
        yield from example.text.rstrip("\n").split("\n")
        if example.why:
            yield f"    # {example.why}"


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference")
    sys.stdout.write(f"{write(target)} pages in {target}\n")
