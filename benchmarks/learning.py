"""Environment steps per CPU second of learning with options, against a plain loop over NumPy arrays.

Run ``python benchmarks/learning.py``. Both are timed in this process on four rooms, learning and evaluation
together, at the paper's settings (500 episodes of 100 steps): 100 runs of ours, one run of the loop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import record

import eigenoptions as eo
from eigenoptions.learning import LearningRecord, intra_option_q_learning, q_learning, smdp_q_learning
from eigenoptions.options import OptionSet

TARGET, TARGET_RATIO = 50e6, 100.0
RUNS = 2 if record.QUICK else 100


def plain_loop(mdp: eo.MDP, options: OptionSet | None, episodes: int) -> int:
    """Q-learning as one writes it first: arrays, indexing, a generator. The number of steps."""
    rng = np.random.default_rng(0)
    successors, n_actions = mdp.successors, mdp.n_actions
    policy = np.empty((0, mdp.n_states), dtype=int) if options is None else options.policy
    available = [np.flatnonzero(policy[:, s] >= 0) for s in range(mdp.n_states)]
    Q = np.zeros((mdp.n_states, n_actions))
    steps = 0
    for _ in range(episodes):
        s, option = mdp.start, -1
        for _ in range(100):
            if option < 0 or policy[option, s] < 0:
                choice = rng.integers(n_actions + len(available[s]))
                option = -1 if choice < n_actions else available[s][choice - n_actions]
            a = choice if option < 0 else policy[option, s]
            t = successors[s, a]
            Q[s, a] += 0.1 * ((t == mdp.goal) + 0.9 * Q[t].max() - Q[s, a])
            s = t
            steps += 1
            if s == mdp.goal:
                break
        s = mdp.start
        for _ in range(100):
            if rng.random() < 0.01:
                a = rng.integers(n_actions)
            else:
                ties = np.flatnonzero(Q[s] == Q[s].max())
                a = ties[rng.integers(len(ties))]
            s = successors[s, a]
            steps += 1
            if s == mdp.goal:
                break
    return steps


def rate(work: Callable[[], int], repeats: int) -> float:
    """Steps per CPU second, the best of some repeats."""
    spent, steps = record.seconds(work, repeats)
    return steps / spent


def steps_of(learner: Callable[..., LearningRecord], mdp: eo.MDP, options: OptionSet | None) -> int:
    return learner(mdp, options, runs=RUNS, episodes=500, max_steps=100).n_steps


def main() -> int:
    mdp = eo.maze("four-rooms")
    learners = {"smdp": smdp_q_learning, "intra-option": intra_option_q_learning}
    print("environment steps per CPU second, four rooms, one core")
    for n in (0,) if record.QUICK else (0, 8, 64):
        options = eo.discover(mdp, n_options=n) if n else None
        q_learning(mdp, options, runs=1, episodes=1)  # compiled before the clock starts
        ours, loop = 0.0, 0.0
        for _ in range(1 if record.QUICK else 2):  # in turns
            ours = max(ours, rate(partial(steps_of, q_learning, mdp, options), 2))
            loop = max(loop, rate(partial(plain_loop, mdp, options, 20 if record.QUICK else 500), 1))
        ratio = record.row(f"Q-learning, four rooms, {n} options", ours, loop, "NumPy loop", unit="steps/s")
        if not record.QUICK:  # a run of milliseconds is mostly its start
            record.aim(f"Q-learning, {n} options, against a NumPy loop", ratio, least=TARGET_RATIO)
            record.aim(f"Q-learning, {n} options", ours, least=TARGET, unit="steps/s")
        for name, learner in learners.items():
            learner(mdp, options, runs=1, episodes=1)
            speed = rate(partial(steps_of, learner, mdp, options), 2)
            record.fact(f"{name} Q-learning, four rooms, {n} options", speed, "steps/s")
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
