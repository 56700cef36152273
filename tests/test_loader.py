"""Authors' mistakes: every one of every file in one run, each with file:line:col and a hint; what is sound still loads.

``tests/bad_signatures/*.yml`` hold one mistake each, ``*.expected`` the message.
``python -m tests.test_loader`` rewrites them.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage import knowledge as knowledge_module
from triage.catalog import data_dir, signature_files
from triage.errors import Problem
from triage.knowledge import Knowledge, load_signatures
from triage.loader import load_files, pattern_mistake, read_yaml, suggestion
from triage.signature import Signature

BAD = Path(__file__).parent / "bad_signatures"
FILES = sorted(BAD.glob("*.yml"))
FILES = [path for path in FILES if not path.name.endswith(".table.yml")]
SOUND = """\
id: {id}
title: The flux capacitor failed
class: rank-crash
role: root
level: high
sources: [training]
scope: rank
strength: strong
noise: never
patterns: ['flux capacitor of rank (?P<rank>\\d{{1,6}}) failed']
examples:
  match:
    - line: 'flux capacitor of rank 3 failed'
      fields: {{rank: 3}}
  near_miss:
    - line: 'flux capacitor of rank 3 is fine'
      why: nothing failed
"""


def ours() -> dict[str, Signature]:
    return {s.id: s for s in load_signatures(cache=knowledge_module.cache_dir())[0]}


@pytest.fixture(scope="module")
def known() -> dict[str, Signature]:
    return ours()


@pytest.fixture(scope="module")
def problems(known: dict[str, Signature]) -> tuple[Problem, ...]:
    return load_files(signature_files([BAD]), known=known).problems


def shown(problem: Problem) -> str:
    return str(problem).replace(str(BAD) + "/", "")


def messages(found: tuple[Problem, ...], path: Path) -> str:
    stem = path.stem
    return "".join(f"{shown(p)}\n" for p in found if Path(p.path).name in (f"{stem}.yml", f"{stem}.table.yml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_mistake_is_told_as_its_golden_message_says(path: Path, problems: tuple[Problem, ...]) -> None:
    assert messages(problems, path) == path.with_suffix(".expected").read_text()


def test_every_mistake_has_a_place_and_a_hint_and_none_is_lost(problems: tuple[Problem, ...]) -> None:
    for problem in problems:
        assert re.match(r"\S+\.yml:[1-9]\d*:[1-9]\d*: \S", shown(problem)), problem
        assert problem.hint, problem
    assert {Path(p.path).stem.removesuffix(".table") for p in problems} >= {p.stem for p in FILES}


def test_bad_files_of_others_do_not_disable_ours(knowledge: Knowledge) -> None:
    loaded = knowledge_module.load([BAD], cache=knowledge_module.cache_dir())
    assert {s.id for s in loaded.signatures} >= {s.id for s in knowledge.signatures}
    assert len(loaded.problems) >= len(FILES)


def test_our_own_signatures_have_no_mistake(knowledge: Knowledge) -> None:
    assert [str(p) for p in knowledge.problems] == []
    assert len(knowledge.signatures) >= 60


def test_a_bad_file_does_not_disable_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "flux.yml").write_text(SOUND.format(id="flux"))
    shutil.copy(BAD / "yaml-syntax.yml", tmp_path)
    loaded = load_files(signature_files([tmp_path]))
    assert [s.id for s in loaded.signatures] == ["flux"]
    assert len(loaded.problems) == 1


@pytest.fixture
def xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "triage" / "signatures"
    folder.mkdir(parents=True)
    return folder


def test_the_xdg_folder_adds_overrides_and_disables(xdg: Path) -> None:
    (xdg / "flux.yml").write_text(SOUND.format(id="flux"))
    (xdg / "gpu-xid.yml").write_text(SOUND.format(id="gpu-xid"))
    (xdg / "disabled.yml").write_text("disable: [oom-killed-global, oom-killed-globall]\n")
    found, problems = load_signatures(cache=knowledge_module.cache_dir())
    by_id = {s.id: s for s in found}
    assert by_id["flux"].path == str(xdg / "flux.yml")
    assert by_id["gpu-xid"].title == "The flux capacitor failed"
    assert "oom-killed-global" not in by_id
    (problem,) = problems
    assert "oom-killed-globall" in str(problem)
    assert str(xdg / "disabled.yml") in str(problem)


def test_a_given_folder_overrides_the_xdg_folder(xdg: Path, tmp_path: Path) -> None:
    (xdg / "flux.yml").write_text(SOUND.format(id="flux"))
    given_folder = tmp_path / "given"
    given_folder.mkdir()
    (given_folder / "flux.yml").write_text(SOUND.format(id="flux").replace("level: high", "level: low"))
    found, problems = load_signatures([given_folder], knowledge_module.cache_dir())
    assert next(s for s in found if s.id == "flux").level.value == "low"
    assert problems == ()


@pytest.mark.parametrize("text", ["- a\n", "disable\n", "off: [x]\n", "disable: 3\n", "{", "\x00"])
def test_a_broken_disabled_file_is_a_problem_and_no_more(xdg: Path, text: str) -> None:
    (xdg / "disabled.yml").write_text(text)
    found, problems = load_signatures(cache=knowledge_module.cache_dir())
    assert problems
    assert all(str(xdg) in p.path for p in problems)
    assert len(found) >= 60


@pytest.mark.parametrize(
    ("pattern", "fine"),
    [
        ("CUDA out of memory", True),
        (r"rank (?P<rank>\d{1,6}) died", True),
        ("(?i)fatal", True),
        (r"(?<!no )error: .{0,40}x", True),
        ("a|b", True),
        ("a++", False),
        (r"(a)\1", False),
        ("(?P<a>x)(?P=a)", False),
        ("(?>ab)c", False),
        (r"\Kabc", False),
        (r"\p{L}bc", False),
        ("x*", False),
        ("a|", False),
        ("", False),
        ("^$", False),
        ("(", False),
        ("[a", False),
        ("a{2,1}", False),
        ("x(?i)y", False),
        ("\\", False),
    ],
)
def test_patterns_that_the_scanner_cannot_take_are_refused(pattern: str, fine: bool) -> None:
    assert (pattern_mistake(pattern, scanned=True) is None) is fine


@given(st.text(alphabet="ab\\()[]{}|*+?^$.,:<>P=!0123ik", max_size=14))
def test_any_pattern_is_taken_or_refused_in_words(pattern: str) -> None:
    mistake = pattern_mistake(pattern, scanned=True)
    assert mistake is None or mistake.strip()


def test_aliases_cannot_explode(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"] + [
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)
    ]
    (tmp_path / "boom.yml").write_text("\n".join(lines))
    assert load_files([tmp_path / "boom.yml"]).problems


def test_marks_point_at_keys_and_items(tmp_path: Path) -> None:
    (tmp_path / "x.yml").write_text("a: 1\nb:\n  - c: 2\n  - d\n")
    _, marks = read_yaml(tmp_path / "x.yml")
    assert (marks["a",], marks["b",], marks["b", 0, "c"], marks["b", 1]) == ((1, 1), (2, 1), (3, 5), (4, 5))


@pytest.mark.parametrize(
    ("word", "hint"),
    [("gpu-omm", "did you mean 'gpu-oom'?"), ("zzzzzz", "one of: gpu-oom, host-oom")],
)
def test_suggestions_name_the_nearest_word_or_all(word: str, hint: str) -> None:
    assert suggestion(word, ["host-oom", "gpu-oom"]) == hint


def test_our_files_load_in_any_order_alike() -> None:
    files = signature_files([data_dir("signatures") / "net"])
    pool = ours()
    assert {s.id for s in load_files(files, pool).signatures} == {
        s.id for s in load_files(files[::-1], pool).signatures
    }


if __name__ == "__main__":
    all_problems = load_files(signature_files([BAD]), known=ours()).problems
    for file in FILES:
        file.with_suffix(".expected").write_text(messages(all_problems, file))
