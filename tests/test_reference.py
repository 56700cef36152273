"""The reference pages are those of the files, complete, and inert whatever an author writes."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from triage import knowledge, reference
from triage.catalog import data_dir, signature_files
from triage.loader import load_files
from triage.vocabulary import CLASSES

PAGES = reference.pages  # the real one, whatever a test puts in its place
FOLDER = Path(__file__).parent.parent / "docs" / "reference"


@cache
def pages() -> dict[str, str]:
    """Return the pages as the files give them."""
    return PAGES()


def test_pages_are_fresh() -> None:
    """``make docs`` was run after the last change of a signature or a playbook."""
    there = {str(path.relative_to(FOLDER)): path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.md")}
    stale = sorted(p for p in {*there, *pages()} if there.get(p) != pages().get(p))
    assert stale == [], "run: make docs"


def test_every_class_has_a_page_with_its_steps() -> None:
    """A class page says what it is, what it explains and what to do."""
    for name in CLASSES:
        page = pages()[f"classes/{name}.md"]
        assert "## Explains" in page
        assert "**safe**" in page, name


def test_links_lead_somewhere() -> None:
    """Every relative link names a page, every anchor a section."""
    for path, text in pages().items():
        prose = re.sub(r"(`{3,}).*?\1", "", text, flags=re.DOTALL)
        for target, anchor in re.findall(r"(?<!\\)\]\(([^)#\s]*)(?:#([^)\s]+))?\)", prose):
            page = path if not target else str((Path(path).parent / target).as_posix())
            parts: list[str] = []
            for part in page.split("/"):
                parts = parts[:-1] if part == ".." else [*parts, part]
            assert "/".join(parts) in pages(), (path, target)
            assert not anchor or f'<a id="{anchor}"></a>' in pages()["/".join(parts)], (path, anchor)


def test_text_is_inert() -> None:
    """Markup in a title stays text; a fence in an example cannot close its block."""
    assert reference.escape("a <b>*c*</b> | [d](e)") == r"a \<b\>\*c\*\</b\> \| \[d\](e)"
    assert list(reference.fence(["```", "x\x1b[31m"])) == ["````text", "```", "x\\x1b[31m", "````"]


def test_stale_pages_are_found_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page whose class is gone is reported, then removed; a second run changes nothing."""
    monkeypatch.setattr(reference, "pages", pages)
    old = tmp_path / "classes" / "gone.md"
    old.parent.mkdir()
    old.write_text("x", encoding="utf-8")
    assert "classes/gone.md" in reference.stale(tmp_path)
    assert reference.write(tmp_path) == len(pages())
    assert not old.exists()
    assert reference.stale(tmp_path) == []


def test_coverage_names_what_exists() -> None:
    """Every id in docs/coverage.md is a signature or a row source."""
    text = (FOLDER.parent / "coverage.md").read_text(encoding="utf-8")
    rows = text.partition("## Gaps")[0].splitlines()
    named = {word for row in rows if row.startswith("|") for word in re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", row)}
    there = {signature.id for signature in load_files(signature_files([data_dir("signatures")])).signatures}
    there |= {source.name for source in knowledge.find_sources()[1]}
    assert len(named) > 400
    assert named - there == set()


def test_spans_read_well() -> None:
    """Spans are written in the largest unit that divides them."""
    assert [reference.span(s) for s in (0, 90, 600, 7200, 86400)] == ["0 s", "90 s", "10 min", "2 h", "1 d"]
