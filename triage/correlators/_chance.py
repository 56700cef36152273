"""How likely a match between harm and a schedule is by chance alone: exact tests, standard library only."""

from __future__ import annotations

from math import comb


def binomial_tail(hits: int, trials: int, share: float) -> float:
    """P(at least ``hits`` of ``trials`` fall into windows that cover ``share`` of the time)."""
    share = min(1.0, max(0.0, share))
    terms = (comb(trials, i) * share**i * (1 - share) ** (trials - i) for i in range(hits, trials + 1))
    return min(1.0, sum(terms))


def range_tail(hits: int, trials: int, width_s: float, period_s: float) -> float:
    """P(``hits`` of ``trials`` random phases of a cycle lie within ``width_s`` of each other), an upper bound."""
    if hits < 2 or period_s <= 0:
        return 1.0
    return min(1.0, comb(trials, hits) * hits * min(1.0, width_s / period_s) ** (hits - 1))


def exposure_tail(harmed_exposed: int, harmed: int, exposed: int, total: int) -> float:
    """P(so many of the harmed saves are exposed ones) when harm picks saves blindly (hypergeometric)."""
    if not total or harmed > total:
        return 1.0
    ways = comb(total, harmed)
    last = min(harmed, exposed)
    cases = (comb(exposed, i) * comb(total - exposed, harmed - i) for i in range(harmed_exposed, last + 1))
    return min(1.0, sum(cases) / ways)
