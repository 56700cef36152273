"""The ghost: harm that comes back at one time of day, and the forgotten scheduled job behind it.

A culprit needs a destructive command that reaches what training uses, in the right direction, and either recurrence
that chance does not explain or, for one occurrence, a line that says what was lost. Timing alone names nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from math import log2
from typing import Final

from triage.correlators._chance import binomial_tail, exposure_tail, range_tail
from triage.correlators._harm import Harm, Write
from triage.correlators._match import EPISODE, ONE_RUN_S, SLACK_S, Candidate, Hit, Match, busy_run, match_starts
from triage.correlators._reach import Case, Reach, Site, cases, reach
from triage.schedules import Effect, Schedule, ScheduleRun, effects, overlaps, short

__all__ = ["Culprit", "Harm", "Site", "Write", "find_culprits"]

_ALPHA: Final = 0.005
_ALPHA_DIRECT: Final = 0.01
_ALPHA_CAUGHT: Final = 0.05  # every harm direct, its run logged, a save under way
_ALPHA_UNKNOWN: Final = 0.001


@dataclass(frozen=True, slots=True)
class Culprit:
    """A schedule that explains harm. ``p_coincidence`` is corrected for the ``tried`` schedules.

    ``runs`` are the starts that preceded harm, ``delays_s`` their distances; ``quiet_nights`` counts starts without
    harm, ``quiet_exposed`` those of them during a save. ``witness``: the deleting tool itself names the file.
    """

    schedule: Schedule
    effects: tuple[Effect, ...]
    harms: tuple[Harm, ...]
    runs: tuple[ScheduleRun, ...]
    confidence_bits: float
    p_coincidence: float
    quiet_nights: int
    reasons: tuple[str, ...]
    rack: str | None
    hosts: tuple[str, ...]
    tried: int = 1
    quiet_exposed: int = 0
    delays_s: tuple[float, ...] = ()
    witness: bool = False


def find_culprits(
    schedules: Sequence[Schedule],
    runs: Sequence[ScheduleRun],
    harms: Sequence[Harm],
    writes: Sequence[Write],
    site: Site | None = None,
) -> list[Culprit]:
    """Return the schedules that explain harm, surest first.

    One that explains no harm beyond what surer ones explain is left out. ``runs`` are logged starts; starts that no log
    shows are computed. All times are UTC; ``site`` holds what is known about mounts, racks, scripts and zones.
    """
    site = site or Site()
    real = cases([harm for harm in harms if not harm.is_harmless], writes)
    candidates = _candidates(schedules, real, writes, site)
    # Lines whose command is known are one family of guesses; programs nobody can read come on top of it.
    named = _distinct(c for c in candidates if not c.is_unknown)
    every = _distinct(candidates)
    judged = (_judge(c, runs, every if c.is_unknown else named, site) for c in candidates)
    found = [culprit for culprit in judged if culprit is not None]
    kept: list[Culprit] = []
    explained: set[int] = set()
    for culprit in sorted(found, key=lambda c: -c.confidence_bits):
        own = {id(harm) for harm in culprit.harms}
        if own - explained:
            kept.append(culprit)
        explained |= own
    return kept


def _distinct(candidates: Iterable[Candidate]) -> int:
    """A fleet that shares one crontab is one guess."""
    return len({(c.schedule.expr, c.schedule.command, c.schedule.kind) for c in candidates})


def _candidates(
    schedules: Sequence[Schedule], harmed: Sequence[Case], writes: Sequence[Write], site: Site
) -> list[Candidate]:
    memo: dict[tuple[str, str | None], list[Effect]] = {}
    hosts = {name for s in schedules if (name := short(s.host))}
    found = []
    for schedule in schedules:
        if not schedule.enabled:
            continue
        key = schedule.command, short(schedule.host)
        if key not in memo:
            memo[key] = effects(schedule.command, _scripts_of(schedule, hosts, site))
        able = [effect for effect in memo[key] if effect.kind not in {"none", "lock"}]
        reaches = _reaches(schedule, able, harmed, site) if able else []
        held = tuple(r for r in reaches if r is not None)
        held = tuple(r for r in held if not r.harm.witness or _is_theft(r, held, writes, site))
        if held:
            jobs = {id(r.case.own): r.case.own for r in held}
            own = dict.fromkeys(write for saves in jobs.values() for write in saves)
            found.append(Candidate(schedule, held, tuple(own)))
    return found


def _scripts_of(schedule: Schedule, hosts: set[str], site: Site) -> dict[str, str]:
    """The bundle's scripts without those that lie in another host's folder."""
    others = hosts - {short(schedule.host)}
    return {path: text for path, text in site.scripts.items() if others.isdisjoint(path.split("/"))}


def _reaches(schedule: Schedule, able: Sequence[Effect], harmed: Sequence[Case], site: Site) -> list[Reach | None]:
    """Judge every case once per kind: many harms of one job differ in nothing but their time."""
    judged: dict[object, Reach | None] = {}
    found = []
    for case in harmed:
        # The age of the harmed save counts for cleaners that spare young files.
        key = (case.kind, case.harm.at if any(effect.min_age_s for effect in able) else None)
        if key not in judged:
            judged[key] = _strongest(schedule, able, case, site)
        known = judged[key]
        found.append(replace(known, case=case) if known is not None else None)
    return found


def _strongest(schedule: Schedule, able: Sequence[Effect], case: Case, site: Site) -> Reach | None:
    judged = (reach(schedule, effect, case, site) for effect in able)
    return max((r for r in judged if r is not None), key=lambda r: r.strength, default=None)


def _is_theft(reached: Reach, others: Sequence[Reach], writes: Sequence[Write], site: Site) -> bool:
    """A cleaner's own word counts when training misses something soon after, or the file was just being saved."""
    at, late = reached.harm.at.at, timedelta(seconds=site.max_run_s)
    for other in others:
        then = other.harm.at.at
        if not other.harm.witness and (
            at is None or then is None or timedelta(0) <= then - at + EPISODE <= late + EPISODE
        ):
            return True
    name = (reached.harm.path or reached.harm.witness or "").rstrip("/")
    full = name if name.startswith("/") else f"{reached.effect.path}/{name}"
    return any(
        overlaps(full, write.path) and (at is None or write.at <= at <= write.until + EPISODE) for write in writes
    )


def _judge(candidate: Candidate, runs: Sequence[ScheduleRun], tried: int, site: Site) -> Culprit | None:
    match = match_starts(candidate, runs, site)
    if match is None:
        return _undated(candidate, runs, tried, site)
    if not match.hits:
        return None
    chance, how = _chance(candidate, match)
    corrected = min(1.0, chance * max(1, tried))
    if not _convinces(candidate, match, corrected):
        return None
    return _culprit(candidate, match, corrected, how, tried, site)


def _chance(candidate: Candidate, match: Match) -> tuple[float, str]:
    """Chance that unrelated harm fits so well, and how it was reckoned.

    Saves are the better control where they are known: a harmed save that overlaps a run, against all saves that do and
    do not. Otherwise the clock: the share of time that lies within the longest delay after a start.
    """
    hits, n = len(match.hits), match.episodes
    harmed = [hit.save for hit in match.hits if hit.save is not None]
    exposed = [write for write in candidate.writes if busy_run(write, match.runs, match.reach_s)]
    total = len(candidate.writes)
    if len(harmed) == hits and total >= 6 and 0 < len(exposed) < total and all(save in exposed for save in harmed):
        chance = exposure_tail(hits, min(n, total), len(exposed), total)
        return chance, f"{len(exposed)} of {total} saves overlapped a run; all {hits} harmed saves are among them"
    slack_s = 2 * SLACK_S + candidate.schedule.spread_s
    share = (match.reach_s + slack_s) / match.period_s
    near = binomial_tail(hits, n, share)
    delays = [hit.delay_s for hit in match.hits]
    tight = range_tail(hits, n, max(delays) - min(delays) + slack_s, match.period_s)
    return min(
        1.0, 2 * min(near, tight)
    ), f"the time up to {_span(match.reach_s)} after a start is {share:.1%} of all time"


def _convinces(candidate: Candidate, match: Match, chance: float) -> bool:
    hits, n = len(match.hits), match.episodes
    direct = [hit for hit in match.hits if hit.is_direct]
    if any(r.harm.witness for hit in match.hits for r in hit.reaches):
        return True
    if candidate.is_unknown:
        return hits >= 3 and len(direct) * 2 >= hits and chance <= _ALPHA_UNKNOWN
    by_path = any(r.by_path for hit in match.hits for r in hit.reaches)
    if n == 1:
        return by_path and bool(direct) and _is_plain(candidate, match, match.hits[0])
    if hits < 2 or hits * 2 < n:
        return False
    if not by_path:
        is_update = any(r.effect.kind == "update" for hit in match.hits for r in hit.reaches)
        return (hits >= 3 or is_update) and chance <= _ALPHA_UNKNOWN
    caught = hits == n == len(direct) and all(
        hit.run.proof and hit.save and busy_run(hit.save, [hit.run], match.reach_s) for hit in match.hits
    )
    return chance <= (_ALPHA_CAUGHT if caught else _ALPHA_DIRECT if direct else _ALPHA)


def _is_plain(candidate: Candidate, match: Match, hit: Hit) -> bool:
    """One occurrence: the line says what was lost, the command can lose it, and more than the clock ties the two."""
    best = max(hit.reaches, key=lambda r: r.strength)
    if best.strength < 0.3 or hit.delay_s > ONE_RUN_S + candidate.schedule.spread_s:
        return False
    during = hit.save is not None and busy_run(hit.save, [hit.run], hit.delay_s) is not None
    named = bool(best.harm.path) and best.by_path
    return bool(hit.run.proof) or during or (named and match.period_s >= 3 * ONE_RUN_S)


def _undated(candidate: Candidate, runs: Sequence[ScheduleRun], tried: int, site: Site) -> Culprit | None:
    """Harm without any time: only a loss by name of what training saved, or the tool's own word, ties it."""
    sure = [
        r
        for r in candidate.reaches
        if r.by_path
        and (r.harm.direct or r.harm.witness)
        and r.strength >= 0.5
        and not r.effect.min_age_s
        and r.harm.path
    ]
    known = [r for r in sure if r.harm.witness or any(overlaps(w.path, r.harm.path or "") for w in candidate.writes)]
    if not known or candidate.is_unknown:
        return None
    own = tuple(run for run in runs if run.schedule == candidate.schedule)
    match = Match((), len(known), own, 86400.0)
    picked = Candidate(candidate.schedule, tuple(known), candidate.writes)
    return _culprit(picked, match, 1.0, "no harm line has a time", tried, site)


def _culprit(candidate: Candidate, match: Match, chance: float, how: str, tried: int, site: Site) -> Culprit:
    reaches = [r for hit in match.hits for r in hit.reaches] or list(candidate.reaches)
    harms = tuple(r.harm for r in reaches)
    used = {hit.run.at for hit in match.hits}
    quiet = [run for run in match.runs if run.at not in used]
    busy = {run.at for w in candidate.writes if (run := busy_run(w, match.runs, match.reach_s)) is not None}
    exposed = [run for run in quiet if run.at in busy]
    racks = {rack for harm in harms if (rack := harm.rack or site.rack(harm.host))}
    witness = any(harm.witness for harm in harms)
    bits = _bits(candidate, match, reaches, chance, len(exposed))
    return Culprit(
        schedule=candidate.schedule,
        effects=tuple(dict.fromkeys(r.effect for r in sorted(reaches, key=lambda r: -r.strength))),
        harms=harms,
        runs=tuple(hit.run for hit in match.hits),
        confidence_bits=bits + _rack_bits(candidate.schedule, harms, racks, site),
        p_coincidence=chance,
        quiet_nights=len(quiet),
        reasons=_reasons(candidate, match, reaches, (chance, how, tried), (len(quiet), len(exposed))),
        rack=min(racks) if len(racks) == 1 else None,
        hosts=tuple(sorted({harm.host for harm in harms if harm.host})),
        tried=tried,
        quiet_exposed=len(exposed),
        delays_s=tuple(hit.delay_s for hit in match.hits),
        witness=witness,
    )


def _bits(candidate: Candidate, match: Match, reaches: Sequence[Reach], chance: float, exposed: int) -> float:
    best = max(r.strength for r in reaches)
    proofs = [hit.run.proof is not None for hit in match.hits]
    bits = min(20.0, -log2(max(chance, 1e-9))) + 6 * best
    bits += 4.0 * any(r.harm.direct for r in reaches) + 12.0 * any(r.harm.witness for r in reaches)
    bits += 2.0 * (sum(proofs) / len(proofs)) if proofs else 0.0
    bits -= 4.0 if candidate.is_unknown else 0.0
    return bits - 1.5 * (match.episodes - len(match.hits)) * bool(match.hits) - min(6.0, 1.0 * exposed)


def _rack_bits(schedule: Schedule, harms: Sequence[Harm], racks: set[str], site: Site) -> float:
    if any(short(harm.host) == short(schedule.host) is not None for harm in harms):
        return 2.0
    mine = site.rack(schedule.host)
    return 1.5 if mine is not None and racks == {mine} else -1.0 if mine is not None and racks else 0.0


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _reasons(
    candidate: Candidate,
    match: Match,
    reaches: Sequence[Reach],
    odds: tuple[float, str, int],
    quiet: tuple[int, int],
) -> tuple[str, ...]:
    chance, how, tried = odds
    effect = max(reaches, key=lambda r: r.strength).effect
    where = f" on {candidate.schedule.host}" if candidate.schedule.host else ""
    via = f" (in {effect.script}:{effect.line})" if effect.script else ""
    does = "runs a program that the bundle does not hold" if effect.kind == "unknown" else (
        f"{effect.tool} {effect.option} can {effect.kind} {effect.path or 'software in use'}".replace("  ", " ")
    )  # fmt: skip
    out = [f"`{candidate.schedule.expr or 'scheduled'}`{where}: {does}{via}."]
    if match.hits:
        delays = [hit.delay_s for hit in match.hits]
        least, most = _span(min(delays)), _span(max(delays))
        apart = least if least == most else f"{least} to {most}"
        proven = sum(hit.run.proof is not None for hit in match.hits)
        seen = f"{len(delays)} of {match.episodes} occurrences of harm"
        out.append(f"{seen} came {apart} after a start ({proven} starts logged).")
        out.append(f"Chance of coincidence {chance:.2g}, corrected for {tried} schedules that reach the data: {how}.")
    if quiet[0] and match.hits:
        busy = "none of them during a save" if not quiet[1] else f"{quiet[1]} of them during a save"
        out.append(
            f"{quiet[0]} starts without harm, {busy}." if candidate.writes else f"{quiet[0]} starts without harm."
        )
    out += [f"The tool itself says it removed {h.witness}." for h in (r.harm for r in reaches) if h.witness][:1]
    return tuple(out)
