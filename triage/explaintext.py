"""An explanation as text for a terminal; what comes from logs is masked and free of control characters."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from triage.explain import Answer, Explanation, Near
from triage.outputs.safe import mask, visible

LABEL = 14


def write(explanation: Explanation, width: int) -> str:
    """Return the whole answer, ending in a newline."""
    blocks = ["\n".join(_note(note, width)) for note in explanation.notes]
    if explanation.about is not None:
        blocks.append("\n".join(_about(explanation.about, width)))
    blocks += ["\n".join(_answer(answer, width)) for answer in explanation.answers]
    if explanation.near:
        blocks.append("\n".join(_near(explanation.near, width)))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _note(note: str, width: int) -> list[str]:
    return textwrap.wrap(_clean(note), width)


def _field(label: str, text: str, width: int) -> Iterator[str]:
    if text:
        head = f"  {label:<{LABEL}}"
        yield from textwrap.wrap(_clean(text), width, initial_indent=head, subsequent_indent=" " * len(head)) or [head]


def _clean(text: str) -> str:
    return visible(mask(text)).replace("\n", " ")


def _answer(answer: Answer, width: int) -> Iterator[str]:
    yield _clean(f"{answer.title}  [{answer.signature}]")
    if answer.lines:
        shown = ", ".join(map(str, answer.lines[:10])) + (" ..." if len(answer.lines) > 10 else "")
        yield from _field("lines", shown if answer.lines != (1,) else "", width)
    yield from _field("means", answer.meaning, width)
    yield from _field("usual cause", "; ".join(answer.causes), width)
    yield from _field("proves not", answer.proves_not, width)
    yield from _field("class", f"{answer.class_}" if answer.class_ != "none" else "none (speaks for no failure)", width)
    yield from _field("role", f"{answer.role}: {answer.role_means}", width)
    yield from _field("level", answer.level, width)
    yield from _field("variant", f"{answer.variant}: {answer.variant_note}" if answer.variant else "", width)
    yield from _field("name", answer.mnemonic, width)
    yield from _field("read from it", ", ".join(f"{k}={v}" for k, v in answer.captures.items()), width)
    yield from _field("do", answer.action, width)
    yield from _field("harmless when", "; ".join(answer.falsepositives), width)
    yield from _field("recovers by", "; ".join(answer.recovered_by), width)
    yield from _field("printed by", "; ".join(answer.printed_by), width)
    yield from _field("found in", ", ".join(answer.sources), width)
    yield from _field("playbook", f"triage playbooks show {answer.playbook}" if answer.playbook else "", width)


def _about(about: Mapping[str, Any], width: int) -> Iterator[str]:
    yield _clean(f"{about['title']}  [{about['class']}]")
    yield from _field("means", about["definition"], width)
    yield from _field("owner", about["owner"], width)
    yield from _field("restart", f"{about['restart']}; about {about['recovery_min']:g} min to recover", width)
    yield from _field("explains", "; ".join(about["explains"]), width)
    yield from _field("explained by", ", ".join(about["explained_by"]), width)
    for name, note in about["variants"].items():
        yield from _field("variant", f"{name}: {note}", width)
    for role, names in about["signatures"].items():
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        yield from _field(f"{role}s" if role in ("root", "symptom") else role, ", ".join(names[:8]) + more, width)
    yield from _field("steps", f"triage playbooks show {about['playbook']}", width)


def _near(near: tuple[Near, ...], width: int) -> Iterator[str]:
    yield "Nearest known:"
    for item in near:
        likeness = f"{item.similarity:.2f}  " if item.similarity is not None else ""
        where = f"line {item.line}: " if item.line is not None and item.line > 1 else ""
        text = _clean(f"{where}{likeness}{item.title}  [{item.signature}, class {item.class_}]")
        yield from textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="      ")
        if item.example and item.example != item.title:
            yield "      " + _clean(item.example)[: max(20, width - 6)]
