"""One small reader per command that deletes, overwrites, truncates, updates software or loads disks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from triage.schedules.effect import Effect, Kind, split_options, word_set
from triage.schedules.rsync import rsync, split_remote
from triage.schedules.shell import absolute

_DAY_S: Final = 86400.0
_AGE_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": _DAY_S}


@dataclass(frozen=True, slots=True)
class Call:
    """A command with its arguments, where it runs, and the folders whose entries its pipe delivers."""

    name: str
    args: tuple[str, ...]
    cwd: str | None = None
    fed: tuple[str, ...] = ()

    def path(self, word: str) -> str:
        """``word`` as a path seen from the folder the command runs in."""
        return absolute(word, self.cwd)


Reader = Callable[[Call], list[Effect]]


def _on(call: Call, kind: Kind, paths: Sequence[str], option: str = "") -> list[Effect]:
    return [Effect(kind, call.path(path), tool=call.name, option=option) for path in paths]


def _none(call: Call, reason: str) -> list[Effect]:
    return [Effect("none", None, tool=call.name, harmless_reason=reason)]


def _load(call: Call) -> list[Effect]:
    paths = [word for word in call.args if word.startswith("/") and not word.startswith("/dev/")]
    return [
        Effect("read-load", path, "source", call.name, harmless_reason="only reads")
        for path in paths or [None]  # type: ignore[list-item]
    ]


def _rsync(call: Call) -> list[Effect]:
    return rsync(call.args, call.cwd, call.name)


def _rm(call: Call) -> list[Effect]:
    options, operands = split_options(call.args, {"-n", "-s", "--size"} if call.name == "shred" else frozenset())
    return _on(call, "delete", operands or call.fed, " ".join(name for name, _ in options))


def _gzip(call: Call) -> list[Effect]:
    options, operands = split_options(call.args, frozenset())
    keeps = {name for name, _ in options} & {"-c", "-k", "-t", "-l", "--keep", "--stdout", "--test", "--list"}
    if keeps or (call.name == "zstd" and "--rm" not in call.args):
        return _load(call)
    return _on(call, "delete", operands or call.fed, "replaces the file")


def _truncate(call: Call) -> list[Effect]:
    _, operands = split_options(call.args, {"-s", "-r", "--size", "--reference"})
    return _on(call, "truncate", operands or call.fed, "-s")


def _tee(call: Call) -> list[Effect]:
    options, operands = split_options(call.args, frozenset())
    if {name for name, _ in options} & {"-a", "--append"}:
        return _none(call, "appends")
    return _on(call, "truncate", operands)


def _dd(call: Call) -> list[Effect]:
    return _on(call, "overwrite", [word[3:] for word in call.args if word.startswith("of=/")])


def _copy(call: Call) -> list[Effect]:
    options, operands = split_options(call.args, {"-t", "-S", "-m", "-o", "-g", "--target-directory", "--suffix"})
    names = dict(options)
    target = names.get("-t") or names.get("--target-directory")
    if target:
        operands = [*operands, target]
    if len(operands) < 2:
        return []
    sources, destination = operands[:-1], operands[-1]
    remote = split_remote(destination)
    moves = call.name == "mv"
    found = _on(call, "delete", sources, "moves it away") if moves else []
    if not moves:
        found = [Effect("read-load", call.path(s), "source", call.name, harmless_reason="only reads") for s in sources]
    if moves:
        found = [Effect(e.kind, e.path, "source", e.tool, e.option) for e in found]
    kept = names.keys() & {"-n", "--no-clobber", "-u", "--update"}
    if kept:
        return [*found, Effect("none", call.path(destination), tool=call.name, harmless_reason=f"{min(kept)} keeps")]
    empties = not moves and sources == ["/dev/null"]
    kind: Kind = "truncate" if empties else "overwrite"
    path = remote[1] if remote[0] else call.path(destination)
    return [*found, Effect(kind, path, tool=call.name, option="-f" if "-f" in names else "", host=remote[0])]


def _find(call: Call) -> list[Effect]:
    words = [word for word in call.args if word not in {"-H", "-L", "-P"}]
    cut = next((i for i, word in enumerate(words) if word[:1] in {"-", "(", "!"}), len(words))
    tests = words[cut:]
    run = " ".join(_after(tests, ("-exec", "-execdir", "-ok")))
    kind: Kind = "none"
    if "-delete" in tests or re.search(r"(?:^|[\s/])(?:rm|unlink|shred|mv|gzip|xz)\s", run):
        kind = "delete"
    elif re.search(r"(?:^|[\s/])truncate\s|:?>\s*\S", run):
        kind = "truncate"
    shown = "-delete" if "-delete" in tests else f"-exec {run.split(' ')[0]}" if run else ""
    names = tuple(w for option in ("-name", "-iname") for w in _values(tests, option))
    negated = "!" in tests or "-not" in tests
    return [
        Effect(
            kind,
            call.path(path),
            tool=call.name,
            option=shown,
            harmless_reason="" if kind != "none" else "only lists",
            names=() if negated else names,
            min_age_s=_find_age(tests),
        )
        for path in (words[:cut] or ["."])
    ]


def _values(words: Sequence[str], option: str) -> list[str]:
    return [words[i + 1] for i, word in enumerate(words[:-1]) if word == option]


def _after(words: Sequence[str], options: tuple[str, ...]) -> list[str]:
    at = next((i for i, word in enumerate(words) if word in options), None)
    return [] if at is None else [w for w in words[at + 1 :] if w not in {"{}", ";", "+"}] + [""]


def _find_age(tests: Sequence[str]) -> float:
    ages = [0.0]
    for options, unit in ((("-mtime", "-ctime"), _DAY_S), (("-mmin", "-cmin"), 60.0)):
        for option in options:
            ages += [float(value[1:]) * unit for value in _values(tests, option) if re.fullmatch(r"\+\d+", value)]
    return max(ages)


def _tmpclean(call: Call) -> list[Effect]:
    options, operands = split_options(call.args, {"-x", "-X", "-U", "--exclude", "--exclude-pattern", "--protect"})
    names = {name for name, _ in options}
    if names & {"-t", "--test"}:
        return _none(call, "--test: only lists what it would do")
    match = re.fullmatch(r"(\d+)([smhd]?)", operands[0]) if operands else None
    default = "h" if call.name == "tmpwatch" else "d"
    age = float(match[1]) * _AGE_UNITS[match[2] or default] if match else 0.0
    spared = tuple(v for n, v in options if n in {"-x", "-X", "--exclude", "--exclude-pattern", "--protect"} and v)
    paths = operands[1:] if match else operands
    found = [Effect("delete", call.path(p), tool=call.name, min_age_s=age, excludes=spared) for p in paths]
    return found or _none(call, "names no folder")


def _tmpfiles(call: Call) -> list[Effect]:
    if "--clean" not in call.args and "--remove" not in call.args:
        return _none(call, "creates only")
    ages = {"/tmp": 10, "/var/tmp": 30}  # noqa: S108  # the stock ages of tmpfiles.d
    return [Effect("delete", p, tool=call.name, option="--clean", min_age_s=d * _DAY_S) for p, d in ages.items()]


def _tar(call: Call) -> list[Effect]:
    options, operands = split_options(call.args, {"-f", "-C", "-T", "-X", "--file", "--directory", "--exclude"})
    names = dict(options)
    old_style = operands[0] if operands and re.fullmatch(r"[cxtruzjJvfp]{2,}", operands[0]) else ""
    folder = names.get("-C") or names.get("--directory") or call.cwd
    if "-x" in names or "--extract" in names or "x" in old_style:
        return _on(call, "overwrite", [folder] if folder else [], "extracts")
    sources = operands[2:] if old_style and "f" in old_style else operands
    base = absolute(folder, call.cwd) if folder else None
    kind: Kind = "delete" if "--remove-files" in names else "read-load"
    why = "" if kind == "delete" else "only reads"
    option = "--remove-files" if kind == "delete" else ""
    return [Effect(kind, absolute(s, base), "source", call.name, option, why) for s in sources]


_CLOUD_VALUED: Final = word_set("--exclude --include --profile --config --transfers --bwlimit")


def _cloud(call: Call) -> list[Effect]:
    """``rclone sync A B``, ``aws s3 sync A B --delete``, ``gsutil -m rsync -d A B`` and their kin."""
    verbs = {"sync", "rsync", "copy", "cp", "move", "mv", "rm", "delete", "purge", "bisync", "remove"}
    at = next((i for i, word in enumerate(call.args) if word in verbs), None)
    if at is None:
        return _none(call, "no transfer")
    verb, rest = call.args[at], call.args[at + 1 :]
    options, operands = split_options(rest, _CLOUD_VALUED)
    flags = {name for name, _ in options}
    if flags & {"-n", "--dry-run", "--dryrun", "--interactive"}:
        return _none(call, "a dry run")
    if verb in {"rm", "delete", "purge", "remove"}:
        return _cloud_sides(call, "delete", verb, [], operands)
    wipes = flags & {"--delete", "--delete-unmatched-destination-objects", "--delete-destination"}
    deletes = (
        (call.name == "rclone" and verb in {"sync", "bisync"}) or bool(wipes) or (verb == "rsync" and "-d" in flags)
    )
    sources, targets = operands[:-1], operands[-1:]
    option = f"{verb} {min(wipes)}" if wipes else verb
    found = _cloud_sides(call, "delete" if deletes else "overwrite", option, [], targets)
    excluded = tuple(value for name, value in options if name == "--exclude")
    found = [Effect(e.kind, e.path, e.role, e.tool, e.option, host=e.host, excludes=excluded) for e in found]
    return found + _cloud_sides(call, "delete" if verb in {"move", "mv"} else "read-load", verb, sources, [])


def _cloud_sides(call: Call, kind: Kind, option: str, sources: Sequence[str], targets: Sequence[str]) -> list[Effect]:
    """Effects on local paths; a bucket or remote is no place where training writes."""
    found = []
    for side, paths in (("source", sources), ("destination", targets)):
        for path in paths:
            if "://" in path or re.match(r"[\w-]+:", path):
                continue
            why = "only reads its source" if kind == "read-load" else ""
            role = "source" if side == "source" else "destination"
            found.append(Effect(kind, call.path(path), role, call.name, option, why))  # type: ignore[arg-type]
    return found


def _packages(call: Call) -> list[Effect]:
    verbs = word_set("upgrade dist-upgrade full-upgrade install update autoremove remove refresh distro-sync")
    words = {word for word in call.args if not word.startswith("-")} & verbs
    if call.name in {"apt", "apt-get", "aptitude"}:
        words -= {"update"}
    always = call.name in {"unattended-upgrade", "unattended-upgrades", "dnf-automatic", "yum-cron", "needrestart"}
    if "--dry-run" in call.args or "-s" in call.args or "--downloadonly" in call.args or "-d" in call.args:
        return _none(call, "downloads or simulates only")
    if not (words or always):
        return _none(call, "changes no package")
    return [Effect("update", None, tool=call.name, option=min(words, default=""))]


def _service(call: Call) -> list[Effect]:
    verbs = {"restart", "stop", "reload", "kill", "reboot", "try-restart", "condrestart", "isolate", "poweroff"}
    done = [word for word in call.args if word in verbs]
    if call.name in {"systemctl", "service"} and not done:
        return _none(call, "only asks")
    return [Effect("update", None, tool=call.name, option=" ".join(word for word in call.args if word[:1] != "-"))]


def _zfs(call: Call) -> list[Effect]:
    kinds: dict[str, Kind] = {"rollback": "overwrite", "destroy": "delete", "receive": "overwrite", "recv": "overwrite"}
    verb = call.args[0] if call.args else ""
    if verb not in kinds or (verb == "destroy" and any("@" in word for word in call.args[1:])):
        return _none(call, "snapshots change no live file")
    return [Effect(kinds[verb], None, tool=call.name, option=verb)]


def _lfs(call: Call) -> list[Effect]:
    verb = call.args[0] if call.args else ""
    if verb == "find":
        return _find(Call("lfs find", call.args[1:], call.cwd))
    if verb == "migrate":
        return _on(call, "overwrite", [word for word in call.args if word.startswith("/")], verb)
    return _none(call, "only asks")


def _git(call: Call) -> list[Effect]:
    options, operands = split_options(call.args, {"-C", "-c"})
    folder = dict(options).get("-C") or call.cwd
    verb = next(iter(operands), "")
    if folder is None or verb not in {"clean", "reset", "checkout", "pull"}:
        return _none(call, "changes no file that is known")
    return [Effect("delete" if verb == "clean" else "overwrite", folder, tool=call.name, option=verb)]


_LOADERS: Final = word_set(
    "fstrim checkarray updatedb updatedb.plocate updatedb.mlocate smartctl mdadm xfs_fsr e2scrub e2scrub_all aide"
    " clamscan clamdscan rkhunter restic borg borgmatic duplicity bacula-fd du ncdu md5sum sha256sum cksum xfsdump"
    " btrfs fio hdparm badblocks"
)
_SERVICES: Final = word_set("systemctl service reboot shutdown poweroff pkill killall kill init telinit modprobe rmmod")
_PACKAGERS: Final = word_set(
    "apt apt-get aptitude dnf yum zypper snap unattended-upgrade unattended-upgrades dnf-automatic yum-cron needrestart"
)

READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        **dict.fromkeys(("rsync", "rrsync"), _rsync),
        **dict.fromkeys(("rm", "rmdir", "unlink", "shred", "trash", "srm"), _rm),
        **dict.fromkeys(("gzip", "xz", "bzip2", "zstd", "pigz", "lz4"), _gzip),
        **dict.fromkeys(("mv", "cp", "install", "scp"), _copy),
        **dict.fromkeys(("find", "fd", "fdfind"), _find),
        **dict.fromkeys(("tmpwatch", "tmpreaper"), _tmpclean),
        **dict.fromkeys(("rclone", "aws", "gsutil", "gcloud", "azcopy", "s5cmd", "mc", "s3cmd"), _cloud),
        **dict.fromkeys(_PACKAGERS, _packages),
        **dict.fromkeys(_SERVICES, _service),
        **dict.fromkeys(_LOADERS, _load),
        "truncate": _truncate,
        "tee": _tee,
        "dd": _dd,
        "systemd-tmpfiles": _tmpfiles,
        "tar": _tar,
        "zfs": _zfs,
        "lfs": _lfs,
        "git": _git,
    }
)
