"""Hosts, ranks, devices and racks join from rack files, hostlists and the lines of a bundle."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.filescan import FileScan
from triage.model import Place
from triage.sources.base import Parsed
from triage.topology import MAX_HOSTLIST, Topology, build, expand, is_rack_file, read_racks, short
from triage.vocabulary import Origin

SWITCHES = """\
# leaf switches
SwitchName=leaf1 Nodes=gpu-[001-003]
SwitchName=leaf2 nodes=gpu-[004-005].cluster.local
SwitchName=spine Switches=leaf[1-2]
"""


@pytest.mark.parametrize(
    ("text", "racks"),
    [
        (
            SWITCHES,
            {"gpu-001": "leaf1", "gpu-002": "leaf1", "gpu-003": "leaf1", "gpu-004": "leaf2", "gpu-005": "leaf2"},
        ),
        ("BlockName=b1 Nodes=n[1-2]\nBlockSizes=2\n", {"n1": "b1", "n2": "b1"}),
        (
            "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=a1\nSwitchName=s1 Level=1 LinkSpeed=1 Nodes=a1 Switches=s0\n",
            {"a1": "s0"},
        ),
        (
            "rack1: [gpu-1, gpu-2.example.net]\nrack2: 'gpu-[3-4]'\n",
            {"gpu-1": "rack1", "gpu-2": "rack1", "gpu-3": "rack2", "gpu-4": "rack2"},
        ),
        ("7: [gpu-1]\n", {"gpu-1": "7"}),
        ('{"rack1": ["gpu-1"], "rack2": ["gpu-2"]}', {"gpu-1": "rack1", "gpu-2": "rack2"}),
        ("host,rack\ngpu-1,r1\ngpu-2,r2\n", {"gpu-1": "r1", "gpu-2": "r2"}),
        ("rack,node,slot\nr1,gpu-1,3\nr2,gpu-2,4\n", {"gpu-1": "r1", "gpu-2": "r2"}),
        ("name\track_name\ngpu-1\tA7\n", {"gpu-1": "A7"}),
        ("gpu-1 rack1\ngpu-2 rack2\n", {"gpu-1": "rack1", "gpu-2": "rack2"}),
    ],
)
def test_rack_files_of_every_form_are_read(text: str, racks: dict[str, str]) -> None:
    assert read_racks(text) == racks


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "\tGPU0\tGPU1\tNIC0\tCPU Affinity\nGPU0\t X \tNV18\tPIX\t0-31\nGPU1\tNV18\t X \tSYS\t0-31\n",
        "- gpu-1\n- gpu-2\n",
        "{broken json",
        "key: &a [*a]\n",
        "gpu-1 up\ngpu-2 down\n",
        "racks:\n  r1: {hosts: {x: 1}}\n",
        "step,loss\n1,2.5\n2,2.4\n",
        "\x00\x01",
    ],
)
def test_what_is_no_rack_file_gives_no_racks(text: str) -> None:
    assert read_racks(text) == {}


def test_a_rack_file_cannot_explode() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"] + [
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)
    ]
    began = time.process_time()
    assert len(read_racks("\n".join(lines))) < 100
    assert time.process_time() - began < 5


@given(st.text(max_size=200))
def test_any_text_is_a_rack_file_or_none(text: str) -> None:
    assert all(isinstance(host, str) and isinstance(rack, str) for host, rack in read_racks(text).items())


@pytest.mark.parametrize(
    ("hostlist", "hosts"),
    [
        ("gpu-1", ["gpu-1"]),
        ("gpu-[1-3]", ["gpu-1", "gpu-2", "gpu-3"]),
        ("gpu-[08-10]", ["gpu-08", "gpu-09", "gpu-10"]),
        ("a[1,3],b2", ["a1", "a3", "b2"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("gpu-[1-3", []),
        ("gpu-[x-y]", []),
        ("gpu-[1-100000000]", []),
        ("a[1-10000]b[1-10000]", []),
        ("gpu-[" + "9" * 5000 + "]", []),
    ],
)
def test_hostlists_expand_and_are_capped_before_they_are_made(hostlist: str, hosts: list[str]) -> None:
    began = time.process_time()
    assert sorted(expand(hostlist)) == hosts
    assert time.process_time() - began < 2


def test_the_largest_allowed_hostlist_is_whole() -> None:
    assert len(expand(f"n[1-{MAX_HOSTLIST // 10}]")) == MAX_HOSTLIST // 10


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("gpu-1.cluster.local", "gpu-1"),
        ("gpu-1", "gpu-1"),
        ("10.0.0.7", "10.0.0.7"),
        ("fe80::1", "fe80::1"),
        ("ip-10-0-0-7.ec2.internal", "ip-10-0-0-7"),
    ],
)
def test_short_names_keep_addresses_whole(name: str, label: str) -> None:
    assert short(name) == label


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.1.0.27<41234>", "gpu-27"),
        ("10.1.0.27:41234", "gpu-27"),
        ("10.1.0.27", "gpu-27"),
        ("10.1.0.28<1>", "10.1.0.28"),
        ("gpu-3.cluster:29500", "gpu-3"),
        ("[fd00::7]:29500", "gpu-7"),
        ("fd00::7", "gpu-7"),
        ("fd00::7<50112>", "gpu-7"),
        ("", None),
        (None, None),
    ],
)
def test_addresses_with_ports_lead_to_hosts(address: str | None, host: str | None) -> None:
    topology = Topology(addresses={"10.1.0.27": "gpu-27", "fd00::7": "gpu-7"})
    assert topology.named(address) == host


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("topology.conf", True), ("a/b/racks.yaml", True), ("rack_map.csv", True), ("RACKS.JSON", True),
        ("racks.tsv", True),
        ("topology.log", False), ("nvidia-topology.txt", False), ("rack3/dmesg.txt", False), ("tracks.csv", False),
    ],
)  # fmt: skip
def test_rack_files_are_told_by_name(path: str, wanted: bool) -> None:
    assert is_rack_file(path) is wanted


def scan(path: str, *hosts: str | None, origin: Origin = Origin.KERNEL) -> FileScan:
    parsed = [(n, Parsed("iso", "dmesg", origin, "x", host=host)) for n, host in enumerate(hosts, 1)]
    return FileScan(path, samples=parsed)


def test_the_host_of_a_file_is_what_its_lines_say_before_what_its_path_suggests() -> None:
    topology = build([scan("gpu-09/dmesg.txt", "gpu-1.cluster", "gpu-1.cluster"), scan("gpu-09/kern.log", None)], {})
    assert topology.files["gpu-09/dmesg.txt"].host == "gpu-1"
    assert topology.files["gpu-09/kern.log"].host == "gpu-09"


def test_a_file_of_many_hosts_has_none() -> None:
    assert build([scan("all.log", "gpu-1", "gpu-2", "gpu-3")], {}).files["all.log"].host is None


def test_a_plain_folder_names_a_host_only_where_a_machine_wrote() -> None:
    topology = build([scan("athena/dmesg.txt", None), scan("phoenix/train.log", None, origin=Origin.TRAINING)], {})
    assert topology.files["athena/dmesg.txt"].host == "athena"
    assert topology.files["phoenix/train.log"].host is None


def test_racks_come_from_folders_and_a_rack_file_overrides_them() -> None:
    scans = [scan("rack3/gpu-31/dmesg.txt", None), scan("rack4/gpu-41/dmesg.txt", None)]
    assert build(scans, {}).racks == {"gpu-31": "rack3", "gpu-41": "rack4"}
    told = build(scans, {"racks.yaml": "row7: [gpu-31]"})
    assert told.racks == {"gpu-31": "row7", "gpu-41": "rack4"}
    assert told.rack_source == "racks.yaml"


def test_places_are_completed_and_never_contradicted() -> None:
    topology = Topology(racks={"gpu-3": "rack3"}, rank_host={("j1", 3): "gpu-3"})
    assert topology.place(Place(job="j1", rank=3)) == Place(job="j1", rank=3, host="gpu-3", rack="rack3")
    assert topology.place(Place(job="j2", rank=3)) == Place(job="j2", rank=3)
    assert topology.place(Place(job="j1", rank=3, host="gpu-9", rack="row1")).host == "gpu-9"
    assert topology.place(Place(host="gpu-3", rack="row1")).rack == "row1"


def test_a_rank_leads_to_its_gpu_and_a_gpu_to_its_rank_on_its_own_host() -> None:
    topology = Topology(rank_host={("j1", 3): "gpu-3"}, rank_device={("j1", 3): "0000:3b:00"})
    assert topology.gpu_of(Place(job="j1", rank=3)).pci == "0000:3b:00"
    assert topology.gpu_of(Place(job="j1", rank=3, pci="0000:86:00")).pci == "0000:86:00"
    assert topology.gpu_of(Place(job="j1", host="gpu-3", pci="0000:3b:00")).rank == 3
    assert topology.gpu_of(Place(job="j1", host="gpu-4", pci="0000:3b:00")).rank is None
    assert topology.gpu_of(Place(job="j2", host="gpu-3", pci="0000:3b:00")).rank is None


def test_a_process_leads_to_its_rank_only_where_it_runs_one() -> None:
    topology = Topology()
    topology.learn_process("gpu-1", 100, None, 3)
    topology.learn_process("gpu-1", 200, 0, 4)
    topology.learn_process("gpu-1", 200, 1, 5)
    assert topology.rank_of_process("gpu-1", 100, None) == 3
    assert topology.rank_of_process("gpu-1", 100, 7) == 3
    assert topology.rank_of_process("gpu-1", 200, 1) == 5
    assert topology.rank_of_process("gpu-1", 200, None) is None
    assert topology.rank_of_process("gpu-2", 100, None) is None
