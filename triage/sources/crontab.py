"""Crontabs: ``crontab -l``, ``/etc/crontab``, ``/etc/cron.d/*``, anacrontab, and files that hold several of them.

One row per schedule line, disabled ones too. A table's form (with or without a user column) follows from its header
or, without one, from the words that stand where a user would; :mod:`triage.schedules.build` knows the path and may
overrule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from triage.model import Scalar
from triage.sources.base import Row
from triage.vocabulary import Origin

Form = Literal["user", "system", "anacron", "foreign"]


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VALUE: Final = r"(?:\*|\d{0,2}~\d{0,2}|\d{1,2}(?:-\d{1,2})?|[A-Za-z]{3}(?:-[A-Za-z]{3})?)(?:/\d{1,3})?"
_FIELD: Final = rf"{_VALUE}(?:,{_VALUE})*"
_TIMES: Final = rf"(?:(?P<fields>(?:{_FIELD}[ \t]+){{4}}{_FIELD})|(?P<nick>@[a-z_]+))[ \t]+"
# 15 4 * * * root /usr/local/bin/tidy      @daily tidy      #0 3 * * * rsync ... (disabled)
_ENTRY: Final = re.compile(rf"^[ \t]*(?P<off>#[# \t]*)?{_TIMES}(?P<rest>\S.*)$")
# 7 10 weekly.tidy nice run-parts /etc/cron.weekly
_ANACRON: Final = re.compile(r"^[ \t]*(?P<period>\d+|@\w+)[ \t]+(?P<delay>\d+)[ \t]+(?P<id>\S+)[ \t]+(?P<rest>\S.*)$")
_ENV: Final = re.compile(r"^[ \t]*(?P<q>[\"']?)(?P<name>[A-Za-z_]\w*)(?P=q)[ \t]*=[ \t]*(?P<value>.*)$")
_NICKNAMES: Final = _set("@reboot @yearly @annually @monthly @weekly @daily @midnight @hourly @every_minute")
_LIMITS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_NAMES: Final = (
    *(frozenset[str](),) * 3,
    _set("jan feb mar apr may jun jul aug sep oct nov dec"),
    _set("sun mon tue wed thu fri sat"),
)
_FILE: Final = r"(?:\S*/)?etc/(?:crontab|anacrontab|cron\.d/[^\s:,]+)|(?:\S*/)?var/spool/cron(?:/[^\s:,]+)*"
_SUBJECT: Final = re.compile(
    rf"(?:(?P<file>{_FILE})|crontab[ \t]+(?:-u[ \t]*(?P<user1>[\w.-]+)[ \t]+)?-l(?:[ \t]+-u[ \t]*(?P<user2>[\w.-]+))?)"
)
_BANNER: Final = re.compile(r"^==>\s*(?P<title>\S.*?)\s*<==\s*$")
# === gpu-a7: crontab -l ===   # /etc/cron.d/tidy: entries ...   root@gpu-a7:~# crontab -l   + cat /etc/crontab
_TITLE: Final = re.compile(
    r"^(?:[#=*+$>:\-\[]+[ \t]*|\S+@\S+[#$][ \t]*)?(?P<lead>[^/]{0,40}?)(?P<subject>SUBJECT)(?P<rest>.*)$".replace(
        "SUBJECT", _SUBJECT.pattern.replace("?P<file>", "").replace("?P<user1>", "").replace("?P<user2>", "")
    )
)
_SPOOL_USER: Final = re.compile(r"var/spool/cron/(?:crontabs/|tabs/)?(?P<user>[\w.-]+)$")
# grep output: /etc/cron.d/tidy:3:15 4 * * * root ...        pdsh output: gpu-a7: 15 4 * * * ...
_GREP: Final = re.compile(rf"^(?P<file>{_FILE}):(?:\d+:)?(?P<rest>.*)$")
_PDSH: Final = re.compile(r"^(?P<host>[A-Za-z][\w.-]*):[ \t](?P<rest>.*)$")
_PATH: Final = re.compile(r"crontab|cron\.d(?:[/_.-]|$)|cron[-_]tabs?|spool[/_.-]cron", re.IGNORECASE)
_KNOWN_USERS: Final = _set(
    "root nobody daemon www-data backup postgres mysql slurm munge nagios zabbix prometheus ubuntu centos rocky"
    " ec2-user admin operator git smmsp mail news man sys"
)
_COMMANDS: Final = _set(
    "run-parts cd test [ [[ ( { command rsync find rm mv cp tar sh bash dash zsh python python2 python3 perl ruby php"
    " nice ionice flock timeout env sleep echo printf date logger logrotate tmpwatch tmpreaper truncate touch chmod"
    " chown sudo su systemctl service apt apt-get dnf yum fstrim updatedb curl wget docker podman kubectl rclone aws"
    " gsutil restic borg source export if for while true false nohup setsid chronic xargs cat ls df du git make ssh scp"
    " nvidia-smi sa1 sa2"
    " reboot shutdown anacron certbot freshclam ntpdate killall pkill lfs zfs zpool smartctl mdadm dd gzip"
)
_PROSE: Final = frozenset({"user-name", "user", "command", "username"})


@dataclass(slots=True)
class _Table:
    """What holds for the lines after a header: environment carries over until the next table."""

    name: str = ""
    form: Form | None = None
    user: str | None = None
    env: dict[str, str] = field(default_factory=dict)


def parse_entry(line: str) -> tuple[str, str, bool] | None:
    """Part a schedule line into (schedule, rest, enabled); None for any other line."""
    match = _ENTRY.match(line)
    if match is None:
        return None
    schedule = " ".join((match["nick"] or match["fields"]).split())
    good = schedule.lower() in _NICKNAMES if match["nick"] else _in_range(schedule)
    return (schedule, match["rest"], not match["off"]) if good else None


def _in_range(schedule: str) -> bool:
    for value, (low, high), names in zip(schedule.lower().split(), _LIMITS, _NAMES, strict=True):
        if any(not low <= int(n) <= high for n in re.findall(r"(?<![/\d])\d+", value)):
            return False
        if any(word not in names for word in re.findall(r"[a-z]+", value)):
            return False
    return True


def looks_like_user(word: str, after: str) -> bool:
    """Say whether ``word`` stands in a user column: followed by a command, and no command itself."""
    if word in _KNOWN_USERS:
        return bool(after)
    if word in _COMMANDS or not re.fullmatch(r"[a-z_][a-z0-9_-]{0,31}\$?", word) or not after:
        return False
    first, *_ = after.split()
    return first in _COMMANDS or first.startswith(("/", "~", "$", "(", "[")) or first.endswith((".sh", ".py"))


def split_percent(command: str) -> tuple[str, str | None]:
    r"""Part a command from its standard input at the first ``%``; ``\%`` is a literal one, other ``%`` are newlines."""
    head, *rest = re.split(r"(?<!\\)%", command)
    stdin = "\n".join(rest).replace("\\%", "%") if rest else None
    return head.replace("\\%", "%").rstrip(), stdin


class _CrontabSource:
    """Row source for cron tables of every form."""

    name = "crontab"
    origin = Origin.CRONTAB
    triggers: Sequence[str] = ()

    def sniff(self, path: str, head: str) -> bool:
        """Take a file that mostly holds schedule lines, more readily when its path or a header says crontab."""
        lines = [line for line in head.splitlines()[:500] if line.strip()]
        if not lines:
            return False
        entries = [line for line in lines if parse_entry(_peel(line)[1]) or _in_anacrontab(path, line)]
        titles = [line for line in lines if _title(line)]
        others = sum(not (_is_table_line(line) or _in_anacrontab(path, line)) for line in lines)
        if _PATH.search(path) or titles:
            return others <= len(entries) if entries else others <= 0 or "no crontab for" in lines[0]
        starred = [line for line in entries if "*" in line or "@" in line]
        return len(starred) * 2 > len(entries) and others * 5 <= len(entries) and not _is_all_comments(lines)

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """Yield one row per schedule line; environment lines hold for all later lines of their table."""
        table = _Table()
        for number, raw in enumerate(lines, 1):
            file, line, host = _peel(raw)
            if file and file != table.name:
                table = _table(file, None)
            title = _title(raw)
            if title is not None:
                table = title
                continue
            if table.form == "foreign":
                continue
            row = _row(number, line, raw, table, _is_system(lines) if table.form is None else table.form == "system")
            if row is not None:
                yield row if not host else _with_host(row, host)


def _with_host(row: Row, host: str) -> Row:
    return Row(row.kind, row.line, row.end_line, {**row.fields, "host": host}, row.text)


def _is_system(lines: Sequence[str]) -> bool:
    """Decide for a table without header: one well-known user, or something like a user on every line."""
    columns = []
    for line in lines[:500]:
        entry = parse_entry(_peel(line)[1])
        if entry:
            first, _, after = entry[1].replace("\t", " ").partition(" ")
            columns.append((first, after.strip()))
    known = any(first in _KNOWN_USERS and after for first, after in columns)
    return known or (bool(columns) and all(looks_like_user(*column) for column in columns))


def _row(number: int, line: str, raw: str, table: _Table, is_system: bool) -> Row | None:
    if table.form == "anacron" or (table.form is None and _ANACRON.match(line) and not parse_entry(line)):
        match = _ANACRON.match(line)
        if match and not line.lstrip().startswith("#"):
            return _anacron_row(number, raw, match, table)
    env = _ENV.match(line)
    if env and not line.lstrip().startswith("#"):
        value = env["value"].strip()
        is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        table.env[env["name"]] = value[1:-1] if is_quoted else value
        return None
    entry = parse_entry(line)
    if entry is None:
        return None
    schedule, rest, enabled = entry
    user, command = table.user, rest
    if is_system:
        words = rest.split(None, 1)
        user, command = (words[0], words[1]) if len(words) == 2 else (None, rest)
    if user in _PROSE or command.split()[0] in _PROSE:
        return None
    fields = _fields(schedule, command, table) | {
        "user": user,
        "enabled": enabled,
        "form": "system" if is_system else "user",
        "form_is_sure": table.form is not None,
        "rest": rest,
    }
    return Row("schedule", number, number, fields, raw)


def _fields(schedule: str, command: str, table: _Table) -> dict[str, Scalar]:
    parts = schedule.split() if not schedule.startswith("@") else [None] * 5
    text, stdin = split_percent(command)
    delay = table.env.get("RANDOM_DELAY", "")
    return {
        "schedule": schedule,
        **dict(zip(("minute", "hour", "dom", "month", "dow"), parts, strict=True)),
        "command": text,
        "stdin": stdin,
        "tz": table.env.get("CRON_TZ"),
        "table": table.name or None,
        "random_delay_s": float(delay) * 60 if delay.isdigit() else 0.0,
    }


def _anacron_row(number: int, raw: str, match: re.Match[str], table: _Table) -> Row:
    fields = _fields("@anacron", match["rest"], table) | {
        "schedule": f"{match['period']} {match['delay']}",
        "user": "root",
        "enabled": True,
        "form": "anacron",
        "form_is_sure": True,
        "id": match["id"],
        "hours": table.env.get("START_HOURS_RANGE"),
    }
    return Row("schedule", number, number, fields, raw)


def _peel(line: str) -> tuple[str | None, str, str | None]:
    """Take off the prefix of grep (file) or pdsh (host): (file, rest, host)."""
    match = _GREP.match(line)
    if match and parse_entry(match["rest"]):
        return match["file"], match["rest"], None
    match = _PDSH.match(line)
    if match and (parse_entry(match["rest"]) or _ENV.match(match["rest"])):
        return None, match["rest"], match["host"]
    return None, line, None


def _title(line: str) -> _Table | None:
    """Read a header that starts another table; None for every other line."""
    banner = _BANNER.match(line)
    if banner:
        return _table(banner["title"], _SUBJECT.search(banner["title"]))
    match = _TITLE.match(line) if len(line) < 200 and not parse_entry(line) and not _ENV.match(line) else None
    if match is None or parse_entry(_peel(line)[1]):
        return None
    decoration = match["rest"].strip(" \t#=*-+:]")
    # "# /etc/cron.d/tidy: entries for tidy" is a title, "# see /etc/cron.d/tidy for the rest" is not.
    is_comment = line.lstrip().startswith("#")
    if is_comment and (match["lead"].strip() not in {"", "cat", "file", "file:", "head", "$"}) and decoration:
        return None
    if decoration and not match["rest"].lstrip().startswith(":") and len(decoration.split()) > 2:
        return None
    return _table(match["subject"], _SUBJECT.search(match["subject"]))


def _table(name: str, subject: re.Match[str] | None) -> _Table:
    subject = subject or _SUBJECT.search(name)
    if subject is None:
        return _Table(name, None if re.search(r"cron", name) else "foreign")
    file = subject["file"]
    if file is None:
        return _Table(name, "user", subject["user1"] or subject["user2"])
    spool = _SPOOL_USER.search(file)
    if "var/spool/cron" in file:
        return _Table(file, "user", spool["user"] if spool else None)
    return _Table(file, "anacron" if file.endswith("anacrontab") else "system")


def _in_anacrontab(path: str, line: str) -> bool:
    return "anacrontab" in path and bool(_ANACRON.match(line)) and not line.lstrip().startswith("#")


def _is_table_line(line: str) -> bool:
    _, rest, _ = _peel(line)
    is_text = line.lstrip().startswith("#") or line.startswith("no crontab for")
    is_rule = set(line.strip()) <= {":", "-", "="}
    return bool(is_text or is_rule or _ENV.match(rest) or parse_entry(rest) or _title(line))


def _is_all_comments(lines: Sequence[str]) -> bool:
    return all(line.lstrip().startswith("#") for line in lines)


SOURCE: Final = _CrontabSource()
