"""Enough of the shell to see which commands a cron line or a script runs, with which words, where.

Variables with a plain assignment are put in; what cannot be known (``$1``, ``$(date)``, a loop variable) becomes ``*``,
which :func:`triage.schedules.mounts.overlaps` reads as a wild card.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from triage.schedules.mounts import normalise

_LIMIT: Final = 65536
_OUTPUT: Final = r"\$\([^()]*(?:\([^()]*\)[^()]*)*\)"
_QUOTED: Final = rf"\"(?:\\.|{_OUTPUT}|\$(?!\()|[^\"\\$])*\""
_TOKEN: Final = re.compile(
    r"(?P<space>[ \t\r]+|\\\n)"
    r"|(?P<comment>(?:(?<=\s)|^)\#[^\n]*)"
    r"|(?P<redirect>\d*(?:&>>|&>|>>|>\||>&|<<<|<<-?|<&|<>|>|<))"
    r"|(?P<operator>\|\||&&|;;|\|&|[;|&\n()])"
    rf"|(?P<word>(?:\\.|'[^']*'|{_QUOTED}|{_OUTPUT}|\$\{{[^}}]*\}}|`[^`]*`|[^\s;|&<>()'\"\\`])+)"
    r"|(?P<other>.)",
    re.DOTALL | re.MULTILINE,
)
_PIECE: Final = re.compile(
    rf"(?P<single>'[^']*')|(?P<double>{_QUOTED})|(?P<escape>\\.)|(?P<output>{_OUTPUT}|`[^`]*`)"
    r"|\$\{(?P<braced>\w+)(?P<rest>[^}]*)\}|\$(?P<plain>\w+|[?$#@*!-])",
    re.DOTALL,
)
_ASSIGNMENT: Final = re.compile(r"^([A-Za-z_]\w*)\+?=(.*)$", re.DOTALL)
_HEREDOC: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_PREFIXES: Final = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "time", "exec"})
_ENDS: Final = frozenset({"fi", "done", "esac", "case", "function", "select", "in"})
_DECLARES: Final = frozenset({"export", "readonly", "local", "declare", "typeset"})
_LISTERS: Final = frozenset({"find", "ls", "lfs", "fd", "fdfind", "du"})


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command: words with variables put in, redirections, the place it runs in and what feeds its pipe."""

    words: tuple[str, ...]
    redirects: tuple[tuple[str, str], ...] = ()
    line: int = 1
    cwd: str | None = None
    piped_from: Command | None = None


@dataclass(slots=True)
class _State:
    variables: dict[str, str]
    cwd: str | None
    commands: list[Command] = field(default_factory=list)


def absolute(path: str, cwd: str | None) -> str:
    """``path`` seen from ``cwd``; stays relative when the folder is not known."""
    if cwd is None or path.startswith(("/", "~")):
        return normalise(path)
    return normalise(f"{cwd}/{path}")


def expand(word: str, variables: Mapping[str, str]) -> str:
    """Remove quotes and put variables in."""

    def piece(match: re.Match[str]) -> str:
        if match["single"]:
            return match["single"][1:-1]
        if match["double"]:
            return expand(match["double"][1:-1].replace("'", "\\'"), variables)
        if match["escape"]:
            return match["escape"][1]
        if match["output"]:
            return "*"
        return _variable(match, variables)

    return _PIECE.sub(piece, word)


def _variable(match: re.Match[str], variables: Mapping[str, str]) -> str:
    name = match["braced"] or match["plain"]
    if name in variables:
        return variables[name]
    default = re.match(r":?[-=](.*)", match["rest"] or "", re.DOTALL)
    return expand(default[1], variables) if default and default[1] else "*"


def _blank_heredocs(text: str) -> str:
    """Empty the bodies of here-documents (they are data); line numbers stay."""
    if "<<" not in text:
        return text
    out: list[str] = []
    end: str | None = None
    for line in text.split("\n"):
        if end is not None:
            out.append("")
            end = None if line.strip() == end else end
            continue
        out.append(line)
        match = _HEREDOC.search(line)
        end = match[2] if match and "<<<" not in line else None
    return "\n".join(out)


def commands(text: str, variables: Mapping[str, str] | None = None, cwd: str | None = None) -> list[Command]:
    """Return the simple commands of ``text`` in order; both branches of conditions and all loop bodies once."""
    state = _State(dict(variables or {}), cwd)
    words: list[str] = []
    redirects: list[tuple[str, str]] = []
    pending: str | None = None
    feeder: Command | None = None
    line = 1
    for kind, value, at in _tokens(text):
        if kind == "operator":
            done = _finish(state, words, redirects, feeder, line)
            feeder = done if value in {"|", "|&"} else None
            words, redirects, pending = [], [], None
        elif kind == "redirect":
            pending = value
        elif pending is not None:
            redirects.append((pending.lstrip("0123456789"), expand(value, state.variables)))
            pending = None
        else:
            line = line if words else at
            words.append(value)
    _finish(state, words, redirects, feeder, line)
    return state.commands


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    line = 1
    for match in _TOKEN.finditer(_blank_heredocs(text[:_LIMIT])):
        kind = match.lastgroup or "other"
        if kind in {"operator", "redirect", "word"}:
            yield kind, match[0], line
        line += match[0].count("\n")


def _finish(
    state: _State, raw: list[str], redirects: list[tuple[str, str]], feeder: Command | None, line: int
) -> Command | None:
    while raw and raw[0] in _PREFIXES:
        raw = raw[1:]
    raw = _assign(state, raw)
    if not raw and not redirects:
        return None
    if raw and raw[0] == "for":
        _loop(state, raw)
        return None
    if raw and raw[0] in _ENDS:
        return None
    words = tuple(w for word in raw if (w := expand(word, state.variables)) or word)
    if words[:1] == ("read",):
        _read(state, words, feeder)
        return None
    if words[:1] in {("cd",), ("pushd",)} and len(words) > 1:
        state.cwd = absolute(words[-1], state.cwd)
        return None
    command = Command(words, tuple(redirects), line, state.cwd, feeder)
    state.commands.append(command)
    return command


def _assign(state: _State, raw: list[str]) -> list[str]:
    """Take leading assignments; they hold on when nothing follows them."""
    declares = bool(raw) and raw[0] in _DECLARES
    rest = [word for word in raw[1:] if not word.startswith("-")] if declares else raw
    taken: dict[str, str] = {}
    while rest and (match := _ASSIGNMENT.match(rest[0])):
        taken[match[1]] = expand(match[2], {**state.variables, **taken})
        rest = rest[1:]
    if declares or not rest:
        state.variables.update(taken)
        return []
    return rest


def _loop(state: _State, raw: list[str]) -> None:
    values = [expand(word, state.variables) for word in raw[3:]] if len(raw) > 3 and raw[2] == "in" else []
    if len(raw) > 1:
        state.variables[raw[1]] = values[0] if len(values) == 1 else "*"
        heads = {value.rpartition("/")[0] for value in values}
        # "for d in /a/x /a/y": the folder they share is worth keeping.
        if len(values) > 1 and len(heads) == 1 and "" not in heads:
            state.variables[raw[1]] = f"{heads.pop()}/*"


def _read(state: _State, words: tuple[str, ...], feeder: Command | None) -> None:
    """``find DIR | while read f``: the variable holds paths of DIR."""
    source = feeder
    while source is not None and source.piped_from is not None:
        source = source.piped_from
    listed = paths_listed(source) if source is not None else ()
    for name in words[1:]:
        if not name.startswith("-"):
            state.variables[name] = f"{listed[0]}/*" if listed else "*"


def paths_listed(command: Command) -> tuple[str, ...]:
    """The folders whose entries ``command`` prints, absolute where known."""
    name = command.words[0].rpartition("/")[2] if command.words else ""
    if name not in _LISTERS:
        return ()
    words = command.words[2:] if name == "lfs" else command.words[1:]
    operands: list[str] = []
    for word in words:
        if word.startswith(("-", "(", "!")):
            if name in {"find", "lfs"} and operands:
                break
            continue
        operands.append(absolute(word, command.cwd))
    return tuple(operands) or ((command.cwd,) if command.cwd else ())
