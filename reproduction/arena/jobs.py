"""Jobs of the contest of methods: functions of plain settings, with the same result on every engine but for seconds.

`measure` discovers the options of one method on one domain and measures them on the known table; `cover` lets the
method work online, from what it has seen so far.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.discovery import discover
from eigenoptions.discovery.exploration import cycle
from eigenoptions.discovery.methods import get_method as declared
from eigenoptions.discovery.methods.covering_eigen import rod_cycle
from eigenoptions.evaluation import best_option_chance, diffusion_estimate, diffusion_time
from eigenoptions.learning import q_learning
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet
from reproduction.arena.domains import build
from reproduction.tables import Row

advice = logging.getLogger("eigenoptions")

Job = Mapping[str, Any]

# The competitor without options.
NONE = "none"
# Discovery that takes less is timed twice, since the first call may compile.
TIMED_TWICE_BELOW_SECONDS = 2.0
# Seeds of the walks that choose the chance of an option, and of those that are reported.
TUNING_SEED, REPORTED_SEED = 1, 2
# Options whose policies are returned, for pictures.
PICTURED = 4
# Fewest steps of a round of `cover`; it has twice as many as there are states.
MIN_ROUND = 100


def measure(job: Job) -> dict[str, Any]:
    """Measures of the options of one method on one domain, by number of options.

    Returns ``rows`` (one per number of options), ``learning`` (one per number and chance), ``seconds`` of discovery,
    the first policies, and ``refused``, why the method has no options there. With a seed above 0, ``same`` is True
    and all else is empty where the method draws nothing, so that the options are those of seed 0.

    >>> job = {"domain": "i-maze", "method": "eigen", "seed": 0, "counts": [2], "learn": [], "exact_states": 500}
    >>> [sorted(row) for row in measure(job)["rows"]][0][:4]
    ['best', 'chance', 'cost', 'ends']
    """
    mdp = build(job["domain"])
    found: dict[str, Any] = {"same": False, "refused": "", "rows": [], "learning": [], "seconds": nan}
    found |= {"policy": None, "labels": []}
    if job["method"] == NONE:
        return found | {"rows": [_row(mdp, None, job)], "learning": _learning(mdp, {0: None}, [], job)}
    most = declared(job["method"]).max_states
    if most is not None and mdp.n_states > most:
        return found | {"refused": f"more than {most:,} states"}
    if job["seed"] and _draws_nothing(mdp, job):
        return found | {"same": True}
    sets, refused = _sets(mdp, job)
    if not sets:
        return found | {"refused": refused}
    rows = [_row(mdp, options, job) for options in sets.values()]
    first = next((o for n, o in sets.items() if n >= PICTURED), next(iter(sets.values())))[:PICTURED]
    return found | {
        "rows": rows,
        "learning": _learning(mdp, sets, rows, job),
        "seconds": _seconds(mdp, job, 8 if 8 in sets else max(sets)),
        "policy": np.asarray(first.policy, dtype=np.int8),
        "labels": list(first.labels),
    }


def cover(job: Job) -> list[float]:
    """Primitive steps until every state was seen, once per seed; inf where some were not seen in time.

    The walk never restarts, and each round derives options from all that was seen before. A method that explores on
    its own does it its own way.

    >>> job = {"domain": "i-maze", "method": "none", "seeds": [0], "online": 4, "chance": 0.05, "longest": 1000}
    >>> 0 < cover(job)[0] < 1000
    True
    """
    return [_cover(build(job["domain"]), job, seed) for seed in job["seeds"]]


def ends(mdp: MDP, policy: NDArray[Any]) -> NDArray[np.int64]:
    """States where an option ends that has begun elsewhere: those where it stops and that its moves enter.

    >>> from eigenoptions.mdp import maze
    >>> ends(maze("S...."), np.array([1, 1, -1, -1, -1])).tolist()
    [2]
    """
    acting = np.flatnonzero(policy >= 0)
    entered = np.unique(mdp.transition[acting * mdp.n_actions + policy[acting]].indices)
    found: NDArray[np.int64] = entered[policy[entered] < 0]
    return found


def _discover(mdp: MDP, job: Job, n: int | None) -> OptionSet:
    # The page says where options stop; the advice of `discover` would be printed once per job.
    advice.addFilter(_nothing)
    try:
        options: OptionSet = discover(mdp, n, job["method"], rng=job["seed"])
    finally:
        advice.removeFilter(_nothing)
    return options


def _nothing(_: logging.LogRecord) -> bool:
    return False


def _draws_nothing(mdp: MDP, job: Job) -> bool:
    """Whether the options of a seed are those of seed 0."""
    try:
        mine, other = (_discover(mdp, {**job, "seed": seed}, job["counts"][0]) for seed in (job["seed"], 0))
    except ValueError:
        return True
    return np.array_equal(mine.policy, other.policy)


def _sets(mdp: MDP, job: Job) -> tuple[dict[int, OptionSet], str]:
    """Options for each number of them, up to all there are; and why there are no more."""
    sets: dict[int, OptionSet] = {}
    for n in job["counts"]:
        try:
            found, reason = _discover(mdp, job, n), ""
        except ValueError as error:
            reason = str(error)
            try:
                found = _discover(mdp, job, None)
            except ValueError:
                return sets, reason
        if len(found):
            sets[len(found)] = found
        if len(found) < n:
            return sets, reason
    return sets, ""


def _seconds(mdp: MDP, job: Job, n: int) -> float:
    """CPU seconds of the discovery of n options."""
    took = inf
    for _ in range(2):
        start = time.process_time()
        _discover(mdp, job, n)
        took = min(took, time.process_time() - start)
        if took > TIMED_TWICE_BELOW_SECONDS:
            break
    return took


def _row(mdp: MDP, options: OptionSet | None, job: Job) -> Row:
    """Diffusion times, lengths, ends and cost of a set of options."""
    columns = ("uniform", "best", "chance", "low", "high", "length", "stops", "ends", "starts", "cost")
    row: Row = {"n": 0 if options is None else len(options), **dict.fromkeys(columns, nan), "note": ""}
    if options is not None:
        stops = np.concatenate([ends(mdp, policy) for policy in options.policy])
        row["length"] = float(options.mean_length.mean())
        row["stops"] = len(stops) / len(options)
        row["ends"] = len(np.unique(stops))
        row["starts"] = float(options.initiation.mean())
        row["cost"] = _cost(mdp, options)
    exact = mdp.n_states <= job["exact_states"]
    try:
        return row | (_exact(mdp, options) if exact else _estimate(mdp, options, job))
    except ValueError as error:
        # An option of uncertain moves that never ends.
        return row | {"note": str(error)}


def _exact(mdp: MDP, options: OptionSet | None) -> Row:
    if options is None:
        alone = diffusion_time(mdp)
        return {"uniform": alone, "best": alone, "chance": 0.0}
    best = best_option_chance(mdp, options)
    return {"uniform": best.uniform_diffusion_time, "best": best.diffusion_time, "chance": best.chance}


def _estimate(mdp: MDP, options: OptionSet | None, job: Job) -> Row:
    """Diffusion time by sampling, at the chance that is best on other walks than those reported."""
    how = {"max_steps": job["walk_steps"]}
    tried: dict[float, float] = {}
    for chance in job["chances"] if options is not None else [0.0]:
        try:
            tried[chance] = diffusion_estimate(
                mdp, options, option_chance=chance, walks=2, rng=TUNING_SEED, **how
            ).mean
        except ValueError:
            # Some state was not touched in time, and with a higher chance of an option none will be sooner.
            break
    if not tried:
        return {"note": f"no walk of {job['walk_steps']:,} steps touched every state"}
    chance = min(tried, key=lambda c: tried[c])
    found = diffusion_estimate(
        mdp, options, option_chance=chance, walks=job["walks"], rng=REPORTED_SEED, **how
    )
    return {"best": found.mean, "low": found.low, "high": found.high, "chance": chance}


def _cost(mdp: MDP, options: OptionSet) -> float:
    """Reward per step of runs of options that begin and end where a step costs least, which they could avoid."""
    assert mdp.reward is not None
    cheap = mdp.reward == mdp.reward.max()
    if cheap.all() or mdp.successors is None:
        return nan
    paid = steps = 0.0
    for row in options.policy:
        for first in np.flatnonzero(cheap & (row >= 0)).tolist():
            s, total, length = first, 0.0, 0
            while row[s] >= 0 and length <= mdp.n_states:
                total, length, s = total + float(mdp.reward[s]), length + 1, int(mdp.successors[s, row[s]])
            if cheap[s]:
                paid, steps = paid + total, steps + length
    return paid / steps if steps else nan


def _learning(
    mdp: MDP, sets: Mapping[int, OptionSet | None], rows: list[Row], job: Job
) -> list[dict[str, Any]]:
    """Mean return of each run of Q-learning, averaged over goals; per number of options, and chance of an option."""
    if mdp.n_states > job["exact_states"] or not job["learn"]:
        return []
    chances = {row["n"]: row["chance"] for row in rows}
    numbers = {max((m for m in sets if m <= wanted), default=min(sets)) for wanted in job["learn"]}
    found = []
    for n in sorted(numbers):
        for how in ("uniform", "best") if n else ("uniform",):
            chance = None if how == "uniform" else chances[n]
            if chance is None or np.isfinite(chance):
                found.append({"n": n, "how": how, "returns": _returns(mdp, sets[n], chance, job)})
    return found


def _returns(mdp: MDP, options: OptionSet | None, chance: float | None, job: Job) -> NDArray[np.float64]:
    """``(runs,)`` mean evaluation return over episodes and goals."""
    others = np.delete(np.arange(mdp.n_states), mdp.start or 0)
    goals = others[np.unique(np.linspace(0, len(others) - 1, job["goals"]).astype(int))]
    total = np.zeros(job["runs"])
    for goal in goals.tolist():
        record = q_learning(
            mdp,
            options,
            runs=job["runs"],
            episodes=job["episodes"],
            max_steps=mdp.n_states,
            rng=np.random.SeedSequence(job["seed"], spawn_key=(goal,)),
            option_chance=chance,
            goal=goal,
        )
        total += record.returns.mean(axis=1)
    return total / len(goals)


def _cover(mdp: MDP, job: Job, seed: int) -> float:
    """Steps until every state was seen; inf where some were not seen in time."""
    seen = np.zeros(mdp.n_states, dtype=np.bool_)
    seen[mdp.start] = True
    steps, most = 0, job["longest"] * mdp.n_states
    for entered in _entered(mdp, job, seed):
        states, at = np.unique(entered, return_index=True)
        last = int(at[~seen[states]].max(initial=-1))
        seen[states] = True
        if seen.all():
            return float(steps + last + 1)
        steps += len(entered)
        if steps >= most:
            break
    return inf


def _entered(mdp: MDP, job: Job, seed: int) -> Iterator[NDArray[np.int64]]:
    """States entered, round by round."""
    steps = max(MIN_ROUND, 2 * mdp.n_states)
    if job["method"] == NONE:
        rounds = cycle(mdp, n_options=2, steps=steps, option_chance=0.0, rng=seed)
    else:
        chosen = declared(job["method"])
        if chosen.name == "covering-eigen":
            return (latest.entered for latest in rod_cycle(mdp, rng=seed))
        how: dict[str, Any] = {"rewards": mdp.reward} if chosen.needs_rewards else {}
        rounds = cycle(
            mdp,
            n_options=job["online"],
            steps=steps,
            method=chosen.name,
            option_chance=job["chance"],
            rng=seed,
            **how,
        )
    return (snapshot.transitions.next_obs for snapshot in rounds)
