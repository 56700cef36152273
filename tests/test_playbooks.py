"""Playbooks: all load, the causal graph is sound, rendering is safe, broken files are explained."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from triage.playbooks import Playbook, lint, load_playbook, load_playbooks
from triage.vocabulary import CLASSES, Risk, StepKind, Strength

ROOT = Path(__file__).resolve().parents[1] / "playbooks"
LOADED = load_playbooks(ROOT)
BOOKS = LOADED.playbooks


@pytest.fixture(params=sorted(CLASSES))
def book(request: pytest.FixtureRequest) -> Playbook:
    return BOOKS[request.param]


def targets(name: str) -> set[str]:
    return {edge.target for edge in BOOKS[name].explains}


def everything(book: Playbook) -> str:
    steps = " ".join(f"{step.text} {step.command or ''}" for step in book.steps)
    return f"{book.definition} {book.prior_origin} {steps} " + " ".join(v.note for v in book.variants.values())


def test_all_load_and_are_the_classes() -> None:
    assert [str(problem) for problem in LOADED.problems] == []
    assert set(BOOKS) == set(CLASSES)


def test_templates_compile_and_use_known_names(book: Playbook) -> None:
    assert [str(problem) for problem in lint(book)] == []


def test_steps_are_complete(book: Playbook) -> None:
    assert {step.kind for step in book.steps if step.variant is None} == set(StepKind)
    for step in book.steps:
        assert isinstance(step.risk, Risk)
        assert step.text.strip()
        assert not step.text.endswith(":")
        assert step.variant is None or step.variant in book.variants


def test_front_matter_is_complete(book: Playbook) -> None:
    assert book.title
    assert book.title_zh
    assert len(book.definition) > 60
    assert "ecovery" in book.prior_origin, "the origin of recovery_min stands in prior_origin"
    assert book.missing


def test_priors() -> None:
    assert BOOKS["nccl-timeout"].prior == 3
    assert BOOKS["unknown"].prior == 5
    assert all(0.3 <= book.prior <= 12 for book in BOOKS.values())
    assert 90 <= sum(book.prior for book in BOOKS.values()) <= 110


VARIANTS = {
    "gpu-oom": "fragmentation foreign-process all-ranks-on-one-card capacity absurd-size",
    "host-oom": "global cgroup user-space-daemon probable",
    "scheduler-kill": "time-limit preemption node-fail hang-up admin requeue cancelled",
    "disk-full": "space quota inodes",
    "gpu-ecc": "contained uncontained row-remap-failure",
    "storage-stall": "nfs lustre gpfs other",
    "file-lock-contention": "no-lock-service held",
    "clock-skew": "credentials",
    "shm-exhausted": "container-default",
    "network-bootstrap": "port-in-use name-resolution missing-peer unreachable",
    "gpu-driver": "gsp fabric-manager library-mismatch",
    "rank-crash": "exception segfault killed",
}


def test_variants() -> None:
    assert {name: " ".join(book.variants) for name, book in BOOKS.items() if book.variants} == VARIANTS


RECOVERY = {
    "nccl-timeout": 42,
    "gpu-oom": 18,
    "dataloader-hang": 25,
    "gradient-explosion": 35,
    "file-lock-contention": 15,
}


@pytest.mark.parametrize(("name", "minutes"), RECOVERY.items())
def test_recovery_of_the_card_classes(name: str, minutes: float) -> None:
    assert BOOKS[name].recovery_min == minutes


SINKS = {"nccl-timeout", "rank-crash", "network-bootstrap", "scheduler-kill", "straggler"}
"""Classes that mostly are consequences; they explain only some of the common symptoms."""


def test_every_killer_explains_the_common_symptoms(book: Playbook) -> None:
    if book.class_ not in SINKS:
        assert {"rank-crash", "nccl-timeout", "network-bootstrap", "scheduler-kill"} <= targets(book.class_)


EDGES = """
gpu-fallen-off-bus nccl-timeout rank-crash gpu-driver scheduler-kill
pcie-aer gpu-fallen-off-bus nvme-failure ib-link
host-oom dataloader-hang rank-crash nccl-timeout scheduler-kill network-bootstrap storage-stall
ib-link storage-stall nccl-timeout rank-crash gpu-app-fault
storage-stall dataloader-hang nccl-timeout checkpoint-corruption scheduler-kill
gpu-ecc gpu-oom gpu-app-fault rank-crash nccl-timeout
gpu-thermal straggler
straggler nccl-timeout
disk-full checkpoint-corruption rank-crash scheduler-kill network-bootstrap
cron-rsync-race checkpoint-corruption gradient-explosion disk-full storage-stall
cron-rsync-race file-lock-contention rank-crash gpu-driver
clock-skew network-bootstrap scheduler-kill
rank-crash nccl-timeout straggler
network-bootstrap rank-crash nccl-timeout straggler
scheduler-kill rank-crash nccl-timeout network-bootstrap
gpu-app-fault rank-crash nccl-timeout gpu-driver
collective-mismatch nccl-timeout rank-crash
memlock-limit nccl-init-failure rank-crash
fd-limit nccl-init-failure rank-crash dataloader-hang
shm-exhausted nccl-init-failure rank-crash dataloader-hang
gradient-explosion rank-crash
"""


@pytest.mark.parametrize("row", EDGES.split("\n")[1:-1])
def test_edges_that_the_field_knows(row: str) -> None:
    cause, *effects = row.split()
    assert set(effects) <= targets(cause)


def test_lags_run_forwards(book: Playbook) -> None:
    for edge in book.explains:
        assert 0 <= edge.lag_s[0] <= edge.lag_s[1] <= 7 * 86400
        assert edge.strength is not Strength.CONCLUSIVE, "no class produces another one for certain"


FACTS = [
    ("nccl-timeout", r"[Kk]eep async error handling on"),
    ("nccl-timeout", r"0 is wrong: that hides the error"),
    ("nccl-timeout", r"0\.001 %"),
    ("nccl-timeout", r"TORCH_NCCL_BLOCKING_WAIT.*not a command-line flag"),
    ("nccl-timeout", r"[Pp]in NCCL and CUDA together"),
    ("nccl-timeout", r"firmware"),
    ("nccl-timeout", r"1\.7 %"),
    ("gpu-oom", r"[Aa]ctivation \(gradient\) checkpointing"),
    ("gpu-oom", r"smaller micro batch"),
    ("gpu-oom", r"expandable_segments"),
    ("gpu-oom", r"[Bb]udget before launch"),
    ("host-oom", r"swappiness=1.*neither frees memory nor stops the OOM killer"),
    ("dataloader-hang", r"swappiness=1.*neither frees memory nor stops the OOM killer"),
    ("dataloader-hang", r"nr_requests"),
    ("dataloader-hang", r"timeout="),
    ("dataloader-hang", r"70 %.*10 GB/s"),
    ("gradient-explosion", r"clipping at 1\.0"),
    ("gradient-explosion", r"warm-up"),
    ("gradient-explosion", r"initialisation"),
    ("gradient-explosion", r"[Ss]kip bad batches"),
    ("file-lock-contention", r"flock"),
    ("file-lock-contention", r"IterableDataset"),
    ("file-lock-contention", r"[Oo]ne opener per process, read-only"),
    ("cron-rsync-race", r"rsync deletes nothing unless told to"),
    ("cron-rsync-race", r"--ignore-existing"),
    ("cron-rsync-race", r"flock"),
    ("cron-rsync-race", r"rename when complete"),
    ("cron-rsync-race", r"local NVMe"),
    ("version-mismatch", r"2\.18"),
    ("version-mismatch", r"updates no firmware"),
    ("gpu-driver", r"updates no firmware"),
    ("network-fallback", r"58 %"),
    ("network-fallback", r"slower than one"),
    ("network-config", r"RoCE v2"),
    ("gpu-nvlink", r"700-850 GB/s.*500 GB/s"),
    ("gpu-thermal", r"78 C.*85 C"),
    ("gpu-thermal", r"82 C for two hours.*coolant-flow"),
    ("pcie-aer", r"no `-d PCIE` section"),
    ("straggler", r"85-95 %"),
    ("straggler", r"all_reduce_perf -b 8 -e 128M -f 2 -g 8"),
    ("nvme-failure", r"50 us.*8 ms.*65 %"),
    ("nvme-failure", r"80 %"),
    ("nvme-failure", r"72 h"),
    ("nvme-failure", r"day 113"),
    ("host-memory-ecc", r"85 ns.*5 ns.*mlc --loaded_latency"),
    ("ib-link", r"State: Active"),
    ("disk-full", r"/tmp, the journal"),
    ("nccl-init-failure", r"connectivity, firewall or shared memory"),
    ("nccl-init-failure", r"rank, local rank"),
    ("checkpoint-corruption", r"weights, optimiser, scheduler, scaler, RNG and loader position"),
    ("checkpoint-corruption", r"three random checkpoints"),
    ("checkpoint-corruption", r"one bad file must not take down the job"),
]


@pytest.mark.parametrize(("name", "pattern"), FACTS)
def test_field_facts_in_their_corrected_form(name: str, pattern: str) -> None:
    assert re.search(pattern, everything(BOOKS[name]), re.DOTALL)


def test_no_playbook_gives_the_dangerous_advice() -> None:
    for book in BOOKS.values():
        for step in book.steps:
            assert not re.search(r"ASYNC_ERROR_HANDLING=0|swappiness=1|nvidia-smi -q -d PCIE", step.command or "")


GOOD = """---
class: gpu-ecc
title: T
definition: D
owner: hardware
prior: 4.0
prior_origin: here
recovery_min: 45
restart: after-fix
exclude_host: true
suspect_checkpoints: false
explains:
  - {class: nccl-timeout, strength: strong, lag: [0s, 45m], scope: job}
variants:
  contained: {title: C, note: N}
summary: S
missing:
  - {what: W, source: kernel, command: dmesg, why: Y}
---
## Confirm
- [safe] Look: `dmesg`
## Fix: contained
- [safe] Wait
  for it
"""


def edit(old: str = "", new: str = "", *, step: str = "") -> str:
    return GOOD.replace("- [safe] Look: `dmesg`", step) if step else GOOD.replace(old, new)


def write(folder: Path, text: str) -> Path:
    path = folder / "gpu-ecc.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_sound_file(tmp_path: Path) -> None:
    found, problems = load_playbook(write(tmp_path, GOOD))
    assert problems == []
    assert found
    assert found.explains[0].lag_s == (0, 2700)
    assert [(s.text, s.command, s.variant, s.line) for s in found.steps] == [
        ("Look", "dmesg", None, 21),
        ("Wait for it", None, "contained", 23),
    ]


BROKEN = [
    (edit("---\nclass", "class"), 1, 1, "no front matter", "---"),
    (edit("title: T", "title: T: U"), 3, 9, "not readable as YAML", "quote"),
    (edit("owner: hardware", "owner: hardwear"), 5, 1, "owner", "did you mean 'hardware'"),
    (edit("prior: 4.0", "prior: often"), 6, 1, "prior", "docs/playbooks.md"),
    (edit("restart: after-fix", "restrat: after-fix"), 9, 1, "restrat", "did you mean 'restart'"),
    (edit("prior: 4.0", "prior: 4.0\nprior: 5.0"), 7, 1, "stands here twice", ""),
    (
        edit("{class: nccl-timeout", "{class: nccl-timout"),
        13,
        6,
        "unknown class 'nccl-timout'",
        "did you mean 'nccl-timeout'",
    ),
    (edit("scope: job", "scop: job"), 13, 61, "scop", "did you mean 'scope'"),
    (edit("strong", "storng"), 13, 27, "strength", "did you mean 'strong'"),
    (edit("[0s, 45m]", "[45m, 0s]"), 13, 45, "lag", ""),
    (edit("[0s, 45m]", "[-5m, 45m]"), 13, 45, "lag", ""),
    (edit("[0s, 45m]", "[0s, soon]"), 13, 55, "not a time span", ""),
    (edit("class: gpu-ecc", "class: gpu-oom"), 2, 1, "not the stem", "rename"),
    (edit("command: dmesg", "command: \"grep '{{ host }}' x\""), 18, 31, "inside quotes", "shell-quoted already"),
    (edit("## Confirm", "## Confrim"), 20, 1, "unknown section", "did you mean 'Confirm'"),
    (edit("## Fix: contained", "## Fix: contaned"), 22, 1, "unknown variant", "did you mean 'contained'"),
    (edit(step="- [save] Look"), 21, 1, "unknown risk 'save'", "did you mean 'safe'"),
    (edit(step="Look"), 21, 1, "not a step", "- [safe]"),
    (edit(step='- [safe] Look: `echo "{{ host }}"`'), 21, 1, "inside quotes", "out of quotes"),
    (edit(step="- [safe] Look: `ssh h ls {{ path }}`"), 21, 1, "second shell", ""),
    (edit("## Confirm\n", "Hello\n## Confirm\n"), 20, 1, "outside a section", "## Confirm"),
    (edit("title: T", "title: &a T\nx: *b"), 4, 4, "not readable as YAML", ""),
]


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), BROKEN)
def test_broken_files_are_explained(tmp_path: Path, text: str, line: int, column: int, message: str, hint: str) -> None:
    path = write(tmp_path, text)
    found, problems = load_playbook(path)
    assert found is None
    first = problems[0]
    assert (first.path, first.line, first.column) == (str(path), line, column)
    assert message in first.message
    assert hint in first.hint


def test_a_bad_file_does_not_disable_the_others_and_a_later_folder_overrides(tmp_path: Path) -> None:
    (tmp_path / "gpu-oom.md").write_text("nothing", encoding="utf-8")
    write(tmp_path, GOOD)
    loaded = load_playbooks([ROOT, tmp_path])
    assert [problem.path for problem in loaded.problems] == [str(tmp_path / "gpu-oom.md")]
    assert loaded.playbooks["gpu-ecc"].title == "T"
    assert loaded.playbooks["gpu-oom"].title == "GPU out of memory"


def test_jinja_is_imported_only_to_render() -> None:
    code = (
        "import sys; from pathlib import Path; from triage.playbooks import load_playbooks; "
        f"load_playbooks(Path({str(ROOT)!r})); assert 'jinja2' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT.parent)
