"""Environment steps per CPU second of learning with options, against a plain loop over NumPy arrays.

Run ``python benchmarks/learning.py``. Both are timed in this process on four rooms, learning and evaluation
together, at the paper's settings (500 episodes of 100 steps): 100 runs of ours, one run of the loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

import eigenoptions as eo
from eigenoptions.learning import LearningRecord, intra_option_q_learning, q_learning, smdp_q_learning
from eigenoptions.options import OptionSet

TARGET, TARGET_RATIO = 50.0, 100.0


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
    """Million steps per CPU second, the best of some repeats: other processes only ever slow one down."""
    best = 0.0
    for _ in range(repeats):
        began = time.process_time()
        steps = work()
        best = max(best, steps / (time.process_time() - began) / 1e6)
    return best


def steps_of(learner: Callable[..., LearningRecord], mdp: eo.MDP, options: OptionSet | None) -> int:
    return learner(mdp, options, runs=100, episodes=500, max_steps=100).n_steps


def main() -> None:
    mdp = eo.maze("four-rooms")
    learners = (q_learning, smdp_q_learning, intra_option_q_learning)
    print("million environment steps per CPU second, four rooms, one core")
    print("options  q_learning  plain loop   ratio    smdp  intra-option  target of q_learning")
    for n in (0, 8, 64):
        options = eo.discover(mdp, n_options=n) if n else None
        rates = []
        for learner in learners:
            learner(mdp, options, runs=1, episodes=1)  # compiled before the clock starts
            rates.append(rate(partial(steps_of, learner, mdp, options), 3))
        ours, smdp, intra = rates
        loop = rate(partial(plain_loop, mdp, options, 500), 2)
        met = "met" if ours >= TARGET and ours / loop >= TARGET_RATIO else "MISSED"
        print(
            f"{n:7d} {ours:11.1f} {loop:11.3f} {ours / loop:6.0f}x {smdp:7.1f} {intra:13.1f}  "
            f"{TARGET:.0f} and {TARGET_RATIO:.0f}x: {met}"
        )


if __name__ == "__main__":
    main()
