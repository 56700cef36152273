"""What an rsync call does to its two sides, and what rsync says it deleted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from triage.schedules.effect import Effect, split_options, word_set
from triage.schedules.mounts import normalise
from triage.schedules.shell import absolute

_VALUED: Final = word_set(
    "-e -f -B -T -M --rsh --filter --block-size --temp-dir --remote-option --exclude --include --exclude-from"
    " --include-from --files-from --bwlimit --log-file --log-file-format --backup-dir --suffix --partial-dir"
    " --compare-dest --copy-dest --link-dest --timeout --contimeout --port --password-file --max-delete --max-size"
    " --min-size --max-alloc --chmod --chown --usermap --groupmap --out-format --info --debug --rsync-path --iconv"
    " --modify-window --compress-level --compress-choice --checksum-choice --skip-compress --address --sockopts"
    " --stop-after --stop-at --outbuf"
)
_RECURSIVE: Final = frozenset({"-a", "--archive", "-r", "--recursive", "-d", "--dirs"})
_IN_PLACE: Final = frozenset({"--inplace", "--append", "--append-verify", "--write-devices"})
_GENTLE: Final = {
    "-u": "skips files that are newer at the destination",
    "--update": "skips files that are newer at the destination",
    "--ignore-existing": "never touches a file that exists at the destination",
}
# host:path, user@host:path; a slash before the colon makes it a local name
_REMOTE: Final = re.compile(r"^(?:[^@/:\s]+@)?(?P<host>[\w.*-]+)::?(?P<path>.*)$")
_URL: Final = re.compile(r"^rsync://(?:[^@/]+@)?(?P<host>[^/:]+)(?::\d+)?/(?P<path>.*)$")

# 2026/01/05 03:11:05 [4242] del. storage9 [192.0.2.7] train () runs/a/step_10.pt.tmp 0
# *deleting   runs/a/step_10.pt      deleting runs/a/step_10.pt      (root) CMDOUT (deleting runs/a/step_10.pt)
_DELETED: Final = (
    re.compile(r"\bdel\. \S+ \[[^\]]*\] (?P<module>\S+) \(\S*\) (?P<path>.+?) \d+\s*$"),
    re.compile(r"CMDOUT \(\*?deleting\s+(?P<path>.+?)\)\s*$"),
    re.compile(r"(?:^|[\]:]\s|\s\s)\*?deleting\s+(?P<path>[^\s:][^:]*?)/?\s*$"),
    re.compile(r"(?:^|: )removed (?:directory:? )?['‘](?P<path>[^'’]+)['’]"),
    re.compile(r"tmp(?:reaper|watch)\b.*?\bremoving (?:file |directory )?(?P<path>/\S+)"),
)


def deleted_path(line: str) -> str | None:
    """The path that a deleting tool says it has removed, or None when the line is no such statement."""
    for pattern in _DELETED:
        match = pattern.search(line)
        if match:
            return match["path"].rstrip("/").removesuffix(" (DRY RUN)")
    return None


def is_readers_complaint(line: str) -> bool:
    """Whether rsync, as reader, says its source changed: training rotated its own files; nobody was robbed."""
    return bool(re.search(r"(?:file|directory) has vanished: |rsync warning: some files vanished|\(code 24\)", line))


def split_remote(path: str) -> tuple[str | None, str]:
    """Part ``host:path``, ``host::module/path`` and ``rsync://host/module/path``; module paths come out relative."""
    match = _URL.match(path) or (None if path.startswith(("/", ".", "~")) else _REMOTE.match(path))
    return (match["host"], normalise(match["path"]) if match["path"] else "~") if match else (None, path)


def rsync(args: Sequence[str], cwd: str | None = None, tool: str = "rsync") -> list[Effect]:
    """Effects of one call: direction, deletes, in-place writes, and the options that make it harmless."""
    pairs, operands = split_options(args, _VALUED)
    names = {name for name, _ in pairs} - {"--no-" + name[2:] for name, _ in pairs if name.startswith("--")}
    names -= {"--" + name[5:] for name, _ in pairs if name.startswith("--no-")}
    if len(operands) < 2 or "--daemon" in names:
        return [Effect("none", None, tool=tool, harmless_reason="names no destination")]
    *sources, destination = operands
    dry = names & {"-n", "--dry-run", "--list-only"}
    excludes = () if "--delete-excluded" in names else _excludes(pairs)
    found: list[Effect] = []
    for source in sources:
        target = destination
        if not source.endswith(("/", "/.")) and source not in {".", "*"} and "*" not in source.rpartition("/")[2]:
            target = f"{destination.rstrip('/')}/{split_remote(source)[1].rpartition('/')[2]}"
        found += _destination(names, dict(pairs), _place(target, cwd, tool, excludes))
        found.append(_source(names, _place(source, cwd, tool, excludes)))
    if dry:
        reason = f"{min(dry)}: only lists what it would do"
        return [replace(effect, kind="none", harmless_reason=reason) for effect in found]
    return found


def _place(path: str, cwd: str | None, tool: str, excludes: tuple[str, ...]) -> Effect:
    host, rest = split_remote(path)
    return Effect("none", rest if host else absolute(rest, cwd), tool=tool, host=host, excludes=excludes)


def _destination(names: set[str], values: dict[str, str], place: Effect) -> list[Effect]:
    found = []
    deletes = sorted(n for n in names if n.startswith("--delete") or n == "--del")
    if deletes and not names & _RECURSIVE and deletes != ["--delete-missing-args"]:
        found.append(replace(place, harmless_reason="--delete does nothing without -r or -d", option=deletes[0]))
    elif deletes and values.get("--max-delete") == "0":
        found.append(replace(place, harmless_reason="--max-delete=0 forbids deletions", option=deletes[0]))
    elif deletes:
        kept = " --backup" if names & {"-b", "--backup", "--backup-dir"} else ""
        found.append(replace(place, kind="delete", option=deletes[0] + kept))
    in_place = sorted(names & _IN_PLACE)
    gentle = sorted(names & _GENTLE.keys())
    if in_place and "--ignore-existing" not in names:
        found.append(replace(place, kind="overwrite", option=in_place[0]))
    elif gentle and not deletes:
        found.append(replace(place, harmless_reason=f"{gentle[0]} {_GENTLE[gentle[0]]}", option=gentle[0]))
    elif not deletes:
        found.append(replace(place, kind="overwrite", option="replaces files whole"))
    return found


def _source(names: set[str], place: Effect) -> Effect:
    if "--remove-source-files" in names:
        return replace(place, kind="delete", role="source", option="--remove-source-files")
    return replace(place, kind="read-load", role="source", harmless_reason="only reads its source")


def _excludes(pairs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    found = []
    for name, value in pairs:
        if name == "--exclude":
            found.append(value)
        elif name in {"--filter", "-f"}:
            match = re.match(r"(?:-|exclude|P|protect)[,!/sprx]*\s+(\S+)", value)
            found += [match[1]] if match else []
    return tuple(found)
