"""Ports of RDMA adapters and their counters."""
# ruff: noqa: E501 - tables of lines as tools print them

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.sources.infiniband import IBSTAT, IBSTATUS, IBV_DEVINFO
from triage.sources.infiniband_counters import IB_COUNTERS

IBSTAT_TEXT = """CA 'mlx5_0'
\tCA type: MT4129
\tFirmware version: 28.36.1010
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tBase lid: 12
\t\tSM lid: 1
\t\tLink layer: InfiniBand
CA 'mlx5_1'
\tFirmware version: 28.36.1010
\tPort 1:
\t\tState: Down
\t\tPhysical state: Polling
\t\tRate: 40 (FDR10)
\t\tSM lid: 0
\t\tLink layer: InfiniBand
\tPort 2:
\t\tState: Initializing
\t\tPhysical state: LinkUp
\t\tRate: 2.5
\t\tLink layer: Ethernet"""


def rows(source: Any, text: str) -> list[dict[str, Any]]:
    return [dict(row.fields) for row in source.rows(text.split("\n"))]


def test_ibstat() -> None:
    assert IBSTAT.sniff("ibstat.txt", IBSTAT_TEXT)
    first, second, third = rows(IBSTAT, IBSTAT_TEXT)
    assert first == {
        "nic": "mlx5_0",
        "port": 1,
        "firmware": "28.36.1010",
        "state": "Active",
        "phys_state": "LinkUp",
        "rate_gbps": 400,
        "lid": 12,
        "sm_lid": 1,
        "link_layer": "InfiniBand",
    }
    assert (second["state"], second["phys_state"], second["rate_gbps"]) == ("Down", "Polling", 40)
    assert (third["nic"], third["port"], third["rate_gbps"], third["link_layer"]) == ("mlx5_1", 2, 2.5, "Ethernet")
    assert [row.line for row in IBSTAT.rows(IBSTAT_TEXT.split("\n"))] == [5, 14, 20]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "Infiniband device 'mlx5_3' port 1 status:\n\tbase lid:\t 0x1f\n\tsm lid:\t 0x1\n\tstate:\t\t 2: INIT\n"
            "\tphys state:\t 5: LinkUp\n\trate:\t\t 400 Gb/sec (4X NDR)\n\tlink_layer:\t InfiniBand",
            {
                "nic": "mlx5_3",
                "state": "Initializing",
                "phys_state": "LinkUp",
                "rate_gbps": 400,
                "lid": 31,
                "sm_lid": 1,
            },
        ),
        (
            "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1np0",
            {"nic": "mlx5_0", "state": "Active", "phys_state": "LinkUp", "netdev": "ens1np0"},
        ),
        ("0/1: mlx5_0/1: state DOWN physical_state DISABLED", {"state": "Down", "phys_state": "Disabled"}),
        ("mlx5_0 port 1 ==> ibp12s0 (Up)", {"nic": "mlx5_0", "netdev": "ibp12s0", "netdev_state": "Up"}),
        (
            "/sys/class/infiniband/mlx5_7/ports/1/state:4: ACTIVE\n/sys/class/infiniband/mlx5_7/ports/1/rate:200 Gb/sec (4X HDR)",
            {"nic": "mlx5_7", "state": "Active", "rate_gbps": 200},
        ),
        ('  "/sys/x/infiniband/mlx5_8/ports/1/state": "2: INIT\\n",', {"nic": "mlx5_8", "state": "Initializing"}),
    ],
)
def test_ibstatus(text: str, wanted: dict[str, Any]) -> None:
    assert IBSTATUS.sniff("x", text)
    (got,) = rows(IBSTATUS, text)
    assert wanted.items() <= got.items()


def test_ibv_devinfo() -> None:
    text = (
        "hca_id:\tmlx5_0\n\tfw_ver:\t\t28.36.1010\n\tphys_port_cnt:\t1\n\t\tport:\t1\n\t\t\tstate:\t\tPORT_ACTIVE (4)\n"
        "\t\t\tmax_mtu:\t4096 (5)\n\t\t\tactive_mtu:\t1024 (3)\n\t\t\tsm_lid:\t\t0\n\t\t\tport_lid:\t3\n\t\t\tlink_layer:\tEthernet\n"
        "\t\t\tactive_width:\t4X (2)\n\t\t\tactive_speed:\t25.0 Gbps (32)\n\t\t\tphys_state:\tLINK_UP (5)"
    )
    assert IBV_DEVINFO.sniff("x", text)
    assert rows(IBV_DEVINFO, text) == [
        {
            "nic": "mlx5_0",
            "port": 1,
            "firmware": "28.36.1010",
            "state": "Active",
            "max_mtu": 4096,
            "active_mtu": 1024,
            "sm_lid": 0,
            "lid": 3,
            "link_layer": "Ethernet",
            "phys_state": "LinkUp",
            "rate_gbps": 100,
            "width": 4,
        }
    ]


@pytest.mark.parametrize("text", ["", "State: Active\nPort 1:", "CA certificate 'x'", "link down", "hca_id"])
def test_no_ports(text: str) -> None:
    for source in (IBSTAT, IBSTATUS, IBV_DEVINFO):
        assert rows(source, text) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "# Port extended counters: Lid 12 port 1 (CapMask: 0x5A00)\nPortSelect:......................1\n"
            "SymbolErrorCounter:..............1204\nLinkErrorRecoveryCounter:........255\nVL15Dropped:.....................0\n"
            "PortXmitWait:....................4711",
            {
                "lid": 12,
                "port": 1,
                "symbol_error": 1204,
                "link_error_recovery": 255,
                "vl15_dropped": 0,
                "port_xmit_wait": 4711,
                "link_errors": 1459,
                "saturated": "link_error_recovery",
                "counters": 4,
            },
        ),
        (
            "link mlx5_0/1 rx_write_requests 0 out_of_sequence 12",
            {"nic": "mlx5_0", "port": 1, "out_of_sequence": 12, "link_errors": 0},
        ),
        (
            "$ ethtool -S ens1f0\nNIC statistics:\n     rx_packets: 12\n     rx0_packets: 12\n     link_down_events_phy: 2",
            {"nic": "ens1f0", "rx_packets": 12, "link_down_events_phy": 2, "link_errors": 2, "counters": 2},
        ),
        (
            'Errors for "gpu-12 HCA-3"\n   GUID 0x946dae0300123456 port 1: [SymbolErrorCounter == 12] [PortXmitWait == 4711]',
            {"host": "gpu-12", "port": 1, "symbol_error": 12, "port_xmit_wait": 4711},
        ),
        (
            "/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error:12\n/sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence 9",
            {"nic": "mlx5_0", "symbol_error": 12, "out_of_sequence": 9},
        ),
        ("==> /sys/class/infiniband/mlx5_1/ports/1/counters/link_downed <==\n7\n", {"nic": "mlx5_1", "link_downed": 7}),
        ("255\n", {"value": 255}),
    ],
)
def test_counters(text: str, wanted: dict[str, Any]) -> None:
    (got,) = rows(IB_COUNTERS, text)
    assert wanted.items() <= got.items()


def test_counters_sniff() -> None:
    assert IB_COUNTERS.sniff("sys/mlx5_1/ports/1/counters/link_downed", "255\n")
    assert IB_COUNTERS.sniff("x", "NIC statistics:\n     rx_packets: 1")
    assert not IB_COUNTERS.sniff("x", "255\n")
    assert not IB_COUNTERS.sniff("sys/mlx5_1/ports/1/counters/link_downed", "permission denied")


@given(st.lists(st.text(max_size=80), max_size=20))
def test_never_raises(lines: list[str]) -> None:
    for source in (IBSTAT, IBSTATUS, IBV_DEVINFO, IB_COUNTERS):
        source.sniff("x", "\n".join(lines))
        list(source.rows(lines))
