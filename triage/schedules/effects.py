"""From a cron command to its effects: wrappers looked through, scripts of the bundle read."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from triage.schedules.effect import Effect, Kind, split_options, word_set
from triage.schedules.filetools import READERS, Call
from triage.schedules.mounts import normalise
from triage.schedules.shell import Command, absolute, commands, paths_listed

_DEPTH: Final = 5
_INTERPRETERS: Final = re.compile(r"^(?:python[\d.]*|perl|ruby|node)$")

# Wrapper -> (options that take a value, operands before the command)
_WRAPPERS: Final[Mapping[str, tuple[frozenset[str], int]]] = MappingProxyType(
    {
        "nice": (frozenset({"-n", "--adjustment"}), 0),
        "ionice": (frozenset({"-c", "-n", "-p", "--class", "--classdata"}), 0),
        "env": (frozenset({"-u", "-C", "--unset", "--chdir"}), 0),
        "timeout": (frozenset({"-s", "-k", "--signal", "--kill-after"}), 1),
        "flock": (frozenset({"-w", "-E", "--timeout", "--wait", "--conflict-exit-code"}), 1),
        "setlock": (frozenset(), 1),
        "sudo": (frozenset({"-u", "-g", "-h", "-p", "-C", "-r", "-t", "-U", "--user", "--group"}), 0),
        "doas": (frozenset({"-u"}), 0),
        "taskset": (frozenset({"-c", "--cpu-list"}), 0),
        "chrt": (frozenset(), 1),
        "numactl": (frozenset({"-N", "-m", "-C", "-i"}), 0),
        "stdbuf": (frozenset({"-i", "-o", "-e"}), 0),
        "systemd-run": (frozenset({"-p", "--unit", "--property", "--slice", "-u"}), 0),
        "systemd-cat": (frozenset({"-t", "-p"}), 0),
        "systemd-inhibit": (frozenset({"--what", "--who", "--why", "--mode"}), 0),
        "xargs": (frozenset({"-n", "-P", "-I", "-d", "-L", "-s", "-a", "--max-args", "--max-procs"}), 0),
        "parallel": (frozenset({"-j", "--jobs"}), 0),
        "chroot": (frozenset(), 1),
        **dict.fromkeys(
            ("nohup", "setsid", "chronic", "cronic", "time", "exec", "command", "run-one", "eatmydata", "busybox"),
            (frozenset(), 0),
        ),
    }
)
_SSH_VALUED: Final = word_set("-i -p -l -o -F -J -b -c -m -L -R -D -E -S -W -w")
# Programs and shell words that touch no file of ours; any other name is a program the bundle does not hold.
_PLAIN: Final = word_set(
    "test [ [[ true false : echo printf logger sleep cd pwd date hostname cat head tail sort uniq grep egrep awk"
    " sed cut tr wc ls stat df mount umount mkdir touch chmod chown chgrp ln exit return set shopt trap wait"
    " umask ulimit type command which id whoami uname mail mailx sendmail curl wget nvidia-smi dcgmi ibstat ps"
    " top free uptime sync kinit ntpdate chronyc hwclock sa1 sa2 debian-sa1 anacron savelog basename dirname"
    " readlink realpath mktemp let shift jq unset alias sinfo squeue sacct scontrol certbot mandb lsof fuser"
    " etckeeper sysstat getent crontab at"
)


@dataclass(frozen=True, slots=True)
class _Around:
    """What is known about the place a piece of shell runs in."""

    scripts: Mapping[str, str]
    host: str | None = None
    script: str | None = None
    depth: int = 0

    def inner(self) -> _Around:
        return replace(self, depth=self.depth + 1)


def effects(
    command: str,
    scripts: Mapping[str, str] | None = None,
    *,
    variables: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> list[Effect]:
    """Say what ``command`` does to files.

    ``scripts`` maps paths inside the bundle to file texts; a command that names one of them (by path suffix or base
    name) is read in its place. A program that is neither known nor in the bundle yields one effect of kind ``unknown``.
    """
    return _text(command, _Around(scripts or {}), variables or {}, cwd)


def _text(text: str, around: _Around, variables: Mapping[str, str], cwd: str | None) -> list[Effect]:
    if around.depth > _DEPTH:
        return []
    found: list[Effect] = []
    for command in commands(text, variables, cwd):
        own = [*_redirects(command), *_words(command.words, command, around)]
        found += [_placed(effect, around, command.line) for effect in own]
    return found


def _placed(effect: Effect, around: _Around, line: int) -> Effect:
    host = effect.host or around.host
    if effect.script is None and around.script is not None:
        return replace(effect, host=host, script=around.script, line=line)
    return replace(effect, host=host)


def _redirects(command: Command) -> list[Effect]:
    found = []
    for operator, target in command.redirects:
        if operator not in {">", ">|", "&>"} or target.startswith("/dev/") or target == "*":
            continue
        path = absolute(target, command.cwd)
        if target.startswith("/proc/sys/vm/drop_caches") or path.endswith("/md/sync_action"):
            found.append(
                Effect("read-load", None, "source", posixpath.basename(path), harmless_reason="only loads disks")
            )
        elif not path.startswith(("/proc/", "/sys/")):
            found.append(Effect("truncate", path, tool=">", option="> file"))
    return found


def _words(words: tuple[str, ...], command: Command, around: _Around) -> list[Effect]:
    if not words or around.depth > _DEPTH:
        return []
    name, args = posixpath.basename(words[0]), words[1:]
    if name in _WRAPPERS and args:
        return _wrapped(name, args, command, around)
    if name in READERS:
        return READERS[name](Call(name, args, command.cwd, _fed(command)))
    if name in _NESTING:
        return _NESTING[name](args, command, around)
    if _INTERPRETERS.match(name) or name in {".", "source"}:
        program = next((word for word in args if not word.startswith("-")), "")
        return _script(program, args, command, around) if program else []
    return [] if name in _PLAIN else _script(words[0], args, command, around)


def _source(command: Command) -> Command | None:
    """The first command of the pipe that feeds this one, without wrappers."""
    source = command.piped_from
    while source is not None and source.piped_from is not None:
        source = source.piped_from
    while source is not None and source.words and posixpath.basename(source.words[0]) in _WRAPPERS:
        rest, _ = _peel(posixpath.basename(source.words[0]), source.words[1:])
        source = replace(source, words=rest)
    return source


def _fed(command: Command) -> tuple[str, ...]:
    source = _source(command)
    return paths_listed(source) if source is not None else ()


def _peel(name: str, args: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Part a wrapper's own operands from the command it runs: (command, operands)."""
    valued, count = _WRAPPERS[name]
    rest = list(args)
    operands: list[str] = []
    while rest:
        word = rest[0]
        if (word.startswith("-") and word != "--") or (name in {"env", "sudo"} and re.match(r"\w+=", word)):
            rest = rest[2 if word in valued else 1 :]
        elif len(operands) < count:
            operands.append(rest.pop(0))
            if name == "flock" and rest[:1] and rest[0] in {"-c", "--command"}:
                break
        else:
            rest = rest[1:] if word == "--" else rest
            break
    return tuple(rest), tuple(operands)


def _wrapped(name: str, args: tuple[str, ...], command: Command, around: _Around) -> list[Effect]:
    rest, operands = _peel(name, args)
    locks = operands[:1] if name in {"flock", "setlock"} else ()
    found = [Effect("lock", absolute(path, command.cwd), tool=name) for path in locks]
    if name == "flock" and len(rest) > 1 and rest[0] in {"-c", "--command"}:
        return found + _text(rest[1], around.inner(), {}, command.cwd)
    inner = _words(rest, command, around.inner())
    return found + (_as_found(inner, command) if name == "xargs" else inner)


def _as_found(inner: list[Effect], command: Command) -> list[Effect]:
    """``find DIR -mtime +7 | xargs rm``: the tests of find hold for what rm takes."""
    source = _source(command)
    if source is None or posixpath.basename((source.words or ("",))[0]) != "find":
        return inner
    listed = READERS["find"](Call("find", source.words[1:], source.cwd))
    limits = {effect.path: effect for effect in listed}
    return [
        replace(e, names=limits[e.path].names, min_age_s=limits[e.path].min_age_s) if e.path in limits else e
        for e in inner
    ]


def _eval(args: tuple[str, ...], command: Command, around: _Around) -> list[Effect]:
    return _text(" ".join(args), around.inner(), {}, command.cwd)


def _shell(args: tuple[str, ...], command: Command, around: _Around) -> list[Effect]:
    """``sh -c TEXT``, ``su - user -c TEXT``, ``bash SCRIPT``."""
    for place, word in enumerate(args[:-1]):
        if re.fullmatch(r"-[a-z]*c", word) or word == "--command":
            return _text(args[place + 1], around.inner(), {}, command.cwd)
    program = next((word for word in args if not word.startswith("-")), "")
    return _script(program, args, command, around) if program else []


def _ssh(args: tuple[str, ...], _command: Command, around: _Around) -> list[Effect]:
    rest = list(args)
    while rest and rest[0].startswith("-"):
        rest = rest[2 if rest[0] in _SSH_VALUED else 1 :]
    if len(rest) < 2:
        return []
    host = rest[0].rpartition("@")[2]
    return _text(" ".join(rest[1:]), replace(around.inner(), host=host), {}, None)


def find_script(program: str, scripts: Mapping[str, str]) -> str | None:
    """The path in the bundle that holds ``program``: the longest shared path end wins, the base name must agree."""
    wanted = [part for part in normalise(program.replace("~", "")).split("/") if part]
    best: tuple[int, str] | None = None
    for path in scripts:
        parts = [part for part in path.split("/") if part]
        shared = 0
        while shared < min(len(parts), len(wanted)) and parts[-1 - shared] == wanted[-1 - shared]:
            shared += 1
        if shared and (best is None or (shared, -len(parts)) > (best[0], -best[1].count("/") - 1)):
            best = (shared, path)
    return best[1] if best and wanted and wanted[-1] != "*" else None


def _script(program: str, args: tuple[str, ...], command: Command, around: _Around) -> list[Effect]:
    path = find_script(program, around.scripts)
    if path is None or path == around.script:
        is_program = "/" in program or re.search(r"\.(?:sh|py|pl|rb)$|backup|sync|clean|purge", program)
        why = "the program is not in the bundle"
        return [Effect("unknown", None, tool=program, harmless_reason=why)] if is_program and path is None else []
    inner = replace(around.inner(), script=path)
    own = args[args.index(program) + 1 :] if program in args else args
    positional = {str(i): word for i, word in enumerate(own, 1)} | {"0": program}
    return _content(path, inner, positional, command.cwd)


def _content(path: str, around: _Around, variables: Mapping[str, str], cwd: str | None) -> list[Effect]:
    text = around.scripts[path]
    if path.endswith(".py") or re.match(r"#!.*python", text):
        return [_placed(effect, around, effect.line) for effect in _python(text, around)]
    return _text(text, around, variables, cwd)


def _run_parts(args: tuple[str, ...], _command: Command, around: _Around) -> list[Effect]:
    _, operands = split_options(args, {"-a", "-u", "--arg", "--umask", "--regex"})
    folder = normalise(operands[0]).strip("/") if operands else ""
    held = [path for path in around.scripts if folder and f"/{path}".rpartition("/")[0].endswith(f"/{folder}")]
    if not held:
        why = f"runs the scripts of /{folder}, none of which is in the bundle"
        return [Effect("none", None, tool="run-parts", harmless_reason=why)]
    return [e for path in sorted(held) for e in _content(path, replace(around.inner(), script=path), {}, None)]


def _logrotate(args: tuple[str, ...], _command: Command, around: _Around) -> list[Effect]:
    options, operands = split_options(args, {"-s", "-m", "-l", "--state", "--mail", "--log"})
    if {name for name, _ in options} & {"-d", "--debug"}:
        return [Effect("none", None, tool="logrotate", harmless_reason="-d: only shows what it would do")]
    paths = [path for operand in operands if (path := find_script(operand, around.scripts))]
    found = [effect for path in paths for effect in _rotated(path, around.scripts[path])]
    why = "its configuration is not in the bundle"
    return found or [Effect("none", None, tool="logrotate", harmless_reason=why)]


def _rotated(path: str, text: str) -> list[Effect]:
    found = []
    for match in re.finditer(r"^(/[^{}\n]+?)\s*\{([^}]*)\}", text, re.MULTILINE):
        copies = "copytruncate" in match[2]
        kind: Kind = "truncate" if copies else "none"
        line = text[: match.start()].count("\n") + 1
        for log in match[1].split():
            why = "" if copies else "renames log files"
            option = "copytruncate" if copies else ""
            found.append(Effect(kind, log, "destination", "logrotate", option, why, script=path, line=line))
    return found


# Commands that run other text of the bundle.
_NESTING: Final[Mapping[str, Callable[[tuple[str, ...], Command, _Around], list[Effect]]]] = MappingProxyType(
    {
        **dict.fromkeys(("sh", "bash", "dash", "zsh", "ksh", "ash", "su", "runuser"), _shell),
        "eval": _eval,
        "ssh": _ssh,
        "run-parts": _run_parts,
        "logrotate": _logrotate,
    }
)

_PY_ASSIGNMENT: Final = re.compile(r"^\s*(\w+)\s*=\s*(?:Path\()?[rf]?(['\"])(/[^'\"]*)\2", re.MULTILINE)
_PY_CALL: Final = re.compile(
    r"\b(?:shutil\.rmtree|os\.(?:remove|unlink|rmdir|truncate)|shutil\.move|os\.rename)\(\s*"
    r"(?:[rf]?(['\"])(?P<path>[^'\"]*)\1|(?P<name>\w+))"
)
_PY_ARGV: Final = re.compile(r"\[\s*(['\"](?:rsync|rm|find|mv|rclone|aws)['\"][^\]]*)\]")


def _python(text: str, around: _Around) -> list[Effect]:
    """Deleting calls with a literal or simply assigned path, and argument lists of known tools."""
    values = {match[1]: match[3] for match in _PY_ASSIGNMENT.finditer(text)}
    found: list[Effect] = []
    for match in _PY_CALL.finditer(text):
        path = match["path"] or values.get(match["name"] or "", "")
        tool = match[0].partition("(")[0]
        kind: Kind = "truncate" if tool == "os.truncate" else "delete"
        found.append(Effect(kind, path or None, tool=tool, script=around.script, line=_line(text, match)))
    for match in _PY_ARGV.finditer(text):
        items = [item.strip() for item in match[1].split(",") if item.strip()]
        words = tuple(i.strip("'\"") if i[0] in "'\"" else values.get(i, "*") for i in items)
        inner = replace(around.inner(), script=None)
        own = _words(words, Command(()), inner)
        found += [replace(effect, script=around.script, line=_line(text, match)) for effect in own]
    return found


def _line(text: str, match: re.Match[str]) -> int:
    return text[: match.start()].count("\n") + 1
