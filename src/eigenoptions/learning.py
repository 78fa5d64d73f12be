"""Learning to reach a goal with options (paper, Section 4.3 and the multiple tasks of Appendix D).

The reward is 1 on reaching the goal, where the episode ends, and 0 before. Each learning episode is followed by one
greedy evaluation episode, which changes no value.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import (
    Record,
    check_choice,
    check_float,
    check_int,
    check_type,
    readonly,
    set_readonly,
)
from eigenoptions.mdp import MDP, distance
from eigenoptions.options import OptionSet
from eigenoptions.options.walks import make_tables, stack_policies

__all__ = ["q_learning", "LearningRecord"]

log = logging.getLogger("eigenoptions")

UPDATES = ("action", "smdp", "intra-option")
MAX_RECORD_BYTES = 2**33


@dataclass(frozen=True, eq=False, repr=False)
class LearningRecord(Record):
    """Returns, steps and values of every run and episode (Section 4.3).

    A return is not discounted: 1 if the episode reached the goal, else 0. The steps show how fast it did.

    Attributes
    ----------
    returns, learning_returns : (runs, episodes)
        Returns of the greedy evaluation after each learning episode, and of the learning episode itself.
    steps, evaluation_steps : (runs, episodes)
        Primitive steps of the learning episodes, and of the evaluations.
    q : (runs, S, A) or (runs, S, A + n)
        Final values of actions, and of options where they are learned; 0 where an option is not available.
    settings : dict
        Arguments of `q_learning` as plain values.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> record = q_learning(eo.maze("S..G"), runs=20, episodes=30)
    >>> record
    LearningRecord(update='action', 20 runs of 30 episodes: return 1.00 in the last)
    >>> low, high = record.band()
    >>> bool(low[-1] < record.mean()[-1] <= high[-1])
    True
    """

    returns: NDArray[np.float64]
    learning_returns: NDArray[np.float64]
    steps: NDArray[np.int32]
    evaluation_steps: NDArray[np.int32]
    q: NDArray[np.float64]
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("returns", "learning_returns", "steps", "evaluation_steps", "q"):
            object.__setattr__(self, name, readonly(getattr(self, name)))

    def mean(self, table: str = "returns") -> NDArray[np.float64]:
        """``(episodes,)`` mean over runs of the returns, or of another table of the record."""
        check_choice(
            "table", table, ("returns", "learning_returns", "steps", "evaluation_steps")
        )
        return np.asarray(getattr(self, table).mean(axis=0))

    def band(
        self, table: str = "returns", confidence: float = 0.95
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """``(episodes,)`` lower and upper end of Wilson's interval for the mean over runs of returns.

        Returns are 0 or 1; Wilson's interval for a proportion stays within 0..1 and has a width when all runs agree.
        """
        from scipy.stats import norm

        check_choice("table", table, ("returns", "learning_returns"))
        confidence = check_float("confidence", confidence, above=0, below=1)
        mean, n = self.mean(table), len(self.returns)
        z = float(norm.interval(confidence)[1])
        centre = (mean + z * z / (2 * n)) / (1 + z * z / n)
        half = (
            z / (1 + z * z / n) * np.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n))
        )
        # Rounding must not push the band past what it surrounds.
        return np.clip(centre - half, 0.0, mean), np.clip(centre + half, mean, 1.0)

    def __repr__(self) -> str:
        runs, episodes = self.returns.shape
        size = f"{runs} run{'s' * (runs != 1)} of {episodes} episode{'s' * (episodes != 1)}"
        last = f"return {self.returns[:, -1].mean():.2f} in the last"
        return f"LearningRecord(update={self.settings.get('update', '')!r}, {size}: {last})"


def q_learning(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    runs: int = 100,
    episodes: int = 500,
    max_steps: int = 100,
    update: str = "action",
    option_chance: float | None = None,
    stop_chance: float = 0.0,
    alpha: float = 0.1,
    gamma: float = 0.9,
    epsilon: float = 0.01,
    explore: float = 1.0,
    start: int | None = None,
    goal: int | None = None,
    rng: int | np.random.Generator | np.random.SeedSequence = 0,
    progress: Callable[[int, int], object] | None = None,
) -> LearningRecord:
    """Q-learning with options (Section 4.3).

    The behaviour chooses at random among the primitive actions and the available options, and follows an option until
    it terminates.

    Parameters
    ----------
    mdp : MDP
        Deterministic or stochastic dynamics.
    options : OptionSet, optional
        Options of this MDP; None for primitive actions only.
    runs : int, default 100
        Number of independent runs. Run i has child i of ``SeedSequence(rng)``, whatever their number.
    episodes, max_steps : int, default 500 and 100
        Learning episodes per run, and most primitive steps per episode; a running option is cut there.
    update : {"action", "smdp", "intra-option"}, default "action"
        What is learned.

        * ``"action"``, as in the paper: values of primitive actions only. Each step (s, a, r, s'), also inside an
          option, moves Q(s, a) towards ``r + gamma max Q(s', .)``.
        * ``"smdp"``: values of actions and options, each updated when it ends. A decision o made in s that ends after
          k steps in s' with the discounted reward R moves Q(s, o) towards ``R + gamma^k max Q(s', .)``. An option that
          is cut would have continued from s': its target is ``R + gamma^k Q(s', o)``.
        * ``"intra-option"``: the same values. Each step updates its action, and every option o that takes a in s
          towards ``r + gamma U(s', o)``, where U is Q(s', o) while o continues and ``max Q(s', .)`` where it terminates
          (Sutton, Precup and Singh, 1999). They converge sooner, because no option has to run to its end first.
    option_chance : float in [0, 1], optional
        Probability that a random decision is for an option where one is available. None: uniform over actions and
        options, as in the paper.
    stop_chance : float in [0, 1], default 0
        Probability that an option is also cut after each of its steps, where it was chosen at random while learning.
    alpha, gamma : float, default 0.1 and 0.9
        Step size and discount.
    epsilon : float, default 0.01
        Probability of a random decision in evaluation, which is otherwise greedy. Ties are broken at random, but an
        action goes before an option of the same value: an agent that knows nothing yet takes actions.
    explore : float, default 1
        The same probability while learning. With ``update="action"``, decisions are random where all values are 0.
    start, goal : int, optional
        Start and goal of the task; by default those of the MDP.
    rng : int, Generator or SeedSequence, default 0
        Draws everything; a Generator is drawn from anew at each call.
    progress : callable, optional
        Called with the number of runs done and in all.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> alone = q_learning(mdp, runs=10, episodes=100)
    >>> skilled = q_learning(mdp, eo.discover(mdp, n_options=64), runs=10, episodes=100)
    >>> bool(skilled.returns.mean() > alone.returns.mean())
    True
    """
    check_type("mdp", mdp, MDP, "make one with maze() or from_env()")
    check_choice("update", update, UPDATES)
    runs = check_int("runs", runs, maximum=2**31 - 1)
    episodes = check_int("episodes", episodes, maximum=2**31 - 1)
    max_steps = check_int("max_steps", max_steps, maximum=2**31 - 1)
    rates = {"alpha": alpha, "gamma": gamma, "epsilon": epsilon, "explore": explore}
    rates = {
        name: check_float(name, rate, minimum=0, maximum=1)
        for name, rate in rates.items()
    }
    check_float("alpha", alpha, above=0, maximum=1)
    start, goal = _check_task(mdp, start, goal, max_steps)
    policy = stack_policies(mdp, options)
    shape = runs, mdp.n_states, mdp.n_actions + len(policy) * (update != "action")
    size = 24 * runs * episodes + 8 * shape[0] * shape[1] * shape[2]
    if size > MAX_RECORD_BYTES:
        limit = f"the limit is {MAX_RECORD_BYTES / 1e9:.1f} GB"
        raise ValueError(
            f"{runs} runs of {episodes} episodes take {size / 1e9:.1f} GB, {limit}: compute fewer runs"
        )

    from eigenoptions._kernels import learning as kernels

    root = _make_seed_sequence(rng)
    tables = make_tables(mdp, policy, option_chance, stop_chance)
    choices = tables[1]
    task, learning_rates = kernels.Task(start, goal, max_steps), kernels.Rates(**rates)
    # Of each episode first the learning, then the evaluation.
    q, returns = np.zeros(shape), np.empty((runs, episodes, 2))
    steps = np.empty(returns.shape, dtype=np.int32)
    # In pieces of about a second, between which learning can be interrupted.
    piece = max(1, 20_000_000 // max_steps)
    for i in range(runs):
        # Child i of the root, without making the children before it.
        child = np.random.SeedSequence(
            root.entropy, spawn_key=(*root.spawn_key, i), pool_size=root.pool_size
        )
        counter = child.generate_state(1, np.uint64)
        for low in range(0, episodes, piece):
            record = (
                q[i],
                returns[i, low : low + piece].ravel(),
                steps[i, low : low + piece].ravel(),
            )
            updates = update != "action", update != "smdp"
            kernels.learn(*tables, task, learning_rates, counter, *record, *updates)
        if progress is not None:
            progress(i + 1, runs)
    settings = {
        "update": update,
        "n_options": len(policy),
        "episodes": episodes,
        "max_steps": max_steps,
    }
    settings |= rates | {
        "option_chance": None if option_chance is None else choices.option_chance,
        "stop_chance": choices.stop_chance,
        "start": start,
        "goal": goal,
    }
    settings |= {"rng": root.entropy, "spawn_key": list(root.spawn_key)}
    return LearningRecord(
        returns[:, :, 1],
        returns[:, :, 0],
        steps[:, :, 0],
        steps[:, :, 1],
        set_readonly(q),
        settings,
    )


def _make_seed_sequence(rng: Any) -> np.random.SeedSequence:
    if isinstance(rng, np.random.SeedSequence):
        return rng
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence([int(x) for x in rng.integers(2**32, size=4)])
    return np.random.SeedSequence(check_int("rng", rng, 0))


def _check_task(
    mdp: MDP, start: int | None, goal: int | None, max_steps: int
) -> tuple[int, int]:
    """Start and goal of a task that can be learned."""
    task = mdp.with_task(start, goal)
    if task.start is None or task.goal is None:
        name = "start" if task.start is None else "goal"
        raise ValueError(
            f"the MDP has no {name}: give {name}=, or a task: mdp.with_task(start=, goal=)"
        )
    if task.start == task.goal:
        raise ValueError(
            f"start and goal are both state {task.goal}: choose two, mdp.with_task(start=, goal=)"
        )
    shortest = distance(task, task.start, task.goal)
    if shortest is None:
        raise ValueError(
            f"goal {task.goal} cannot be reached from start {task.start}: choose another pair"
        )
    if shortest > max_steps:
        log.warning(
            "the goal is %d steps away: no episode of %d steps can reach it",
            shortest,
            max_steps,
        )
    return task.start, task.goal
