"""Kubernetes objects as people save them: ``kubectl get events``, ``kubectl describe``, pods as YAML or JSON.

Row fields of ``k8s-events``: age, type, reason, object, namespace, pod, host, message, count, source.
Row fields of ``k8s-pod``: pod, namespace, node, host, phase, reason, message, container, state, last_state (bool),
exit_code, signal, restarts, at. A pod gives one row for itself and one for each state of each container.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import yaml

from triage.model import Scalar
from triage.sources.base import Row
from triage.vocabulary import Origin

MAX_DOCUMENT = 8_000_000
"""Characters of a YAML or JSON file that are parsed; a longer file is left to the line signatures."""

MAX_OBJECTS = 5_000

_HEADER: Final = re.compile(
    r"^\s*(?:NAMESPACE\s+)?(?:LAST SEEN|LASTSEEN|FIRST SEEN)\s+.*\bTYPE\s+REASON\b.*\bMESSAGE\b"
)
_DESCRIBE_HEADER: Final = re.compile(r"^\s*Type\s+Reason\s+Age\s+From\s+Message\s*$")
_COUNT: Final = re.compile(r"\(x(\d{1,9}) over ")
_ASSIGNED: Final = re.compile(r"Successfully assigned (?:\S+/)?(\S+) to (\S+)")
_ON_NODE: Final = re.compile(r"\b(?:on node|Node) ([a-z0-9][a-z0-9.\-]{1,250})(?= |$)")
_KEY: Final = re.compile(r"^( *)([A-Z][A-Za-z ]{1,40}):(?:\s+(.*))?$")
_CONTAINER: Final = re.compile(r"^ {2}([a-z0-9](?:[a-z0-9.\-]{0,250}))\s*:\s*$")


def _integer(text: object) -> int | None:
    """Return a number of at most nine digits, else None."""
    word = str(text).strip()
    return int(word) if re.fullmatch(r"-?\d{1,9}", word) else None


def _compact(fields: dict[str, Scalar]) -> dict[str, Scalar]:
    return {name: value for name, value in fields.items() if value is not None and value != ""}


# -- events ------------------------------------------------------------------------------------------------------------


def _cells(line: str, header: Sequence[tuple[str, int]]) -> dict[str, str] | None:
    """Cut a table line at the columns of its header; at runs of blanks when the columns do not fit the line."""
    starts = [start for _, start in header]
    if all(start == 0 or start >= len(line) or line[start - 1] in " \t" for start in starts):
        ends = [*starts[1:], len(line)]
        return {name: line[a:b].strip() for (name, a), b in zip(header, ends, strict=True)}
    parts = re.split(r"\s{2,}|\t+", line.strip(), maxsplit=len(header) - 1)
    return {name: part for (name, _), part in zip(header, parts, strict=True)} if len(parts) == len(header) else None


@dataclass(frozen=True)
class _Events:
    """Reader of event tables and of the Events section of ``kubectl describe``."""

    name: str = "k8s-events"
    origin: Origin = Origin.KUBERNETES
    triggers: Sequence[str] = ()

    def sniff(self, path: str, head: str) -> bool:
        """Look for a header of an event table or for event objects."""
        del path
        lines = head.splitlines()
        return any(_HEADER.match(line) or _DESCRIBE_HEADER.match(line) for line in lines) or _has_kind(head, "Event")

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """Yield one row for each event."""
        if _is_document(lines):
            yield from _document_rows(lines, "Event", _event_rows)
            return
        nodes = {m[1]: m[2] for line in lines if (m := _ASSIGNED.search(line)) is not None}
        header: list[tuple[str, int]] | None = None
        about: dict[str, str] = {}
        described = False
        for number, line in enumerate(lines, 1):
            if _HEADER.match(line) or _DESCRIBE_HEADER.match(line):
                described = _DESCRIBE_HEADER.match(line) is not None
                header = [(m[0].lower().replace(" ", "_"), m.start()) for m in _header_cells(line)]
                continue
            if (found := _KEY.match(line)) is not None and not found[1]:
                about[found[2]] = (found[3] or "").strip()
                header = None if described else header
            if header is None or not line.strip() or set(line.strip()) <= set("- "):
                header = None if header is not None and not line.strip() else header
                continue
            cells = _cells(line, header)
            if cells is not None and cells.get("type", "") in ("Normal", "Warning", "Error"):
                yield _event_row(number, line, cells, nodes, about if described else {})


def _header_cells(line: str) -> Iterator[re.Match[str]]:
    """Yield the column names; ``LAST SEEN`` and ``FIRST SEEN`` are one column each."""
    return re.finditer(r"(?:LAST|FIRST) SEEN|\S+", line)


def _event_row(number: int, line: str, cells: dict[str, str], nodes: dict[str, str], about: dict[str, str]) -> Row:
    thing = cells.get("object") or _described_object(about)
    kind, _, name = thing.partition("/")
    message = cells.get("message", "")
    age = cells.get("last_seen") or cells.get("age") or ""
    count = _COUNT.search(age)
    on_node = _ON_NODE.search(message)
    host = nodes.get(name) or _node_of(about) or (on_node[1] if on_node else None)
    if kind.lower() in ("node", "nodes"):
        host = name
    fields: dict[str, Scalar] = {
        "age": age,
        "type": cells.get("type"),
        "reason": cells.get("reason"),
        "object": thing,
        "namespace": cells.get("namespace") or about.get("Namespace"),
        "pod": name if kind.lower() in ("pod", "pods") else None,
        "host": host,
        "message": message,
        "count": int(count[1]) if count else _integer(cells.get("count", "")) or 1,
        "source": cells.get("source") or cells.get("from"),
    }
    return Row("event", number, number, _compact(fields), line)


def _described_object(about: dict[str, str]) -> str:
    name = about.get("Name", "")
    kind = "pod" if "Node" in about or "Containers" in about else "node" if "Conditions" in about else "object"
    return f"{kind}/{name}" if name else ""


def _node_of(about: dict[str, str]) -> str | None:
    return about.get("Node", "").partition("/")[0] or None


# -- pods --------------------------------------------------------------------------------------------------------------


@dataclass
class _Described:
    """What the lines of one ``kubectl describe pod`` have told so far."""

    line: int
    text: str = ""
    pod: dict[str, Scalar] = field(default_factory=dict)
    container: str = ""
    state: dict[str, Scalar] | None = None
    state_line: int = 0
    restarts: int | None = None


@dataclass(frozen=True)
class _Pods:
    """Reader of pods: ``kubectl describe pod``, ``kubectl get pod -o yaml|json``."""

    name: str = "k8s-pod"
    origin: Origin = Origin.KUBERNETES
    triggers: Sequence[str] = ()

    def sniff(self, path: str, head: str) -> bool:
        """Look for the top-level keys of a pod."""
        del path
        described = re.search(r"^Name:\s+\S", head, re.M) and re.search(r"^(?:Node|Status):\s+\S", head, re.M)
        if described and re.search(r"^(?:Containers|Init Containers|Controlled By|Reason):", head, re.M):
            return True
        return _has_kind(head, "Pod")

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """Yield a row for each pod and for each state of its containers."""
        if _is_document(lines):
            yield from _document_rows(lines, "Pod", _pod_rows)
            return
        now: _Described | None = None
        for number, line in enumerate(lines, 1):
            if line.startswith("Name:"):
                yield from _described_rows(now)
                now = _Described(number, line, {"pod": line.partition(":")[2].strip()})
            elif now is not None:
                yield from _describe_line(now, number, line)
        yield from _described_rows(now)


def _describe_line(now: _Described, number: int, line: str) -> Iterator[Row]:
    if (container := _CONTAINER.match(line)) is not None:
        yield from _state_row(now)
        now.container, now.restarts = container[1], None
        return
    found = _KEY.match(line)
    if found is None:
        return
    indent, key, value = len(found[1]), found[2], (found[3] or "").strip()
    if indent == 0:
        yield from _state_row(now)
        names = {"Namespace": "namespace", "Status": "phase", "Reason": "reason", "Message": "message"}
        if key == "Node":
            now.pod["node"] = now.pod["host"] = value.partition("/")[0]
        elif key in names and value:
            now.pod[names[key]] = value
            if key in ("Reason", "Message"):
                now.line, now.text = number, line
    elif key in ("State", "Last State") and indent == 4:
        yield from _state_row(now)
        now.state, now.state_line = {"state": value.lower(), "last_state": key == "Last State", "_text": line}, number
    elif now.state is not None and indent > 4:
        _describe_state(now, number, key, value, line)
    elif indent == 4:
        yield from _state_row(now)


def _describe_state(now: _Described, number: int, key: str, value: str, line: str) -> None:
    state = now.state
    if state is None:
        return
    if key == "Reason":
        state["reason"], state["_text"], now.state_line = value, line, number
    elif key in ("Exit Code", "Signal"):
        state[key.lower().replace(" ", "_")] = _integer(value)
    elif key == "Message":
        state["message"] = value
    elif key == "Finished":
        state["at"] = value


def _state_row(now: _Described) -> Iterator[Row]:
    state, now.state = now.state, None
    if state is None:
        return
    text = str(state.pop("_text"))
    place = {name: now.pod.get(name) for name in ("pod", "namespace", "node", "host")}
    fields = _compact({**place, "container": now.container, **state})
    yield Row("container", now.state_line, now.state_line, fields, text)


def _described_rows(now: _Described | None) -> Iterator[Row]:
    if now is None:
        return
    yield from _state_row(now)
    if "phase" in now.pod or "node" in now.pod:
        yield Row("pod", now.line, now.line, _compact(now.pod), now.text)


# -- YAML and JSON -----------------------------------------------------------------------------------------------------


def _has_kind(head: str, kind: str) -> bool:
    spread = re.search(rf'^\s*(?:- )?"?kind"?\s*:\s*"?{kind}(?:List)?"?,?\s*$', head, re.M)
    return spread is not None or f'"kind":"{kind}"' in head


def _is_document(lines: Sequence[str]) -> bool:
    head = "\n".join(islice(lines, 400))
    return _has_kind(head, "Pod") or _has_kind(head, "Event")


def _document_rows(
    lines: Sequence[str], kind: str, reader: Callable[[yaml.Node, Sequence[str]], Iterator[Row]]
) -> Iterator[Row]:
    """Parse the documents of a file without expanding aliases and read the objects of ``kind``."""
    text = "\n".join(lines)
    if len(text) > MAX_DOCUMENT:
        return
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for document in yaml.compose_all(text, Loader=loader):
            for thing in islice(_objects(document), MAX_OBJECTS):
                if _text(thing, "kind") in (kind, None) and _get(thing, "metadata") is not None:
                    yield from reader(thing, lines)
    except (yaml.YAMLError, RecursionError, ValueError):
        return


def _objects(node: yaml.Node | None) -> Iterator[yaml.Node]:
    items = _get(node, "items")
    if items is None:
        if node is not None:
            yield node
    else:
        yield from _list(items)


def _get(node: yaml.Node | None, *path: str) -> yaml.Node | None:
    """Return the node at a path of mapping keys."""
    for key in path:
        if not isinstance(node, yaml.MappingNode):
            return None
        node = next((value for name, value in node.value if name.value == key), None)
    return node


def _list(node: yaml.Node | None) -> list[yaml.Node]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _text(node: yaml.Node | None, *path: str) -> str | None:
    found = _get(node, *path)
    if not isinstance(found, yaml.ScalarNode) or found.value in ("null", "~", ""):
        return None
    return " ".join(str(found.value).split())


def _line(node: yaml.Node | None, lines: Sequence[str], fallback: int = 1) -> int:
    """Return the line on which the text of a scalar begins (a folded scalar begins below its indicator)."""
    if node is None:
        return fallback
    at = node.start_mark.line
    if isinstance(node, yaml.ScalarNode) and node.style in (">", "|"):
        at += 1
    return min(at, len(lines) - 1) + 1


def _pod_rows(pod: yaml.Node, lines: Sequence[str]) -> Iterator[Row]:
    status = _get(pod, "status")
    node = _text(pod, "spec", "nodeName")
    place: dict[str, Scalar] = {
        "pod": _text(pod, "metadata", "name"),
        "namespace": _text(pod, "metadata", "namespace"),
        "node": node,
        "host": node,
    }
    own: dict[str, Scalar] = {name: _text(status, name) for name in ("phase", "reason", "message")}
    if any(own.values()):
        decisive = _get(status, "message") or _get(status, "reason") or _get(status, "phase")
        number = _line(decisive, lines)
        yield Row("pod", number, number, _compact({**place, **own}), lines[number - 1])
    for group in ("initContainerStatuses", "containerStatuses"):
        for container in _list(_get(status, group)):
            for key in ("state", "lastState"):
                yield from _container_rows(container, key, place, lines)


def _container_rows(container: yaml.Node, key: str, place: dict[str, Scalar], lines: Sequence[str]) -> Iterator[Row]:
    for state in ("terminated", "waiting", "running"):
        details = _get(container, key, state)
        if details is None:
            continue
        number = _line(_get(details, "reason") or details, lines)
        fields: dict[str, Scalar] = {
            **place,
            "container": _text(container, "name"),
            "state": state,
            "last_state": key == "lastState",
            "reason": _text(details, "reason"),
            "message": _text(details, "message"),
            "exit_code": _integer(_text(details, "exitCode")),
            "signal": _integer(_text(details, "signal")),
            "restarts": _integer(_text(container, "restartCount")),
            "at": _text(details, "finishedAt"),
        }
        yield Row("container", number, number, _compact(fields), lines[number - 1])


def _event_rows(event: yaml.Node, lines: Sequence[str]) -> Iterator[Row]:
    kind = (_text(event, "involvedObject", "kind") or "").lower()
    name = _text(event, "involvedObject", "name") or ""
    number = _line(_get(event, "message") or _get(event, "reason"), lines)
    host = name if kind == "node" else _text(event, "source", "host")
    fields: dict[str, Scalar] = {
        "type": _text(event, "type"),
        "reason": _text(event, "reason"),
        "object": f"{kind}/{name}" if name else None,
        "namespace": _text(event, "involvedObject", "namespace"),
        "pod": name if kind == "pod" else None,
        "host": host,
        "message": _text(event, "message"),
        "count": _integer(_text(event, "count")) or 1,
        "source": _text(event, "source", "component") or _text(event, "reportingComponent"),
        "at": _text(event, "lastTimestamp") or _text(event, "eventTime"),
    }
    if fields["reason"]:
        yield Row("event", number, number, _compact(fields), lines[number - 1])


K8S_EVENTS = _Events()
K8S_PODS = _Pods()
