"""``triage explain``: codes, lines, classes, what nobody knows, and what the fast path may load."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from triage import codes, explain
from triage.cli import main
from triage.knowledge import Knowledge, cache_dir, load

KERNEL = "[91234.567890] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."


@cache
def knowledge() -> Knowledge:
    """Return our signatures and playbooks, loaded once."""
    return load(cache=cache_dir())


def ask(text: str) -> explain.Explanation:
    """Explain a text."""
    return explain.explain(text, knowledge())


@pytest.mark.parametrize(
    ("text", "signature", "class_"),
    [
        ("xid 79", "gpu-xid/79", "gpu-fallen-off-bus"),
        ("Xid: 79", "gpu-xid/79", "gpu-fallen-off-bus"),
        ("xid79", "gpu-xid/79", "gpu-fallen-off-bus"),
        ("sxid 20034", "nvswitch-sxid/20034", "gpu-nvlink"),
        ("exit -9", "torchrun-worker-failed/-9", "rank-crash"),
        ("exit code 137", "torchrun-worker-failed/-9", "rank-crash"),
        ("exit 0:125", "slurm-accounting-state/OUT_OF_MEMORY", "host-oom"),
        ("signal 9", "native-crash-signal/9", "rank-crash"),
        ("SIGBUS", "native-crash-signal/7", "shm-exhausted"),
        ("nccl 6", "nccl-result-text/remote", "rank-crash"),
        ("ncclRemoteError", "nccl-result-text/remote", "rank-crash"),
        ("ib 12", "nccl-ib-completion-error/12", "ib-link"),
        ("IBV_WC_RETRY_EXC_ERR", "nccl-ib-completion-error/12", "ib-link"),
        ("errno 122", "disk-quota-exceeded", "disk-full"),
        ("EDQUOT", "disk-quota-exceeded", "disk-full"),
        ("errno 28", "no-space-left", "disk-full"),
        ("slurm NODE_FAIL", "slurm-accounting-state/NODE_FAIL", "scheduler-kill"),
        ("NODE_FAIL", "slurm-accounting-state/NODE_FAIL", "scheduler-kill"),
        ("cuda 802", "cuda-not-initialized", "gpu-driver"),
        ("cuda 700", "cuda-illegal-memory-access", "gpu-app-fault"),
        ("rsync 24", "rsync-some-files-vanished", None),
    ],
)
def test_codes(text: str, signature: str, class_: str | None) -> None:
    """Codes as people write them lead to the signature, or the row, that knows them."""
    found = ask(text)
    assert (found.kind, found.known) == ("code", True)
    assert found.answers[0].signature == signature
    assert class_ in (None, found.answers[0].class_)
    assert found.answers[0].printed_by


def test_signals_in_exit_codes_are_spelt_out() -> None:
    """-9 and 137 are the same end, and neither proves lack of memory."""
    found = ask("exit 137")
    assert "SIGKILL" in found.notes[0]
    assert "memory" in found.answers[0].proves_not
    assert any(cause.startswith("host-oom") for cause in found.answers[0].causes)


@pytest.mark.parametrize(
    ("text", "near"),
    [("xid 999", "gpu-xid/"), ("ib 97", "nccl-ib-completion-error/"), ("slurm NODE_FALI", "NODE_FAIL")],
)
def test_unknown_codes_show_their_neighbours(text: str, near: str) -> None:
    """An unknown code is said to be unknown; the nearest known ones are listed."""
    found = ask(text)
    assert (found.kind, found.known) == ("code", False)
    assert "unknown" in found.notes[0]
    assert found.near
    assert near in found.near[0].signature


def test_known_line() -> None:
    """A line gives its signature, its captures and where it is printed."""
    found = ask(KERNEL)
    assert found.kind == "line"
    answer = found.answers[0]
    assert (answer.signature, answer.class_, answer.role) == ("gpu-xid/79", "gpu-fallen-off-bus", "root")
    assert answer.captures["pci"] == "0000:3b:00"
    assert answer.playbook == "gpu-fallen-off-bus"
    assert not found.near


def test_variant_and_recovery_are_named() -> None:
    """A variant comes with its note, a recoverable line with its recovery line."""
    assert "quota" in ask("errno 122").answers[0].variant_note.lower()
    line = "Dec  1 14:42:07 gpu-12 kernel: [81234.5] nfs: server nas01 not responding, still trying"
    assert any(text.startswith("nfs-server-ok: ") for text in ask(line).answers[0].recovered_by)


def test_unknown_line_names_the_nearest_signatures() -> None:
    """A line that nobody knows says so and shows likenesses; the numbers in it do not matter."""
    found = ask("GPU 4711 of node quux seems to have left the PCIe bus for good at 0xdeadbeef")
    assert not found.known
    assert found.notes == (explain.UNKNOWN,)
    assert found.near
    assert all(near.similarity is not None and 0 < near.similarity < 1 for near in found.near)
    other = ask("GPU 12 of node quux seems to have left the PCIe bus for good at 0xcafe")
    assert [n.signature for n in other.near] == [n.signature for n in found.near]


def test_several_lines() -> None:
    """Lines of standard input are told apart by their numbers."""
    found = ask(f"{KERNEL}\nnothing to see\n{KERNEL}")
    assert found.answers[0].lines == (1, 3)
    assert found.notes == (f"{explain.UNKNOWN}: 2",)


def test_a_quoted_line_is_no_evidence() -> None:
    """sudo prints the command line; the meaning is shown with the warning."""
    found = ask(f"Dec  1 14:42:07 gpu-12 sudo[222]: {KERNEL.partition('] ')[2]}")
    assert explain.QUOTED in found.notes or not found.known


def test_class() -> None:
    """A class name gives its definition, its edges and the pointer to its steps."""
    found = ask("gpu-ecc")
    assert found.about is not None
    assert found.about["owner"] == "hardware"
    assert any(text.startswith("nccl-timeout") for text in found.about["explains"])
    assert found.about["signatures"]["root"]


def test_signature_id() -> None:
    """An id, or the id of a row, is a question as well."""
    assert ask("gpu-xid/79").answers[0].class_ == "gpu-fallen-off-bus"
    assert ask("nfs-server-not-responding").kind == "signature"


@pytest.mark.parametrize(
    "text", ["", "x", "\x00\x1b[2J\r", "rank 3", "exit", "errno", "xid -", "cuda 1234", "{{ 7*7 }}", "a" * 100_000]
)
def test_any_text_gives_an_answer(text: str) -> None:
    """Nothing that can be typed raises."""
    assert ask(text).as_dict()["schema"] == explain.SCHEMA


def test_every_known_code_of_every_table_resolves() -> None:
    """Each numeric Xid of the table is found by asking for it."""
    table = next(s for s in knowledge().signatures if s.id == "gpu-xid").table
    for key in table:
        if key.isdigit():
            code = codes.parse(f"xid {key}", knowledge().signatures)
            assert code is not None
            assert next(codes.rows(code, knowledge().signatures)).id == f"gpu-xid/{key}"


def run(*arguments: str, stdin: str | None = None) -> str:
    """Run the command and return its output."""
    result = CliRunner().invoke(main, ["explain", *arguments], input=stdin)
    assert result.exit_code == 0, result.output
    return result.output


def test_command_text() -> None:
    """The text says what it does not prove and where the steps are."""
    text = run("exit", "-9")
    assert "proves not" in text
    assert "triage playbooks show rank-crash" in text


def test_command_json_from_stdin() -> None:
    """``-`` reads standard input; JSON is plain ASCII with the words of the contract."""
    out = run("-", "--format", "json", stdin=KERNEL + "\n")
    document: dict[str, Any] = json.loads(out)
    assert document["answers"][0]["class"] == "gpu-fallen-off-bus"
    assert out.isascii()


def test_log_text_is_inert_and_masked() -> None:
    """Escapes are shown, secrets are not."""
    text = run("-", stdin="OSError: [Errno 122] Disk quota exceeded: '/data/\x1b[2Jx?token=abcdef123456'\n")
    assert "\x1b" not in text
    assert "abcdef123456" not in text


def test_known_things_load_no_heavy_library() -> None:
    """scikit-learn and polars are for unknown lines only."""
    script = (
        "import sys\n"
        "from triage import explain, knowledge\n"
        "k = knowledge.load(cache=knowledge.cache_dir())\n"
        f"for words in (['xid', '79'], ['gpu-ecc'], [{KERNEL!r}]):\n"
        "    explain.command(words, 'text', k, [])\n"
        "print([m for m in ('sklearn', 'polars', 'numpy', 'scipy') if m in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    assert done.stdout.strip() == "[]"
