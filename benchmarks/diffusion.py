"""All 65 diffusion times of four rooms, against a compiled naive solver: one LU for each goal and option count.

Run ``python benchmarks/diffusion.py``. Both are timed in this process, in CPU seconds. Errors are against elimination
without subtraction (GTH). Then a corridor where LU has no digit left, and a larger maze.
"""

from __future__ import annotations

import sys

import numpy as np
import record

import eigenoptions as eo
from eigenoptions import evaluation
from eigenoptions.evaluation.exact import Walk
from eigenoptions.mdp.maps import rooms_map

TARGET_RATIO, TARGET_ERROR = 10.0, 1e-8


@record.compiled
def naive(nxt, step):  # type: ignore[no-untyped-def]
    """Diffusion time the plain way: for each goal write the equations down and solve them.

    ``step (k, S)`` is the next state under each option, -1 where it stops.
    """
    n, n_actions = nxt.shape
    total = 0.0
    for goal in range(n):
        M, c = np.zeros((n, n)), np.zeros(n)
        for s in range(n):
            if s == goal:
                M[s, s] = 1.0
                continue
            for a in range(n_actions):
                M[s, s] += 1.0
                M[s, nxt[s, a]] -= 1.0
                c[s] += 1.0
            for o in range(len(step)):
                if step[o, s] < 0:
                    continue
                t = s
                while t != goal and step[o, t] >= 0:
                    t = step[o, t]
                    c[s] += 1.0
                M[s, s] += 1.0
                M[s, t] -= 1.0
        total += np.linalg.solve(M, c).sum()
    return total / (n * (n - 1))


def without_subtraction(mdp: eo.MDP, options: eo.OptionSet) -> np.ndarray:
    walk = Walk(mdp, options)
    n = mdp.n_states
    start = np.full((1, n), 1.0 / (n - 1))
    return np.array([walk._accurate(m, np.arange(n), start).mean() for m in range(len(options) + 1)])


def four_rooms() -> None:
    mdp = eo.maze("four-rooms")
    most = 3 if record.QUICK else 64
    purposes = eo.eigenpurposes(eo.spectrum(eo.graph(mdp)), skip_zero=False)[:most]
    options = eo.solve(mdp, purposes)
    nxt = mdp.successors
    step = np.where(options.policy >= 0, nxt[np.arange(104), np.maximum(options.policy, 0)], -1)
    naive(nxt, step[:1])  # compiled before the clock starts
    evaluation.diffusion_curve(mdp, options[:2])
    fast, slow = record.race(
        lambda: evaluation.diffusion_curve(mdp, options),
        lambda: [naive(nxt, step[:m]) for m in range(most + 1)],
        1 if record.QUICK else 3,
        4,
    )
    ours = evaluation.diffusion_curve(mdp, options)
    plain = np.array([naive(nxt, step[:m]) for m in range(most + 1)])
    alone, true = record.clock(lambda: without_subtraction(mdp, options))
    print(f"four rooms, 0 to {most} eigenoptions, all goals")
    print("options  diffusion time   error of ours   of naive LU")
    for m in (m for m in (0, 1, 2, 3, 4, 5, 8, 16, 32, 64) if m <= most):
        print(
            f"{m:7d}  {true[m]:14.2f}   {abs(ours[m] / true[m] - 1):13.1e}   {abs(plain[m] / true[m] - 1):11.1e}"
        )
    error, worst = abs(ours / true - 1).max(), abs(plain / true - 1).max()
    what = f"all {most + 1} diffusion times of four rooms"
    note = f"relative error {error:.0e}, theirs {worst:.0e}; elimination alone {alone:.2f} s"
    ratio = record.row(what, fast, slow, "compiled LU, one a goal", note=note)
    record.aim(f"{what}, against compiled LU", ratio, least=TARGET_RATIO / (5 if record.QUICK else 1))
    record.aim(f"{what}, largest relative error", error, most=TARGET_ERROR, unit="")


def corridor() -> None:
    """Back to the start with chance 1/5 at each decision: the last cell is 2.6^n steps away, a whole number."""
    print("\ncorridor with one option back to its start: steps from end to end")
    print("cells         exact            ours        naive LU")
    for n in (16, 32, 48):
        mdp = eo.maze("." * n)
        back = eo.OptionSet(np.array([[-1] + [3] * (n - 1)]), 4)
        ours = evaluation.hitting_times(mdp, back)[0, -1]
        M, c = np.zeros((n - 1, n - 1)), 4.0 + np.arange(n - 1)
        for s in range(n - 1):
            for t in {s - 1, s + 1} if s == 0 else (s - 1, s + 1, 0):
                M[s, s] += t >= 0
                if 0 <= t < n - 1:
                    M[s, t] -= 1.0
        exact = [0, 4]  # h(0) - h(s), in whole numbers, from the equations of 0 and s
        for s in range(1, n - 1):
            exact.append(3 * exact[s] - exact[s - 1] + 4 + s)
        print(f"{n:5d}  {float(exact[-1]):12.6e}    {ours:12.6e}    {np.linalg.solve(M, c)[0]:12.6e}")


def larger() -> None:
    mdp = eo.maze(rooms_map(3, 3, 11, centred=True))
    options = eo.discover(mdp, n_options=32)
    print(f"\nnine rooms, {mdp.n_states} states, all goals")
    print("options  diffusion time  seconds  goals left to elimination")
    for m in (0, 1, 2, 4, 8, 16, 32):
        walk = Walk(mdp, options[:m])
        left = len(walk._linear(mdp.successors, m)[1])
        seconds, value = record.clock(lambda m=m: evaluation.diffusion_time(mdp, options[:m]))
        print(f"{m:7d}  {value:14.4g}  {seconds:7.2f}  {left:6d} of {mdp.n_states}")
    record.fact(f"diffusion time of nine rooms, {mdp.n_states:,} states, 32 options", seconds, "s")


def main() -> int:
    four_rooms()
    corridor()
    if not record.QUICK:
        larger()
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
