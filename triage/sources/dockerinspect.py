"""``docker inspect`` (and ``podman inspect``): how containers ended and how much shared memory they have.

Row fields: container, image, status, oom_killed, exit_code, error, at, shm_size (bytes), shm_mib, memory_limit (bytes),
ipc_mode, restarts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from triage.model import Scalar
from triage.sources.base import Row
from triage.vocabulary import Origin

MAX_DOCUMENT: Final = 16_000_000
MAX_CONTAINERS: Final = 2_000
_OOM: Final = re.compile(r'"OOMKilled"\s*:')
_MIB: Final = 1 << 20


def _at(document: Mapping[str, Any], *path: str) -> Any:
    """Return the value at a path of keys, None where one is missing."""
    value: Any = document
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str | None:
    return value[:400] if isinstance(value, str) and value else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _fields(document: Mapping[str, Any]) -> dict[str, Scalar]:
    shm = _number(_at(document, "HostConfig", "ShmSize"))
    oom = _at(document, "State", "OOMKilled")
    fields: dict[str, Scalar] = {
        "container": (_text(document.get("Name")) or "").lstrip("/") or None,
        "image": _text(_at(document, "Config", "Image")) or _text(document.get("ImageName")),
        "status": _text(_at(document, "State", "Status")),
        "oom_killed": oom if isinstance(oom, bool) else None,
        "exit_code": _number(_at(document, "State", "ExitCode")),
        "error": _text(_at(document, "State", "Error")),
        "at": _text(_at(document, "State", "FinishedAt")),
        "shm_size": shm,
        "shm_mib": shm / _MIB if shm is not None else None,
        "memory_limit": _number(_at(document, "HostConfig", "Memory")) or None,
        "ipc_mode": _text(_at(document, "HostConfig", "IpcMode")),
        "restarts": _number(document.get("RestartCount")),
    }
    return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True)
class _Inspect:
    """Reader of the JSON that ``docker inspect`` prints."""

    name: str = "docker-inspect"
    origin: Origin = Origin.DUMP
    triggers: Sequence[str] = ()

    def sniff(self, path: str, head: str) -> bool:
        """Look for keys that only an inspected container has."""
        del path
        return head.lstrip()[:1] in ("[", "{") and '"OOMKilled"' in head and '"State"' in head

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """Yield one row for each container; its line is the one with ``OOMKilled``."""
        text = "\n".join(lines)
        if len(text) > MAX_DOCUMENT:
            return
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return
        numbers = iter([n for n, line in enumerate(lines, 1) for _ in _OOM.finditer(line)])
        for container in islice(document if isinstance(document, list) else [document], MAX_CONTAINERS):
            if isinstance(container, Mapping) and isinstance(container.get("State"), Mapping):
                number = next(numbers, 1) if "OOMKilled" in container["State"] else 1
                yield Row("container", number, number, _fields(container), lines[number - 1].strip()[:2000])


DOCKER_INSPECT = _Inspect()
