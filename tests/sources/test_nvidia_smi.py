"""nvidia-smi in its four forms; the traps are headroom that looks like a temperature and counters named like flags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.model import Scalar
from triage.sources import nvidia_smi
from triage.sources.base import Row, RowSource

Q = """\
==============NVSMI LOG==============

Timestamp                                 : Wed Jul 31 11:22:39 2030
Driver Version                            : 550.54.15
CUDA Version                              : 12.4

Attached GPUs                             : 2
GPU 00000000:19:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    GPU UUID                              : GPU-11111111-2222-3333-4444-555555555555
    GPU Reset Status
        Reset Required                    : No
    PCI
        Bus Id                            : 00000000:19:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Current                   : 5
            Link Width
                Max                       : 16x
                Current                   : 16x
        Replays Since Reset               : 67
    Clocks Event Reasons
        Idle                              : Not Active
        SW Power Cap                      : Active
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Not Active
            HW Power Brake Slowdown       : Not Active
        SW Thermal Slowdown               : Not Active
    Clocks Event Reasons Counters
        SW Thermal Slowdown               : 12234991553 us
        HW Thermal Slowdown               : 3345 us
    Utilization
        GPU                               : 97 %
    ECC Errors
        Volatile
            SRAM Correctable              : 0
            SRAM Uncorrectable Parity     : 1
            SRAM Uncorrectable SEC-DED    : 1
            DRAM Correctable              : 5
            DRAM Uncorrectable            : 2
        Aggregate
            DRAM Uncorrectable            : 9
    Remapped Rows
        Pending                           : Yes
        Remapping Failure Occurred        : No
    Temperature
        GPU Current Temp                  : 61 C
        GPU T.Limit Temp                  : 24 C
        GPU Slowdown T.Limit Temp         : -2 C
        Memory Current Temp               : 70 C
    GPU Power Readings
        Average Power Draw                : 655.10 W
    Module Power Readings
        Average Power Draw                : 900.00 W
    MIG Device
        ECC Errors
            Volatile
                DRAM Uncorrectable        : 77
GPU 00000000:3B:00.0
    Clocks Throttle Reasons
        Idle                              : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
        SW Thermal Slowdown               : Not Active
    ECC Errors
        Volatile
            Single Bit
                Device Memory             : 3
                Total                     : 3
            Double Bit
                Device Memory             : 1
                Total                     : 1
"""


def rows(source: RowSource, text: str) -> list[Row]:
    assert source.sniff("x.txt", text)
    return list(source.rows(text.split("\n")))


def test_query_nesting_sums_and_traps() -> None:
    first, second, summary = rows(nvidia_smi.NVIDIA_SMI_Q, Q)
    want: dict[str, Scalar] = {
        "gpu": 0, "pci": "0000:19:00", "uuid": "GPU-11111111-2222-3333-4444-555555555555", "temperature_c": 61,
        "tlimit_headroom_c": 24, "memory_temperature_c": 70, "power_w": 655.1, "utilization_percent": 97,
        "hw_slowdown": False, "hw_thermal_slowdown": False, "sw_thermal_slowdown": False, "sw_power_cap": True,
        "thermal_slowdown": False, "load": "busy", "ecc_uncorrected_volatile": 4, "ecc_corrected_volatile": 5,
        "ecc_uncorrected_aggregate": 9, "remap_pending": True, "remap_failure": False, "reset_required": False,
        "pcie_width_current": 16, "pcie_width_max": 16, "pcie_width_deficit": 0, "replay_count": 67,
        "timestamp": "Wed Jul 31 11:22:39 2030", "driver_version": "550.54.15",
    }  # fmt: skip
    assert {name: first.fields.get(name) for name in want} == want
    assert first.text.strip().startswith("DRAM Uncorrectable")
    assert first.line < first.end_line
    assert second.fields["gpu"] == 1
    assert second.fields["thermal_slowdown"] is True
    assert (second.fields["ecc_corrected_volatile"], second.fields["ecc_uncorrected_volatile"]) == (3, 1)
    assert summary.kind == "summary"
    assert summary.fields["gpu_count"] == 2


def test_query_cites_the_thermal_line() -> None:
    body = "\n".join(line for line in Q.split("\n")[Q.split("\n").index("GPU 00000000:3B:00.0") :][:6])
    (row, *_) = rows(nvidia_smi.NVIDIA_SMI_Q, "==============NVSMI LOG==============\n" + body)
    assert row.text.strip() == "HW Thermal Slowdown           : Active"
    assert "gpu" not in row.fields


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (
            "index, temperature.gpu, utilization.gpu [%], clocks_event_reasons.active\n"
            "3, 88, 100 %, 0x0000000000000060\n",
            {
                "gpu": 3,
                "hw_thermal_slowdown": True,
                "sw_thermal_slowdown": True,
                "hw_power_brake": False,
                "load": "busy",
            },
        ),
        (
            "timestamp, pci.bus_id, clocks_throttle_reasons.active, power.draw [W]\n"
            "2030/07/31 11:22:39.123, 00000000:3B:00.0, 0x0000000000000001, 67.10 W\n",
            {"pci": "0000:3b:00", "load": "idle", "at": "2030/07/31 11:22:39.123", "power_w": 67.1},
        ),
        (
            "gpu_bus_id, remapped_rows.pending, remapped_rows.failure\n00000000:3B:00.0, 0, 1\n",
            {"remap_pending": False, "remap_failure": True},
        ),
        (
            "index, pcie.link.width.current, pcie.link.width.max\n0, 8, 16\n",
            {"pcie_width_deficit": 8, "load": "unknown"},
        ),
        ("index, temperature.gpu, utilization.gpu\n2, [GPU is lost], [N/A]\n", {"gpu": 2, "state": "lost"}),
        (
            "index, ecc.errors.uncorrected.volatile.dram, ecc.errors.uncorrected.volatile.sram\n2, 3, 1\n",
            {"ecc_uncorrected_volatile": 4},
        ),
        (
            "==== gpu-12 2030-02-11T18:04:30Z ====\nindex, utilization.gpu [%]\n7, 3 %\n",
            {"host": "gpu-12", "load": "idle"},
        ),
        ("gpu-07: index, utilization.gpu [%]\ngpu-07: 7, 3 %\n", {"host": "gpu-07", "gpu": 7}),
    ],
)
def test_csv(text: str, want: dict[str, Scalar]) -> None:
    (row,) = nvidia_smi.NVIDIA_SMI_CSV.rows(text.split("\n"))
    assert {name: row.fields.get(name) for name in want} == want
    assert row.line == text.rstrip("\n").count("\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-1, 77, python, 12 MiB\n",  # compute apps
        "epoch, loss, lr\n1, 2.3, 0.1\n",
        "index, temperature.gpu, utilization.gpu\n2, 41\n",  # torn line
        "0, 61, 100 %\n",  # no header
        "epoch,step_time.mean,tokens.total\n1,2,3\n",
    ],
)
def test_csv_near_misses(text: str) -> None:
    assert list(nvidia_smi.NVIDIA_SMI_CSV.rows(text.split("\n"))) == []


TABLE = """\
[ops@gpu-12 ~]$ nvidia-smi
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:19:00.0 Off |                    0 |
| N/A   29C    P0              67W / 400W |  61440MiB / 81920MiB   |      0%      Default |
|   2  NVIDIA A100-SXM4-80GB          On  |   00000000:4C:00.0 Off |                 ERR! |
| N/A   ERR!   ERR!           ERR! / 400W |    ERR! / 81920MiB     |     ERR!     Default |
+-----------------------------------------+------------------------+----------------------+
|  No running processes found                                                             |
"""


def test_table() -> None:
    good, bad, summary = rows(nvidia_smi.NVIDIA_SMI_TABLE, TABLE)
    assert good.fields["temperature_c"] == 29
    assert good.fields["memory_used_mib"] == 61440
    assert good.fields["host"] == "gpu-12"
    assert "state" not in good.fields
    assert bad.fields["state"] == "error"
    assert bad.line == 9
    assert summary.fields["gpu_count"] == 2
    assert summary.fields["gpus_missing"] == 1
    assert summary.fields["memory_without_process_mib"] == 61440
    assert summary.line == 12


def test_table_processes_old_and_new() -> None:
    text = TABLE.replace(
        "|  No running",
        "|    0   N/A  N/A     11327      C   /opt/a b/python   2566MiB |\n|  0  77  C  python  9MiB |\n|",
    )
    found = [r for r in rows(nvidia_smi.NVIDIA_SMI_TABLE, text) if r.kind == "process"]
    assert [(r.fields["pid"], r.fields["comm"]) for r in found] == [(11327, "/opt/a b/python"), (77, "python")]


def test_list_and_links() -> None:
    head = "GPU {}: NVIDIA H100 80GB HBM3 (UUID: GPU-{}1111111-2222-3333-4444-555555555555)"
    listed = "\n".join(head.format(i, i) for i in (0, 1, 2, 4))
    (summary,) = rows(nvidia_smi.NVIDIA_SMI_TABLE, listed)
    assert (summary.fields["gpu_count"], summary.fields["gpus_missing"]) == (4, 1)
    up, gone = "\t Link {}: 26.562 GB/s", "\t Link {}: <inactive>"
    text = "\n".join([head.format(0, 0), up.format(0), up.format(1), head.format(1, 1), up.format(0), gone.format(1)])
    first, second = rows(nvidia_smi.NVIDIA_SMI_NVLINK, text)
    assert (first.fields["links_missing"], second.fields["links_missing"], second.line) == (0, 1, 6)
    errors = "\n".join([head.format(0, 0), "\t Link 0: Replay Errors: 7", "\t Link 0: Recovery Errors: 2"])
    (row,) = rows(nvidia_smi.NVIDIA_SMI_NVLINK, errors)
    assert (row.fields["replay_errors"], row.fields["recovery_errors"], row.line) == (7, 2, 3)
    assert row.fields["links_missing"] == 0


SOURCES = (
    nvidia_smi.NVIDIA_SMI_Q, nvidia_smi.NVIDIA_SMI_CSV, nvidia_smi.NVIDIA_SMI_TABLE, nvidia_smi.NVIDIA_SMI_NVLINK,
)  # fmt: skip


@given(st.data())
def test_never_raises(data: st.DataObject) -> None:
    pool = [
        *Q.split("\n"),
        *TABLE.split("\n"),
        "index, temperature.gpu",
        "1, 2",
        "\t Link 0: <inactive>",
        "GPU 0: x (UUID: GPU-11111111)",
    ]
    noise = (
        st.text(max_size=60) | st.sampled_from(pool) | st.sampled_from(pool).map(lambda line: line[: len(line) // 2])
    )
    lines = data.draw(st.lists(noise, max_size=30))
    for source in SOURCES:
        source.sniff("x", "\n".join(lines))
        for row in source.rows(lines):
            assert 1 <= row.line <= row.end_line <= len(lines)
