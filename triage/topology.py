"""Rank <-> host <-> device <-> rack, joined from what the files of a bundle say."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from triage import facts
from triage.filescan import FileScan
from triage.model import Place
from triage.naming import PathFacts, path_facts
from triage.vocabulary import Origin

MAX_HOSTLIST = 100_000
MAX_HOSTLIST_CHARS = 1 << 20
_HOST_LEVEL = frozenset({Origin.KERNEL, Origin.SYSLOG, Origin.CRON, Origin.CRONTAB, Origin.DUMP})


def short(host: str) -> str:
    """Return the first label of a host name; addresses stay whole."""
    return host if re.fullmatch(r"[0-9.]+|[0-9a-fA-F:]+", host) else host.split(".", maxsplit=1)[0]


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Where the lines of one file come from when they do not say so themselves."""

    host: str | None
    rank: int | None
    job: str | None
    rack: str | None


@dataclass(slots=True)
class Topology:
    """The join. ``racks`` maps short host names to racks; ``rack_source`` says who named the racks."""

    files: dict[str, FileFacts] = field(default_factory=dict)
    hosts: set[str] = field(default_factory=set)
    job_hosts: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    racks: dict[str, str] = field(default_factory=dict)
    rack_source: str | None = None
    rank_host: dict[tuple[str | None, int], str] = field(default_factory=dict)
    rank_device: dict[tuple[str | None, int], str] = field(default_factory=dict)
    processes: dict[tuple[str | None, int], dict[int | None, int]] = field(default_factory=lambda: defaultdict(dict))
    addresses: dict[str, str] = field(default_factory=dict)
    world: dict[str | None, int] = field(default_factory=dict)
    nodes: dict[str | None, int] = field(default_factory=dict)
    local_ranks: set[str | None] = field(default_factory=set)
    begun: dict[str | None, set[int]] = field(default_factory=lambda: defaultdict(set))
    ready: dict[str | None, set[int]] = field(default_factory=lambda: defaultdict(set))

    def one_host(self, job: str | None) -> bool:
        """Say whether a job runs, as far as is known, on one host only, so that a local rank is a global one."""
        return len(self.hosts) <= 1 and self.nodes.get(job, 1) <= 1

    def learn_process(self, host: str | None, pid: int, gpu: int | None, rank: int) -> None:
        """Note the global rank that a process runs (on its CUDA device ``gpu``, when one process runs several)."""
        self.processes[host, pid].setdefault(gpu, rank)

    def rank_of_process(self, host: str | None, pid: int, gpu: int | None) -> int | None:
        """Return the rank of a process, None if it is not known or not unique."""
        ranks = self.processes.get((host, pid), {})
        if gpu in ranks:
            return ranks[gpu]
        return next(iter(ranks.values())) if len(set(ranks.values())) == 1 else None

    def place(self, place: Place) -> Place:
        """Fill in what follows from the rest: host from rank, rack from host."""
        host = place.host
        if host is None and place.rank is not None:
            host = self.rank_host.get((place.job, place.rank)) or self.rank_host.get((None, place.rank))
        rack = place.rack or (self.racks.get(host) if host else None)
        return place if (host, rack) == (place.host, place.rack) else replace(place, host=host, rack=rack)

    def gpu_of(self, place: Place) -> Place:
        """Join a rank to its GPU and a GPU to its rank, as far as the start-up lines tell."""
        if place.pci is None and place.rank is not None:
            pci = self.rank_device.get((place.job, place.rank)) or self.rank_device.get((None, place.rank))
            return replace(place, pci=pci, kind="gpu") if pci else place
        if place.rank is None and place.pci is not None and place.host is not None:
            for (job, rank), pci in self.rank_device.items():
                if pci == place.pci and self.rank_host.get((job, rank)) == place.host and place.job in (None, job):
                    return replace(place, rank=rank)
        return place

    def named(self, address: str | None) -> str | None:
        """Return the host behind an address or name with port (``10.1.0.27<41234>``), else the bare address."""
        if not address:
            return None
        bracketed = re.match(r"\[([0-9a-fA-F:.%]+)\]", address)
        bare = bracketed[1] if bracketed else re.split(r"[<\[(]", address.strip("[]()"))[0].strip()
        if bare.count(":") == 1:
            bare = bare.partition(":")[0]
        return self.addresses.get(bare) or (short(bare) if bare else None)


def build(scans: Iterable[FileScan], rack_texts: Mapping[str, str]) -> Topology:
    """Join the facts of all files. ``rack_texts``: rack and switch files of the bundle, or the one given by the user."""
    scans = list(scans)
    topology = Topology()
    told = {scan.path: host for scan in scans if (host := _own_host(scan))}
    known = {short(host) for host in told.values()}
    guesses = {scan.path: path_facts(scan.path, known) for scan in scans}
    machine_folders = _machine_folders(scans)
    for scan in scans:
        facts = guesses[scan.path]
        host = told.get(scan.path) or _guessed(scan.path, facts, machine_folders)
        host = short(host) if host else None
        topology.files[scan.path] = FileFacts(host, facts.rank, facts.job, facts.rack)
        if host:
            topology.hosts.add(host)
            if facts.rack:
                topology.racks.setdefault(host, facts.rack)
                topology.rack_source = topology.rack_source or "folder names"
        _learn_facts(topology, scan)
    for path, text in sorted(rack_texts.items()):
        found = read_racks(text)
        if found:
            topology.racks.update(found)
            topology.rack_source = path
    return topology


def _learn_facts(topology: Topology, scan: FileScan) -> None:
    """Join ranks, processes, devices and addresses from the start-up lines of a file."""
    own = topology.files[scan.path]
    for fact in facts.read(text for _, text in scan.facts):
        host = short(fact.host) if fact.host else own.host
        if fact.world is not None:
            topology.world[own.job] = max(topology.world.get(own.job, 0), fact.world)
        if fact.nodes is not None:
            topology.nodes[own.job] = max(topology.nodes.get(own.job, 0), fact.nodes)
        if fact.address is not None and host:
            topology.addresses.setdefault(fact.address, host)
        if fact.rank is None:
            continue
        (topology.ready if fact.ready else topology.begun)[own.job].add(fact.rank)
        if host:
            topology.hosts.add(host)
            topology.rank_host.setdefault((own.job, fact.rank), host)
            if own.job:
                topology.job_hosts[own.job].add(host)
            if fact.pid is not None:
                topology.learn_process(host, fact.pid, fact.gpu, fact.rank)
            if fact.pci is not None:
                topology.rank_device.setdefault((own.job, fact.rank), fact.pci)


def _own_host(scan: FileScan) -> str | None:
    """Return the host that the lines of a file name as their printer, if they agree."""
    names = Counter(parsed.host for _, parsed in scan.samples if parsed.host)
    if not names:
        return None
    (first, count), total = names.most_common(1)[0], sum(names.values())
    return first if count >= 0.8 * total else None


def _machine_folders(scans: Iterable[FileScan]) -> set[str]:
    """Return the folders that hold at least one file of a machine (kernel log, syslog, dump)."""
    found: set[str] = set()
    for scan in scans:
        if any(parsed.origin in _HOST_LEVEL for _, parsed in scan.samples[:200]) or scan.rows:
            found.add(str(PurePosixPath(scan.path).parent))
    return found


def _guessed(path: str, facts: PathFacts, machine_folders: set[str]) -> str | None:
    if facts.host_weight >= 2:
        return facts.host
    return facts.host if facts.host_weight == 1 and str(PurePosixPath(path).parent) in machine_folders else None


def expand(hostlist: str) -> list[str]:
    """Expand a Slurm hostlist; an unreadable one, or one of too many hosts, gives an empty list."""
    from ClusterShell.NodeSet import NodeSet, NodeSetException

    if len(hostlist) > MAX_HOSTLIST_CHARS or _hosts_at_most(hostlist) > MAX_HOSTLIST:
        return []
    try:
        return list(NodeSet(hostlist, resolver=None))
    except (NodeSetException, ValueError):
        return []


def _hosts_at_most(hostlist: str) -> int:
    """Count what a hostlist stands for without making it: a hostile line may name a billion hosts."""
    total = 0
    for item in re.split(r",(?![^\[]*\])", hostlist):
        hosts = 1
        for body in re.findall(r"\[([^\]]*)\]", item):
            spans = [re.fullmatch(r"(\d{1,12})(?:-(\d{1,12}))?(?:/\d+)?", part.strip()) for part in body.split(",")]
            hosts *= sum(abs(int(s[2] or s[1]) - int(s[1])) + 1 if s else MAX_HOSTLIST + 1 for s in spans)
        total += hosts
    return total


def read_racks(text: str) -> dict[str, str]:
    """Read host -> rack from topology.conf / scontrol show topology, YAML / JSON mappings or CSV / TSV; else {}."""
    for reader in (_switches, _mapping, _table):
        if found := reader(text):
            return found
    return {}


def _switches(text: str) -> dict[str, str]:
    """Leaf switches and blocks of Slurm, taken as racks (man topology.conf)."""
    racks: dict[str, str] = {}
    for line in text.splitlines():
        pairs = dict(re.findall(r"(\w+)=(\S+)", line.split("#")[0]))
        lowered = {key.lower(): value for key, value in pairs.items()}
        name = lowered.get("switchname") or lowered.get("blockname")
        if name and "nodes" in lowered and lowered.get("level", "0") == "0":
            racks.update({short(host): name for host in expand(lowered["nodes"])})
    return racks


def _mapping(text: str) -> dict[str, str]:
    try:
        if text.lstrip().startswith("{"):
            document = json.loads(text)
        else:
            import yaml

            document = yaml.safe_load(text)
    except Exception:  # whatever a foreign file holds, it is then no rack file
        return {}
    if not isinstance(document, dict):
        return {}
    racks: dict[str, str] = {}
    for rack, hosts in document.items():
        names = hosts if isinstance(hosts, list) else [hosts] if isinstance(hosts, str) else []
        for name in names:
            if isinstance(name, (str, int)) and isinstance(rack, (str, int)):
                racks.update({short(host): str(rack) for host in expand(str(name))})
    return racks


def _table(text: str) -> dict[str, str]:
    """Two columns host and rack, with or without a header, separated by tab, comma or blanks."""
    rows = list(_split_rows(text))
    if not rows:
        return {}
    header = [cell.lower() for cell in rows[0]]
    host_at = next((i for i, c in enumerate(header) if c in ("host", "hostname", "node", "name", "device")), None)
    rack_at = next((i for i, c in enumerate(header) if c in ("rack", "rack_name", "cabinet", "switch", "leaf")), None)
    if host_at is None or rack_at is None:
        if not all(len(row) == 2 and re.search(r"rack|^r\d", row[1], re.I) for row in rows):
            return {}
        host_at, rack_at = 0, 1
    else:
        rows = rows[1:]
    return {short(row[host_at]): row[rack_at] for row in rows if len(row) > max(host_at, rack_at)}


def _split_rows(text: str) -> Iterator[list[str]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    delimiter = "\t" if lines and "\t" in lines[0] else "," if lines and "," in lines[0] else None
    if delimiter:
        yield from ([cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter))
    else:
        yield from (line.split() for line in lines)


def is_rack_file(path: str) -> bool:
    """Say whether a file of a bundle is, by its name, a rack or topology file."""
    name = PurePosixPath(path).name.lower()
    return bool(re.fullmatch(r"(?:topology|racks?|rack_map|racks?_map)\.(?:conf|ya?ml|json|csv|tsv|txt)", name))
