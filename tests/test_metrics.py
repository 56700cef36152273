"""Reading metric lines: every layout, odd numbers, wrapped lines, and both readers alike."""

# ruff: noqa: E501  (log lines)

from __future__ import annotations

import re
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.metrics import TRIGGERS, Line, Points, bulk, layouts, parse, plain

NAN = float("nan")
MEGATRON = (
    " [2024-05-01 12:00:00] iteration     1200/  500000 | consumed samples:      1228800 | elapsed time per iteration (ms): 5123.4 | "
    "throughput per GPU (TFLOP/s/GPU): 412.3 | learning rate: 1.500000E-04 | global batch size:  1024 | lm loss: 2.731245E+00 | "
    "loss scale: 1.0 | grad norm: 0.412 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
LAYOUTS: dict[str, tuple[str, dict[str, float]]] = {
    "megatron": (
        MEGATRON,
        {
            "loss": 2.731245, "step_time_s": 5.1234, "learning_rate": 1.5e-4, "grad_norm": 0.412, "loss_scale": 1.0,
            "skipped_iterations": 0.0, "nan_iterations": 0.0, "throughput": 412.3, "step": 1200.0,
        },
    ),
    "megatron nan": (
        MEGATRON.replace("lm loss: 2.731245E+00 | ", "").replace("0.412", "nan"),
        {"loss_missing": 0.0, "grad_norm": NAN, "step": 1200.0, "step_time_s": 5.1234},
    ),
    "megatron seconds": (
        "[default7]: iteration   42770/ 115311 | consumed samples:    71435184 | elapsed time per iteration (s): 105.23 | learning "
        "rate: 4.475E-05 | lm loss: 2.111997E+00 | grad norm: 0.134 | samples per second: 19.463 | TFLOPs: 149.00 |",
        {"loss": 2.111997, "step_time_s": 105.23, "throughput": 19.463, "step": 42770.0},
    ),
    "deepspeed": (
        "epoch=0/micro_step=5/global_step=10, RunningAvgSamplesPerSec=50.1, CurrSamplesPerSec=51.5, MemAllocated=1.2GB",
        {"throughput": 51.5, "step": 10.0},
    ),
    "overflow": (
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
        {"overflow": 32768.0},
    ),
    "apex": ("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0", {"overflow": 32768.0}),
    "hf 4": (
        "{'loss': 2.3145, 'grad_norm': 1.23, 'learning_rate': 4.9e-05, 'epoch': 0.01}",
        {"loss": 2.3145, "grad_norm": 1.23, "learning_rate": 4.9e-5},
    ),
    "hf 5": (
        "{'loss': '2.314', 'grad_norm': 'nan', 'learning_rate': '4.9e-05', 'epoch': '0.01'}",
        {"loss": 2.314, "grad_norm": NAN, "learning_rate": 4.9e-5},
    ),
    "hf eval": ("{'eval_loss': 1.343, 'eval_mlm_accuracy': 0.7137, 'eval_runtime': 12.3}", {"eval:eval_loss": 1.343, "eval:eval_mlm_accuracy": 0.7137}),
    "lightning": (
        "Epoch 0:  12%|#2 | 12/100 [00:10<01:20,  1.10it/s, v_num=3, train_loss=2.310]",
        {"loss": 2.31, "throughput": 1.1, "step": 12.0},
    ),
    "nemo": (
        "Training epoch 0, iteration 99/999999 | lr: 0.0003 | global_batch_size: 512 | global_step: 99 | reduced_train_loss: 2.31 | "
        "train_step_timing in s: 5.12 | consumed_samples: 51200",
        {"loss": 2.31, "step_time_s": 5.12, "learning_rate": 3e-4, "step": 99.0},
    ),
    "torchtitan": (
        "[titan] 2024-05-01 12:00:00,123 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  8.12345  \x1b[34mgrad_norm:  1.2345  "
        "\x1b[38;2;1;2;3mmemory: 40.11GiB(50.70%)  \x1b[34mtps: 1,234  \x1b[36mtflops: 234.56  mfu: 40.12%\x1b[39m",
        {"loss": 8.12345, "grad_norm": 1.2345, "memory_percent": 50.7, "throughput": 1234.0, "step": 10.0},
    ),
    "fairseq": (
        "2021-03-29 09:19:20 | INFO | train_inner | epoch 002:     40 / 356 loss=10.290, nll_loss=9.48, ppl=720.00, wps=31775.2, "
        "num_updates=379, lr=9.475e-05, gnorm=1.920, loss_scale=0, wall=6700",
        {"loss": 10.29, "grad_norm": 1.92, "throughput": 31775.2, "loss_scale": 0.0, "step": 379.0},
    ),
    "fairseq valid": (
        "2021-03-29 11:38:18 | INFO | valid | epoch 002 | valid on 'valid' subset | loss 9.393 | ppl 321.26 | num_updates 695",
        {"eval:loss": 9.393},
    ),
    "composer": ("\t Train loss/train/total: 2.3100", {"loss": 2.31}),
    "nanogpt": ("step 10: train loss 2.3012, val loss 2.4501", {"loss": 2.3012, "step": 10.0}),
    "nanogpt iter": ("iter 10: loss 2.3012, time 135.20ms, mfu 12.00%", {"loss": 2.3012, "step_time_s": 0.1352, "step": 10.0}),
    "llm.c": (
        "step   10/19560 | loss 10.500000 (+nanz)| norm 15.4000 (+nanz)| lr 4.29e-06 | 3043.34 ms | 48.6% bf16 MFU | 172240 tok/s",
        {"loss": 10.5, "grad_norm": 15.4, "step_time_s": 3.04334, "throughput": 172240.0, "step": 10.0},
    ),
    "mae": (
        "Epoch: [41]  [  10/1251]  eta: 0:12:21  lr: 0.000412  loss: 3.4020 (3.3434)  time: 0.860  data: 0.0068  max mem: 14210",
        {"loss": 3.402, "step_time_s": 0.86, "data_time_s": 0.0068, "learning_rate": 4.12e-4, "step": 10.0},
    ),
    "mmengine": (
        "12/15 06:20:30 - mmengine - INFO - Epoch(train) [14][ 900/1833]  lr: 1.0000e-03  eta: 3 days, 14:33:29  time: 0.6169  "
        "data_time: 0.0258  memory: 5121  grad_norm: 246.0000  loss: 238.0000  loss_cls: 72.0000",
        {"loss": 238.0, "step_time_s": 0.6169, "data_time_s": 0.0258, "grad_norm": 246.0, "step": 900.0},
    ),
    "pipes": (
        "[rank0] step   60/500 | loss 1.7653 | step_time 7.24s | tokens/s 9,052 | lr 1.00e-05",
        {"loss": 1.7653, "step_time_s": 7.24, "throughput": 9052.0, "step": 60.0},
    ),
    "key=value": (
        "2026-11-09 01:00:30,601 +0100 gn09 rank=0 step=180111 loss=2.3156 gnorm=0.321 lr=1.20e-04 tok/s=410k",
        {"loss": 2.3156, "grad_norm": 0.321, "throughput": 410_000.0, "step": 180111.0},
    ),
    "probe": ("2026-11-09 01:17:49,813 +0100 gn09 rank=0 probe_acc=0.7002", {"eval:probe_acc": 0.7002}),
    "mllog": (
        ':::MLLOG {"time_ms": 1, "key": "eval_accuracy", "value": 0.7137319445610046, "metadata": {"epoch_num": 3}}',
        {"eval:eval_accuracy": 0.7137319445610046},
    ),
    "plain nan": ("step 7 loss: nan", {"loss": NAN, "step": 7.0}),
    "plain inf": ("step=8 loss=-inf grad_norm=Infinity", {"loss": float("-inf"), "grad_norm": float("inf"), "step": 8.0}),
    "tensor": ("step 9, loss: tensor(2.25, device='cuda:0')", {"loss": 2.25, "step": 9.0}),
}  # fmt: skip

NOT_METRICS = {
    "val loss is not the loss": "step 250 val loss 3.2",
    "argument dump": "  min_loss_scale .................................. 1.0",
    "configuration": '        "loss_scale": 0,',
    "final summary": "{'train_runtime': 871.6, 'train_samples_per_second': 1.147, 'train_loss': 2.5, 'epoch': 1.0}",
    "a clock": "step 5 time: 12:34:56",
    "prose": "loss inference is disabled",
    "web server": '10.11.10.1 "GET /v2/servers/detail HTTP/1.1" status: 200 len: 1893 time: 0.266892',
}
TRIGGERED = [re.compile(trigger, re.MULTILINE) for trigger in TRIGGERS]


def columns(points: Points) -> list[tuple[object, ...]]:
    """Points in a form that compares NaN equal to NaN."""

    def texts(column: array[float] | array[int]) -> tuple[str, ...]:
        return tuple(map(repr, column))

    return [(s.key, texts(s.epochs), texts(s.steps), texts(s.times), texts(s.values), texts(s.lines)) for s in points]


def rows(texts: list[str]) -> list[Line]:
    return [("a.log", number, text, None) for number, text in enumerate(texts, 1)]


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout(name: str) -> None:
    line, expected = LAYOUTS[name]
    points = parse([("a.log", 7, line, 1.5)])
    found = {series.key.metric: series.values[0] for series in points} | {"step": points[0].steps[0]}
    assert {key: found[key] for key in expected} == pytest.approx(expected, nan_ok=True)
    assert all(series.lines[0] == 7 and series.times[0] == 1.5 for series in points)
    assert any(pattern.search(line.encode()) for pattern in TRIGGERED)


@pytest.mark.parametrize("name", NOT_METRICS)
def test_near_miss(name: str) -> None:
    points = parse([("a.log", 1, NOT_METRICS[name], None)])
    assert not [series for series in points if not series.key.metric.startswith("eval:")]


def test_triggers_end_early_and_are_selective() -> None:
    assert all(not trigger.endswith((b"*", b"+")) for trigger in TRIGGERS)
    quiet = [
        b"NCCL INFO Channel 00/24 : 0 1 2 3",
        b"  warnings.warn('loss of precision')",
        b"kernel: nvme nvme0: I/O timeout",
    ]
    assert not [line for line in quiet for pattern in TRIGGERED if pattern.search(line)]


def test_wrapped_lines_are_joined() -> None:
    pieces = [
        "[default7]: iteration   42770/ 115311 | consumed samples:    71435184 | elapsed time per iteration (s): 105.23 | learning",
        " rate: 4.475E-05 | global batch size: 2048 | lm loss: 2.111997E+00 | grad norm: 0.134 | number of skipped iterations:  0 | number of nan",
        "iterations:  0 | samples per second: 19.463 | TFLOPs: 149.00 |",
        "another line",
    ]
    for reader in (plain.parse, bulk.parse):
        found = {series.key.metric: (series.values[0], series.lines[0]) for series in reader(rows(pieces))}
        assert found["loss"] == (2.111997, 1)
        assert found["learning_rate"] == (4.475e-05, 1)
        assert found["throughput"] == (19.463, 1)
        assert "loss_missing" not in found


def test_series_are_kept_apart_by_rank_and_host() -> None:
    texts = [
        "[rank0] step 1 | loss 1.5 | step_time 1.4s",
        "[rank1] step 1 | loss 1.6 | step_time 1.4s",
        "node07: {'loss': 1.7}",
    ]
    keys = [(s.key.rank, s.key.host) for s in parse(rows(texts)) if s.key.metric == "loss"]
    assert keys == [(None, "node07"), (0, None), (1, None)]


def test_frames_of_a_progress_bar() -> None:
    bar = "\rEpoch 0:  12%| | 12/100 [00:10<01:20, 1.10it/s, loss=2.3]\rEpoch 0:  13%| | 13/100 [00:11<01:20, 1.10it/s, loss=2.2]"
    for reader in (plain.parse, bulk.parse):
        loss = next(s for s in reader(rows([bar])) if s.key.metric == "loss")
        assert (list(loss.values), list(loss.steps), list(loss.lines)) == ([2.3, 2.2], [12.0, 13.0], [1, 1])


def test_templates_read_what_regular_expressions_read() -> None:
    """Large inputs take the byte-matrix path; widths change, NaN appears, ranks and hosts differ."""
    texts: list[str] = []
    for i in range(1500):
        loss = "nan" if i % 97 == 0 else f"{2.7 + i / 1e4:.6E}"
        texts.append(
            MEGATRON.replace("1200/", f"{i}/").replace("2.731245E+00", loss).replace("5123.4", f"{5000 + i * 7.3:.1f}")
        )
        texts.append(
            f"[rank{i % 8}] step {i}/5000 | loss {i / 7:.{i % 6}f} | step_time {i * 1.37:.2f}s | tokens/s {i * 1111:,}"
        )
        texts.append(f"node0{i % 3}: {{'loss': {i / 3!r}, 'grad_norm': {i * 1e-7:.3e}, 'epoch': {i / 1000:.2f}}}")
        texts.append(LAYOUTS["mllog"][0].replace("0.7137", f"0.{i:04d}"))
    assert columns(bulk.parse(rows(texts))) == columns(plain.parse(rows(texts)))


_numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.integers(0, 10**9).map("{:,}".format),
    st.sampled_from(
        [
            "nan",
            "NaN",
            "inf",
            "-inf",
            "Infinity",
            "1.2E+00",
            "'2.3'",
            "410k",
            "1,234",
            "1,23",
            "5.",
            ".5",
            "2.3abc",
            "--1",
            "",
        ]
    ),
)
_pieces = st.one_of(
    st.sampled_from(
        [
            "loss",
            "loss:",
            "loss=",
            "'loss':",
            "val_loss",
            "train_loss",
            "lm",
            "lm_loss",
            "|",
            "||",
            "step",
            "step:",
            "step=",
            "iter",
            "iteration",
            "epoch=1",
            "Epoch",
            "[",
            "3/10]",
            "\r",
            "time:",
            "ms",
            "s",
            "lr",
            "grad_norm",
            "grad",
            "norm:",
            "gnorm=",
            "acc=",
            "eval_loss:",
            "rank=3",
            "[rank2]",
            "node07:",
            "tok/s=",
            "data:",
            "OVERFLOW!",
            "reducing",
            "to",
            ",",
            "nan",
            "iterations:",
            "elapsed",
            "time",
            "per",
            "iteration",
            "(ms):",
            "Test:",
            "|",
            "valid",
            "|",
            "é",
            "\x1b[31m",
            "validate",
        ]
    ),
    _numbers,
)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(_pieces, max_size=9).map(" ".join), min_size=1, max_size=12), st.integers(1, 80))
def test_both_readers_agree(texts: list[str], repeat: int) -> None:
    many = rows(texts * repeat)
    assert columns(bulk.parse(many)) == columns(plain.parse(many))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(LAYOUTS)), _numbers, _numbers), min_size=1, max_size=6))
def test_both_readers_agree_on_mutated_layouts(picks: list[tuple[str, str, str]]) -> None:
    texts = [re.sub(r"[0-9]+\.[0-9]+", lambda _: a, LAYOUTS[name][0], count=1) + b for name, a, b in picks]  # noqa: B023
    assert columns(bulk.parse(rows(texts))) == columns(plain.parse(rows(texts)))


def test_frame_input_and_small_input_do_not_differ() -> None:
    lines = rows([line for line, _ in LAYOUTS.values()])
    assert columns(parse(bulk.frame(lines))) == columns(parse(lines))


def test_table_uses_common_syntax_only() -> None:
    """Python and Rust must read the patterns alike: no classes that differ on Unicode, no look-around."""
    for item in (*layouts.MEGATRON, *layouts.GENERIC, *layouts.COMMON, *layouts.OVERFLOW_SCALES):
        assert not re.search(r"\\[dDwWsSbB]|\(\?[=!<]", item.pattern), item
        assert re.compile(item.pattern).groups == 1
