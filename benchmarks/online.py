"""Primitive steps until 90% of a table were seen, by ways to explore online: ``python benchmarks/online.py``.

Domains are those of the arena and a tiling of 10 x 10 rooms of 6 x 6 states (3,780 states); episodes never end, and the
walk begins at the start. Ways: a random walk; `cycle` with options (16 eigenoptions, chance 0.05); optimistic
Q-learning with a count bonus; ``cycle(explore="frontier")``; and, as the bound of counting in tables, the
shortest way to the nearest untried action in what is known (in the manner of R-max). Median of ten seeds with its exact
95% interval (order statistics). ``--tune`` shows how the settings of the bonus were chosen, on the seeds 100 to 104;
``--figure`` draws the share of states seen over steps on the tiling, for docs/agents.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import ceil, inf

import matplotlib.pyplot as plt
import numpy as np
import record
from reproduction.arena.domains import build

import eigenoptions as eo
from eigenoptions.mdp.maps import rooms_map

TILING = "rooms of 6x6"
OTHERS = ("four-rooms", "perfect-15x15", "one-way", "slippery", "frozen-lake", "taxi")
SHARE, SEEDS = 0.9, range(3) if record.QUICK else range(10)
# A run that has not seen the share after this many steps per state counts with infinity.
LONGEST = 20 if record.QUICK else 400
# Step size, discount, and what is counted: states entered (0) or pairs of state and action (1). Chosen by --tune.
BONUS = (1.0, 0.99, 0)
TUNED_ON = range(100, 105)
# Least median of a bonus for pairs on the tiling in an earlier measurement: what exploration online has to beat.
AIM_STEPS = 39_500


@record.compiled
def landed(indptr, indices, data, row, rng):
    """Entry of a csr row that a random move takes."""
    u, i = rng.random(), indptr[row]
    while i < indptr[row + 1] - 1 and u >= data[i]:
        u -= data[i]
        i += 1
    return i


@record.compiled
def by_bonus(table, n_actions, start, want, most, rng, alpha, gamma, pairs):
    """First steps in each state of greedy Q-learning, rewarded by one over the root of a count, from high values."""
    indptr, indices, data = table
    n = (len(indptr) - 1) // n_actions
    q = np.full((n, n_actions), 1.0 / (1.0 - gamma))
    counts, when, left = np.zeros(n * n_actions), np.full(n, np.inf), want - 1
    when[start], s, step = 0, start, 0
    while left > 0 and step < most:
        best = np.flatnonzero(q[s] == q[s].max())
        a = best[int(rng.random() * len(best))]
        row = s * n_actions + a
        t = indices[landed(indptr, indices, data, row, rng)]
        place = row if pairs else t
        counts[place] += 1
        q[s, a] += alpha * (1.0 / np.sqrt(counts[place]) + gamma * q[t].max() - q[s, a])
        s, step = t, step + 1
        if when[s] == np.inf:
            when[s], left = step, left - 1
    return when


@record.compiled
def by_plans(table, n_actions, start, want, most, rng):
    """First steps in each state by the shortest known way to an untried action; a random action where there is none."""
    indptr, indices, data = table
    n = (len(indptr) - 1) // n_actions
    tried, met = np.zeros(n * n_actions, np.bool_), np.zeros(len(indices), np.bool_)
    queue, first, mark = np.empty(n, np.int64), np.empty(n, np.int64), np.full(n, -1)
    when, left = np.full(n, np.inf), want - 1
    when[start], s, step = 0, start, 0
    while left > 0 and step < most:
        queue[0], mark[s], first[s] = s, step, -1
        head, end, a = 0, 1, -1
        while head < end and a < 0:
            x = queue[head]
            head += 1
            shift = int(rng.random() * n_actions)
            for k in range(n_actions):
                b = (k + shift) % n_actions
                row = x * n_actions + b
                if not tried[row]:
                    a = b if x == s else first[x]
                    break
                for i in range(indptr[row], indptr[row + 1]):
                    t = indices[i]
                    if met[i] and mark[t] != step:
                        queue[end], mark[t], first[t] = t, step, b if x == s else first[x]
                        end += 1
        if a < 0:
            a = int(rng.random() * n_actions)
        i = landed(indptr, indices, data, s * n_actions + a, rng)
        tried[s * n_actions + a], met[i] = True, True
        s, step = indices[i], step + 1
        if when[s] == np.inf:
            when[s], left = step, left - 1
    return when


def domain(name: str) -> eo.MDP:
    if name == TILING:
        return replace(eo.maze(rooms_map(10, 10, size=6)), start=0, goal=None)
    return build(name)


def table(mdp: eo.MDP) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    P = mdp.transition
    return P.indptr.astype(np.int64), P.indices.astype(np.int64), P.data


def by_cycle(mdp: eo.MDP, seed: int, **how: object) -> np.ndarray:
    """First step in each state; inf where it was not entered before the share was seen, or in time."""
    when = np.full(mdp.n_states, inf)
    when[mdp.start] = 0
    steps, want = max(100, 2 * mdp.n_states // 3), ceil(SHARE * mdp.n_states)
    for snapshot in eo.cycle(mdp, steps=steps, rng=seed, **how):
        states, at = np.unique(snapshot.transitions.next_obs, return_index=True)
        when[states] = np.minimum(when[states], snapshot.steps - steps + at + 1)
        if np.isfinite(when).sum() >= want or snapshot.steps >= LONGEST * mdp.n_states:
            return when
    raise AssertionError


def bonus(mdp: eo.MDP, seed: int, setting: tuple[float, float, int] = BONUS) -> np.ndarray:
    want, most, rng = ceil(SHARE * mdp.n_states), LONGEST * mdp.n_states, np.random.default_rng(seed)
    return by_bonus(table(mdp), mdp.n_actions, mdp.start, want, most, rng, *setting)


def plans(mdp: eo.MDP, seed: int) -> np.ndarray:
    want, most, rng = ceil(SHARE * mdp.n_states), LONGEST * mdp.n_states, np.random.default_rng(seed)
    return by_plans(table(mdp), mdp.n_actions, mdp.start, want, most, rng)


def within(when: np.ndarray) -> float:
    """Steps until the share of states was seen."""
    return float(np.sort(when)[ceil(SHARE * len(when)) - 1])


WAYS: dict[str, Callable[[eo.MDP, int], np.ndarray]] = {
    "random walk": lambda mdp, seed: by_cycle(mdp, seed, option_chance=0.0, n_options=2),
    "cycle, options": by_cycle,
    "count bonus": bonus,
    "cycle, frontier": lambda mdp, seed: by_cycle(mdp, seed, explore="frontier", n_options=2),
    "plans (bound)": plans,
}


def interval(values: list[float]) -> str:
    from scipy.stats import quantile_test

    found = quantile_test(values, p=0.5).confidence_interval(0.95)
    return f"{np.median(values):,.0f} ({found.low:,.0f} to {found.high:,.0f})"


def tune() -> None:
    """Median steps of the count bonus over the tuning seeds, per domain, and the geometric mean over domains."""
    for setting in product((0.1, 0.3, 1.0), (0.9, 0.95, 0.99), (0, 1)):
        medians = [
            np.median([within(bonus(domain(name), s, setting)) for s in TUNED_ON])
            for name in (TILING, *OTHERS)
        ]
        mean = np.exp(np.mean(np.log(medians)))
        print(setting, *(f"{x:,.0f}" for x in medians), f"mean {mean:,.0f}", flush=True)


def draw() -> None:
    """Median share of states seen over steps on the tiling."""
    mdp, steps = domain(TILING), np.linspace(0, 60_000, 121)
    lines = {}
    # The line of the bound would hide that of the frontier.
    for way, explored in list(WAYS.items())[:-1]:
        whens = [np.sort(explored(mdp, seed)) for seed in SEEDS]
        shares = [np.searchsorted(when, steps, side="right") / mdp.n_states for when in whens]
        # A run ends with the share.
        lines[way] = np.where(np.median(shares, axis=0) < SHARE, np.median(shares, axis=0), np.nan)
    figure, ax = plt.subplots(figsize=(5, 3), layout="constrained")
    eo.plots.draw_curves(ax, steps, lines)
    ax.set(xlabel="primitive steps", ylabel="share of states seen")
    ax.legend()
    eo.plots.save_figure(figure, "online.svg")


def main() -> int:
    if "--figure" in sys.argv:
        draw()
        return 0
    if "--tune" in sys.argv:
        tune()
        return 0
    for name in ("four-rooms",) if record.QUICK else (TILING, *OTHERS):
        mdp = domain(name)
        print(f"| {name} | {mdp.n_states:,} |", end="", flush=True)
        found = {}
        for way, steps in WAYS.items():
            found[way] = [within(steps(mdp, seed)) for seed in SEEDS]
            print(f" {interval(found[way])} |", end="", flush=True)
        print()
        median = {way: float(np.median(values)) for way, values in found.items()}
        ours, what = median["cycle, frontier"], f"{name}: steps to 90% of states"
        record.row(what, ours, median["count bonus"], "count bonus", unit="steps")
        record.aim(f"{what}, frontier over a random walk", ours / median["random walk"], most=1.0)
        if name == TILING:
            record.aim(what, ours, most=AIM_STEPS, unit="steps")
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
