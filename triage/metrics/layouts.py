r"""Metric lines of all trainers, as one table that both readers share.

Only syntax that Python's ``re`` and Rust's ``regex`` (polars) read alike: ASCII classes, no look-around, no ``\d \w \s
\b``. Group 1 is the value. Where a leading alternative has no group (``val loss``), its match means "not this metric":
that is how look-behind is spelled here. Layouts: NVIDIA/Megatron-LM training.py, DeepSpeed engine.py and
loss_scaler.py, transformers trainer_callback.py (4.x and 5.x), Lightning and NeMo bars, torchtitan metrics.py,
fairseq progress_bar.py, composer, nanoGPT, llm.c, torchvision / MAE MetricLogger, mmengine, MLPerf MLLOG.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?"
_NUMBER = rf"([-+]?(?:{_DIGITS}|\.[0-9]+|nan|NaN|NAN|[iI]nf(?:inity)?))"
_RATE = _NUMBER[:-1] + "[kKM]?)"
_INTEGER = r"([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)"
_START = r"(?:^|[^A-Za-z0-9_./-])"
_SEP = r"""["']?(?:, ?"value")?[ \t]{0,4}[:=]?[ \t]{0,4}["'\[]?(?:tensor\()?"""
_END = r"(?:[^A-Za-z0-9_.,]|[.,]?$|[.,][^0-9])"
_TIME_END = r"(?:[^A-Za-z0-9_.,:]|[.,]?$|[.,][^0-9])"  # 12:34 is a clock, not 12 s


@dataclass(frozen=True, slots=True)
class Field:
    """How one metric is written: ``pattern`` with the value in group 1, times ``scale`` (unit into SI)."""

    metric: str
    pattern: str
    scale: float = 1.0


def _named(metric: str, names: str, *, unless: str = "", number: str = _NUMBER, end: str = _END) -> Field:
    skip = f"(?:{unless})|" if unless else ""
    return Field(metric, f"{skip}{_START}(?:{names}){_SEP}{number}{end}")


def _timed(names: str, *, unless: str = "") -> tuple[Field, Field]:
    milli = _named("step_time_s", names, unless=unless, end=f" ?ms{_TIME_END}")
    second = _named("step_time_s", names, unless=unless, end=f" ?(?:s|sec|secs|seconds)?{_TIME_END}")
    return Field(milli.metric, milli.pattern, 1e-3), second


_OTHER_LOSS = r"(?:[Vv]al(?:id(?:ation)?)?|[Ee]val(?:uation)?|[Tt]est|[Bb]est|[Mm]oving|[Aa]ux)[ _/-][Ll]oss"
_LOSS = r"lm[ -]loss|(?:reduced_)?[Tt]rain(?:ing)?[ _/]?[Ll]oss|[Ll]oss/train/total|[Ll]oss|LOSS|total_loss|trl"
_OTHER_TIME = r"(?:elapsed|wall|total|eta|remaining|training|eval|validation|load|data)[ _-]?time"
_STEP_TIMES = (
    r"train_step_timing in s|(?:avg_)?(?:step|iter|iteration|batch)[ _]time(?:_s)?|"
    r"time[ _/]per[ _](?:step|iter)|time/step|"
    r"sec/step|[Tt]ime(?:\([0-9]+ iters\))?|took|dt"
)
_RATES = (
    r"samples per second|(?:[Cc]urr)?[Ss]amples[_ /]?(?:[Pp]er)?[_ ]?[Ss]ec(?:ond)?|samples/s|"
    r"tokens?/s(?:ec)?|tok/s(?:ec)?|tps|"
    r"wps|ima?ge?s?/s(?:ec)?|utts/s|seqs?/s|items/s|throughput|tokens_per_sec(?:ond)?(?:_per_gpu)?|samples_per_sec(?:ond)?|tgs"
)
_RATE_UNITS = r"(?:samples|tokens?|tok|ima?ge?s?|utts|seqs?|items|it|iters?|batch(?:es)?)/s(?:ec)?"

MEGATRON_MARK: Final = "elapsed time per iteration"
MEGATRON: Final[tuple[Field, ...]] = (
    Field("step", rf"iteration +{_INTEGER}/"),
    Field("step_time_s", rf"per iteration \(ms\): *{_NUMBER}", 1e-3),
    Field("step_time_s", rf"per iteration \(s\): *{_NUMBER}"),
    Field("learning_rate", rf"learning ?rate: *{_NUMBER}"),
    Field("loss", rf"\| +(?:[A-Za-z_]+[ -])?loss: +{_NUMBER}"),
    Field("loss_scale", rf"loss scale: *{_NUMBER}"),
    Field("grad_norm", rf"grad norm: *{_NUMBER}"),
    Field("skipped_iterations", rf"skipped ?iterations: *{_NUMBER}"),
    Field("nan_iterations", rf"nan ?iterations: *{_NUMBER}"),
    Field("throughput", rf"samples per second: *{_NUMBER}"),
    Field("throughput", rf"TFLOP(?:s|/s/GPU\)): *{_NUMBER}"),
)
GENERIC: Final[tuple[Field, ...]] = (
    Field("step", rf"(?:global_steps?|Global Step|num_updates|step_num|samples_count)(?:/max_steps)?{_SEP}{_INTEGER}"),
    Field(
        "step",
        rf"{_START}(?:(?:[Ss]teps?|[Ii]ter(?:ation)?|[Ii]t|[Uu]pdate|[Bb]atch)[ \t]{{0,4}}[:=#]?[ \t]{{0,8}}|s:)"
        rf"[\"']?:?[ \t]?{_INTEGER}",
    ),
    Field("step", rf"(?:\[ *|\| *){_INTEGER} ?/ ?[0-9]+ ?[\[\]]"),
    Field("epoch", r"""[Ee]poch(?:_num)?(?:\([a-z]+\))?["']?[ \t]{0,3}[:=]?[ \t]{0,3}\[?["']?([0-9]+(?:\.[0-9]+)?)"""),
    _named("loss", _LOSS, unless=_OTHER_LOSS),
    _named("grad_norm", r"(?:total_)?g(?:rad(?:ient)?)?[ _.-]?norm|norm"),
    _named("learning_rate", r"learning[ _]rate|LearningRate|lr(?:ate)?"),
    _named("loss_scale", r"loss[ _]scale|(?:Fp16 )?[Gg]rad[ _][Ss]cale"),
    *_timed(_STEP_TIMES, unless=_OTHER_TIME),
    Field("step_time_s", rf"{_NUMBER} ?ms(?:/(?:step|iter(?:ation)?|it|batch)| \|)", 1e-3),
    Field("step_time_s", rf"{_NUMBER} ?s(?:ec)?/(?:step|iter(?:ation)?|it|batch)"),
    _named("throughput", _RATES, number=_RATE),
    Field("throughput", rf"{_RATE} ?{_RATE_UNITS}"),
    _named("data_time_s", r"data(?:_time|_load_time| time)?"),
    Field("memory_percent", r"memory: *[0-9.]+GiB\(([0-9.]+)%\)"),
)
MEASURED: Final = ("grad_norm", "step_time_s", "throughput", "loss_scale")  # with a step, these make a metric line
COMMON: Final[tuple[Field, ...]] = (
    Field("rank", r"(?:\[[0-9]+,|\[?[Rr]ank[ =:]{0,2}|RANK)([0-9]{1,6})(?:[\], :)]|$)"),
    Field("rank", r"^ {0,3}([0-9]{1,6}): "),
    Field(
        "host",
        r"^(?:[0-9][0-9T:., /-]{9,30} )?([A-Za-z][A-Za-z0-9-]*[0-9][A-Za-z0-9.-]*|[0-9]{1,3}(?:\.[0-9]{1,3}){3}): ",
    ),
    Field("host", r" ([a-z][a-z0-9-]*[0-9][a-z0-9.-]*) rank="),
)

OVERFLOW: Final = (
    r"OVERFLOW!|[Oo]verflow detected|[Gg]radient overflow|dynamic loss scale overflow|Grad overflow on iteration"
)
OVERFLOW_SCALES: Final[tuple[Field, ...]] = (
    Field("overflow", rf"(?:reducing(?: loss scale)? to|loss scale to:?|scale to to|from [0-9.e+-]+ to) *{_NUMBER}"),
    Field("overflow", rf"[Ll]oss scale: *{_NUMBER}"),
)

# Summaries over a whole run, batch lines of an evaluation, configuration: no points of the training series.
NOISE: Final = (
    r"^ ?wandb: |train_runtime|train_samples_per_second|\| train \| epoch|^ *Test: +\[|Epoch\((?:val|test)\) ?\["
)
EVAL_LINE: Final = r"\| valid |validate step|[Vv]alidat(?:ion|ing)[ :]|[Ee]valuat(?:ion|ing)[ :]|\[valid\]"
EVAL_HINT: Final = (
    r"[Aa]cc|[Vv]al|[Tt]est_|probe|[Tt]op-?[15]|tel:|BLEU|bleu|mAP|[Dd]ice|mIoU|AUC|auc|[Ff]1[_: =\"']|WER|wer"
)
EVAL_PAIR: Final = (
    rf"{_START}((?:[Ee]val(?:uation)?|[Vv]al(?:id(?:ation)?)?|[Tt]est|probe)[_/ -][A-Za-z0-9_@/-]{{1,40}}|"
    r"lm loss value|tel|"
    r"[A-Za-z0-9_/]{0,24}(?:[Aa]cc(?:uracy)?|[Tt]op-?[15]|BLEU|bleu|mAP|[Dd]ice|mIoU|AUC|auc|[Ff]1|WER|wer)(?:@1|1)?)"
    rf"{_SEP}{_NUMBER}(?: ?%)?{_END}"
)
EVAL_NOT: Final = (
    r"(?:^|_|/)(?:train|best|max|batch|micro)|target|runtime|per_sec|time|steps?$|iters?$|"
    r"start|stop|interval|freq|overlap|date|size|samples|epoch|frac|split|ratio|num|seed|cfg|every|workers"
)
EVAL_PREFIX: Final = r"^(?:[Ee]val|[Vv]al|[Tt]est|probe|lm loss value|tel)"

ANSI: Final = r"\x1b\[[0-9;?]*[A-Za-z]"
WRAP_MARK: Final = "| consumed samples"
WRAP_HEAD: Final = r"iteration +[0-9]+/ *[0-9]+ +\| consumed samples"
WRAP_END: Final = r"nan ?iterations: *[0-9]+"
LOWER_IS_BETTER: Final = r"loss|ppl|perplexity|err|wer|tel|mse|mae|nll|fid"

TRIGGERS: Final[tuple[bytes, ...]] = (
    rb"elapsed time per iteration",
    # Pieces of a Megatron line that a terminal has wrapped.
    rb"\| +(?:lm|mlm)[ -]loss: ",
    rb"(?:skipped|nan) iterations: ",
    rb"iterations: +[0-9]+ \| samples per second",
    rb"(?:^|[^A-Za-z.-])[Ll]oss(?:/train/total)?[\"']?(?:, ?\"value\")?[ \t]{0,3}[:=]?[ \t]{0,4}"
    rb"[\"'\[]?(?:tensor\()?[-+]?(?:[0-9]|nan|NaN|[iI]nf)",
    rb"(?:^|[^A-Za-z])(?:train_|val_|eval_|valid_)?loss[\"']?(?:, ?\"value\")?[ \t]{0,3}[:=][ \t]{0,4}"
    rb"[\"'\[]?[-+]?(?:[0-9]|nan|NaN|[iI]nf)",
    rb"(?:^|[^a-z])s:[0-9]+ t[re]l:",
    rb"lm loss value: ",
    rb"(?:eval|val|valid|validation|test|probe)[_/][A-Za-z0-9_@/-]{1,40}[\"']?(?:, ?\"value\")?[ \t]{0,3}[:=] {0,3}"
    rb"[\"']?[-+]?(?:[0-9]|nan|NaN)",
    rb"(?:[Aa]cc(?:uracy)?(?:@1)?|[Tt]op-?1|BLEU|bleu|mAP|mIoU)[\"']?[ \t]{0,3}[:=] {0,3}[\"']?[0-9]",
    rb"g(?:rad(?:ient)?)?[ _.]?norm[\"']?[ \t]{0,3}[:=] {0,3}[\"']?(?:[0-9]|nan|NaN|inf)",
    rb"(?:Curr)?SamplesPerSec=[0-9]",
    rb"(?:step|iter|iteration)[ _]time[\"']?[ \t]{0,3}[:=]?[ \t]{0,3}[0-9]",
    rb"\"throughput\": [0-9]",
    rb"OVERFLOW!|[Oo]verflow detected|[Gg]radient overflow|Grad overflow on iteration",
)
