"""Q-learning with options (paper, Section 4.3, and the multiple tasks of Appendix D).

The task is to reach a goal. The reward is 1 on reaching it, where the episode ends, and
0 before. Each learning episode is followed by one greedy evaluation episode, which
changes no value.

The loop itself is `_kernels.learning.learn`, whose module describes the algorithm step
by step. This module checks the task and the hyperparameters, gives each run its own
seed, and keeps the results in a `LearningRecord`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._text import count_noun
from eigenoptions._types import FloatArray
from eigenoptions._validation import (
    Record,
    check_choice,
    check_float,
    check_int,
    check_memory,
    check_type,
    readonly,
    set_readonly,
)
from eigenoptions.mdp import MDP, distance
from eigenoptions.options import OptionSet
from eigenoptions.options.tuning import check_auto, resolve_exploration
from eigenoptions.options.walks import make_tables, stack_policies

if TYPE_CHECKING:
    from eigenoptions._kernels.learning import GoalTask, Rates, Rule, Run
    from eigenoptions._kernels.walking import Choices, Moves

__all__ = ["q_learning", "LearningRecord"]

logger = logging.getLogger("eigenoptions")

UPDATES = ("action", "smdp", "intra-option")

# Steps are stored as int32.
_MAX_COUNT = 2**31 - 1


@dataclass(frozen=True, eq=False, repr=False)
class LearningRecord(Record):
    """Returns, steps and values of every run and episode (Section 4.3).

    A return is not discounted: it is 1 if the episode reached the goal, else 0. The
    steps show how fast it did.

    Attributes
    ----------
    returns : (runs, episodes) array
        Returns of the greedy evaluation after each learning episode.
    learning_returns : (runs, episodes) array
        Returns of the learning episodes.
    steps : (runs, episodes) array
        Primitive steps of the learning episodes.
    evaluation_steps : (runs, episodes) array
        Primitive steps of the evaluations.
    q : (runs, S, A) or (runs, S, A + n) array
        Final values of the actions, and of the options where these are learned. The
        value of an option is 0 where it is not available.
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

    returns: FloatArray
    learning_returns: FloatArray
    steps: NDArray[np.int32]
    evaluation_steps: NDArray[np.int32]
    q: FloatArray
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("returns", "learning_returns", "steps", "evaluation_steps", "q"):
            object.__setattr__(self, name, readonly(getattr(self, name)))

    def mean(self, table: str = "returns") -> FloatArray:
        """Mean over runs of the returns, or of another table of the record.

        Parameters
        ----------
        table : str, default="returns"
            ``"returns"``, ``"learning_returns"``, ``"steps"`` or
            ``"evaluation_steps"``.

        Returns
        -------
        (episodes,) array
        """
        tables = ("returns", "learning_returns", "steps", "evaluation_steps")
        check_choice("table", table, tables)
        means: FloatArray = getattr(self, table).mean(axis=0)
        return means

    def band(
        self, table: str = "returns", confidence: float = 0.95
    ) -> tuple[FloatArray, FloatArray]:
        """Wilson's confidence interval for the mean over runs of the returns.

        Returns are 0 or 1, so their mean is a proportion. Wilson's interval for a
        proportion stays within 0..1, and it has a width also where all runs agree.

        Parameters
        ----------
        table : {"returns", "learning_returns"}, default="returns"
            Returns of the evaluations, or of the learning episodes.
        confidence : float in (0, 1), default=0.95
            Confidence level.

        Returns
        -------
        low, high : (episodes,) arrays
            Lower and upper end of the interval.
        """
        from scipy.stats import binomtest

        check_choice("table", table, ("returns", "learning_returns"))
        confidence = check_float("confidence", confidence, above=0, below=1)

        n_runs = len(self.returns)
        intervals = []
        for n_successes in getattr(self, table).sum(axis=0):
            test = binomtest(int(n_successes), n_runs)
            intervals.append(test.proportion_ci(confidence, method="wilson"))
        low, high = np.transpose(intervals)
        return low, high

    def __repr__(self) -> str:
        n_runs, n_episodes = self.returns.shape
        update = self.settings.get("update", "")
        runs = count_noun(n_runs, "run")
        episodes = count_noun(n_episodes, "episode")
        size = f"LearningRecord(update={update!r}, {runs} of {episodes}"
        if self.returns.size == 0:
            return f"{size})"

        # The mean over runs of the evaluation after the last learning episode.
        mean_final_return = self.returns[:, -1].mean()
        return f"{size}: return {mean_final_return:.2f} in the last)"


@shows_progress
def q_learning(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    runs: int = 100,
    episodes: int = 500,
    max_steps: int = 100,
    update: str = "action",
    option_chance: float | str | None = None,
    stop_chance: float = 0.0,
    alpha: float = 0.1,
    gamma: float = 0.9,
    epsilon: float = 0.01,
    explore: float = 1.0,
    start: int | None = None,
    goal: int | None = None,
    rng: int | np.random.Generator | np.random.SeedSequence = 0,
    progress: ProgressArgument = None,
) -> LearningRecord:
    """Learn to reach a goal by Q-learning with options (Section 4.3).

    While learning, the agent chooses at random among the primitive actions and the
    available options, and follows an option until it terminates.

    Parameters
    ----------
    mdp : MDP
        Deterministic or stochastic dynamics.
    options : OptionSet, optional
        Options of this MDP. By default the agent has only its primitive actions.
    runs : int, default=100
        Number of independent runs. Run i draws from child i of ``SeedSequence(rng)``,
        so it does not depend on the number of runs.
    episodes : int, default=500
        Learning episodes of each run.
    max_steps : int, default=100
        Most primitive steps of an episode. An option that is running then is cut.
    update : {"action", "smdp", "intra-option"}, default="action"
        What is learned.

        * ``"action"``, as in the paper: values of primitive actions only. Each step
          (s, a, r, s'), also inside an option, moves Q(s, a) towards
          ``r + gamma max Q(s', .)``.
        * ``"smdp"``: values of actions and options. Each is updated when it ends. A
          decision o made in s that ends after k steps in s' with the discounted reward
          R moves Q(s, o) towards ``R + gamma^k max Q(s', .)``. An option that is cut
          would have continued from s', so its target is ``R + gamma^k Q(s', o)``.
        * ``"intra-option"``: the same values. Each step updates its action, and every
          option o that takes a in s, towards ``r + gamma U(s', o)``, where U is Q(s',
          o) while o continues and ``max Q(s', .)`` where it terminates (Sutton, Precup
          and Singh, 1999). The values converge sooner, because no option has to run to
          its end first.
    option_chance : float in [0, 1] or "auto", optional
        Probability that a random decision is for an option, where one is available.
        ``"auto"``: `tune_exploration` chooses this and `stop_chance`. By default the
        choice is uniform over actions and options, as in the paper.
    stop_chance : float in [0, 1], default=0
        Probability that an option is also cut after each of its steps. This holds while
        learning, for options that were chosen at random.
    alpha : float in (0, 1], default=0.1
        Step size.
    gamma : float in [0, 1], default=0.9
        Discount.
    epsilon : float in [0, 1], default=0.01
        Probability of a random decision in evaluation, which is otherwise greedy. Ties
        are broken at random, but an action goes before an option of the same value: an
        agent that knows nothing yet takes actions.
    explore : float in [0, 1], default=1
        The same probability while learning. With ``update="action"``, decisions are
        also random where all values are 0.
    start : int, optional
        Start of the task; by default that of the MDP.
    goal : int, optional
        Goal of the task; by default that of the MDP.
    rng : int, Generator or SeedSequence, default=0
        Seed of all random draws. A Generator is drawn from anew at each call.
    progress : bool or callable, default=None
        True shows a bar, None only after two seconds. A function is called with the
        number of runs that are done, and the number of all runs.

    Returns
    -------
    LearningRecord
        Returns, steps and final values.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> alone = q_learning(mdp, runs=10, episodes=100)
    >>> skilled = q_learning(mdp, eo.discover(mdp, n_options=64), runs=10, episodes=100)
    >>> bool(skilled.returns.mean() > alone.returns.mean())
    True
    """
    progress = check_progress(progress)
    check_type("mdp", mdp, MDP, "make one with maze() or from_env()")
    check_choice("update", update, UPDATES)
    runs = check_int("runs", runs, maximum=_MAX_COUNT)
    episodes = check_int("episodes", episodes, maximum=_MAX_COUNT)
    max_steps = check_int("max_steps", max_steps, maximum=_MAX_COUNT)
    alpha = check_float("alpha", alpha, above=0, maximum=1)
    gamma = check_float("gamma", gamma, minimum=0, maximum=1)
    epsilon = check_float("epsilon", epsilon, minimum=0, maximum=1)
    explore = check_float("explore", explore, minimum=0, maximum=1)
    start, goal = _check_task(mdp, start, goal, max_steps)
    root_seed = _make_seed_sequence(rng)

    # Only some rules learn values of options.
    policies = stack_policies(mdp, options)
    n_choices = mdp.n_actions
    if update != "action":
        n_choices += len(policies)
    _check_size(runs, episodes, mdp.n_states * n_choices)

    # Numba is loaded only here: most programs never learn.
    from eigenoptions._kernels import learning as kernel

    if option_chance is not None and len(policies) > 0:
        chances = resolve_exploration(options, option_chance, stop_chance)
        if option_chance == "auto" and chances.option_chance == 0:
            logger.warning(
                'option_chance="auto" takes none of the %d options, because in '
                "simulated walks they found states no sooner than primitive actions; "
                "set option_chance (0.05, say) to take them all the same",
                len(policies),
            )
        option_chance, stop_chance = chances.option_chance, chances.stop_chance
    elif isinstance(option_chance, str):
        check_auto(option_chance)
        option_chance = None
    moves, choices = make_tables(mdp, policies, option_chance, stop_chance)
    task = kernel.GoalTask(start, goal, max_steps)
    rates = kernel.Rates(alpha, gamma, epsilon, explore)
    rule = kernel.Rule(
        has_option_values=update != "action",
        updates_each_step=update != "smdp",
    )

    q = np.zeros((runs, mdp.n_states, n_choices))
    returns = np.empty((runs, episodes, 2))
    steps = np.empty((runs, episodes, 2), dtype=np.int32)

    for i in range(runs):
        run = kernel.Run(_seed_run(root_seed, i), q[i], returns[i], steps[i])
        _learn_run(moves, choices, task, rates, rule, run)
        if progress is not None:
            progress(i + 1, runs)

    if option_chance is not None:
        option_chance = choices.option_chance
    settings = {
        "update": update,
        "n_options": len(policies),
        "episodes": episodes,
        "max_steps": max_steps,
        "alpha": alpha,
        "gamma": gamma,
        "epsilon": epsilon,
        "explore": explore,
        "option_chance": option_chance,
        "stop_chance": choices.stop_chance,
        "start": start,
        "goal": goal,
        "rng": root_seed.entropy,
        "spawn_key": list(root_seed.spawn_key),
    }
    return LearningRecord(
        returns=returns[:, :, kernel.EVALUATION],
        learning_returns=returns[:, :, kernel.LEARNING],
        steps=steps[:, :, kernel.LEARNING],
        evaluation_steps=steps[:, :, kernel.EVALUATION],
        # Nobody else holds the values, which may be large: the record need not copy.
        q=set_readonly(q),
        settings=settings,
    )


def _learn_run(
    moves: Moves,
    choices: Choices,
    task: GoalTask,
    rates: Rates,
    rule: Rule,
    run: Run,
) -> None:
    """Learn one run, in calls that take at most about a second.

    Python cannot interrupt a kernel, but it can between two calls.
    """
    from eigenoptions._kernels.learning import learn

    episodes_per_call = max(1, 20_000_000 // task.max_steps)
    for first in range(0, len(run.returns), episodes_per_call):
        part = slice(first, first + episodes_per_call)
        partial_run = run._replace(returns=run.returns[part], steps=run.steps[part])
        learn(moves, choices, task, rates, rule, partial_run)


def _check_task(
    mdp: MDP, start: int | None, goal: int | None, max_steps: int
) -> tuple[int, int]:
    """Start and goal of a task, which must be possible to learn."""
    task = mdp.with_task(start, goal)
    if task.start is None:
        raise ValueError(
            "the MDP has no start: give start=, or a task: mdp.with_task(start=, goal=)"
        )
    if task.goal is None:
        raise ValueError(
            "the MDP has no goal: give goal=, or a task: mdp.with_task(start=, goal=)"
        )
    if task.start == task.goal:
        raise ValueError(
            f"start and goal are both state {task.goal}: choose two, "
            "mdp.with_task(start=, goal=)"
        )

    n_moves = distance(task, task.start, task.goal)
    if n_moves is None:
        raise ValueError(
            f"goal {task.goal} cannot be reached from start {task.start}: "
            "choose another pair"
        )
    if n_moves > max_steps:
        logger.warning(
            "the goal is %d steps away: no episode of %d steps can reach it",
            n_moves,
            max_steps,
        )
    return task.start, task.goal


def _check_size(runs: int, episodes: int, n_values: int) -> None:
    """Raise ValueError if the record of the runs would not fit into memory."""
    # Of each episode two returns (float64) and two numbers of steps (int32).
    n_bytes = runs * (24 * episodes + 8 * n_values)
    check_memory(f"{runs} runs of {episodes} episodes", n_bytes, "compute fewer runs")


def _make_seed_sequence(
    rng: int | np.random.Generator | np.random.SeedSequence,
) -> np.random.SeedSequence:
    """The seed sequence whose children are the seeds of runs."""
    if isinstance(rng, np.random.SeedSequence):
        return rng
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence(rng.integers(2**32, size=4).tolist())
    return np.random.SeedSequence(check_int("rng", rng, 0))


def _seed_run(root: np.random.SeedSequence, i: int) -> NDArray[np.uint64]:
    """``(1,)`` counter at which the random numbers of run i begin.

    It is drawn from child i of the root. ``root.spawn`` would make all children before
    it as well, and count them in the root, which belongs to the caller.
    """
    child = np.random.SeedSequence(
        root.entropy,
        spawn_key=(*root.spawn_key, i),
        pool_size=root.pool_size,
    )
    return child.generate_state(1, np.uint64).astype(np.uint64)
