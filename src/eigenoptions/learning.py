"""Learning to reach a goal with options (paper, Section 4.3 and the multiple tasks of Appendix D).

Three learners, one record. `q_learning` is the paper's: options only explore, and the values learned are those of
primitive actions, Q(s, a) <- Q(s, a) + alpha (r + gamma max_b Q(s', b) - Q(s, a)). `smdp_q_learning` and
`intra_option_q_learning` also learn values of options. The reward is 1 on reaching the goal, where the episode ends,
and 0 before. Each learning episode is followed by one greedy evaluation episode, which changes no value.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from eigenoptions._validation import check_float, check_int, check_settings, readonly, set_readonly
from eigenoptions.mdp import MDP, distance
from eigenoptions.options import OptionSet
from eigenoptions.options.walks import check_option_chance, cumulate_rows

log = logging.getLogger("eigenoptions")

# Step counts are kept in 32 bits.
_MAX_COUNT = 2**31 - 1
# Largest record that is allocated.
MAX_RECORD_BYTES = 2**33
_TABLES = ("returns", "learning_returns", "steps", "evaluation_steps")
# Parameters of the learners beside their settings.
PARAMETERS = ("runs", "episodes", "max_steps", "rng")
_RATES = {"alpha": 0.1, "gamma": 0.9, "epsilon": 0.01, "explore": 1.0}

Seed = int | np.random.Generator | np.random.SeedSequence


class Settings(TypedDict, total=False):
    """Further settings of the learners; `follow` is one of `q_learning` only, `explore` of the two others."""

    alpha: float
    gamma: float
    epsilon: float
    option_chance: float | None
    start: int | None
    goal: int | None
    progress: Callable[[int, int], object] | None
    follow: bool
    explore: float


@dataclass(frozen=True, eq=False, repr=False)
class LearningRecord:
    """Returns, steps and values of every run and episode (Section 4.3).

    A return is not discounted: 1 if the episode reached the goal, else 0. The steps show how fast it did.

    Attributes
    ----------
    returns, learning_returns, evaluation_steps, steps
        ``(runs, episodes)`` returns of the greedy evaluation after each learning episode and of the episode itself, and
        primitive steps of both.
    q
        ``(runs, S, A)`` final values; for learners over options ``(runs, S, A + n)``, 0 where an option may not start.
    runs, settings
        ``(runs,)`` number of each run, which determines its random numbers; and method and parameters as plain values.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> record = q_learning(eo.maze("S..G"), runs=20, episodes=30)
    >>> record
    LearningRecord(q_learning, 20 runs of 30 episodes: return 1.00 in the last)
    >>> low, high = record.band()
    >>> bool(low[-1] < record.mean()[-1] <= high[-1])
    True
    """

    returns: NDArray[np.float64]
    learning_returns: NDArray[np.float64]
    steps: NDArray[np.int32]
    evaluation_steps: NDArray[np.int32]
    q: NDArray[np.float64]
    runs: NDArray[np.int64]
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (*_TABLES, "q", "runs"):
            object.__setattr__(self, name, readonly(getattr(self, name)))

    @property
    def n_steps(self) -> int:
        """Environment steps taken in all, learning and evaluation together."""
        return int(self.steps.sum(dtype=np.int64) + self.evaluation_steps.sum(dtype=np.int64))

    def mean(self, of: str = "returns") -> NDArray[np.float64]:
        """``(episodes,)`` mean over runs of the returns, or of another table of the record."""
        return np.asarray(self._table(of).mean(axis=0))

    def band(self, of: str = "returns", level: float = 0.95) -> tuple[NDArray[Any], NDArray[Any]]:
        """``(episodes,)`` lower and upper end of a confidence band for the mean over runs.

        Returns are 0 or 1 and have Wilson's interval for a proportion: it stays within 0..1 and keeps a width when
        all runs agree. Steps have Student's interval.
        """
        from scipy.stats import norm, t

        check_float("level", level, above=0, below=1)
        table = self._table(of)
        n = len(table)
        mean = table.mean(axis=0)
        if table.dtype.kind == "f":
            z = float(norm.interval(level)[1])
            centre = (mean + z * z / (2 * n)) / (1 + z * z / n)
            half = z / (1 + z * z / n) * np.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n))
            # Rounding must not push the band past what it surrounds.
            return np.clip(centre - half, 0.0, mean), np.clip(centre + half, mean, 1.0)
        if n < 2:
            raise ValueError("a confidence band over steps needs at least 2 runs, got 1")
        half = float(t.interval(level, n - 1)[1]) * table.std(axis=0, ddof=1) / np.sqrt(n)
        return mean - half, mean + half

    def __add__(self, other: LearningRecord) -> LearningRecord:
        """Join the runs of one experiment made in blocks (``runs=range(...)``)."""
        if self.settings != other.settings or self.q.shape[1:] != other.q.shape[1:]:
            keys = self.settings.keys() | other.settings.keys()
            off = sorted(k for k in keys if self.settings.get(k) != other.settings.get(k)) or ["sizes"]
            raise ValueError(f"records of different experiments cannot be joined: {', '.join(off)} differ")
        shared = np.intersect1d(self.runs, other.runs)
        if len(shared):
            raise ValueError(f"both records have run {shared[0]}: join blocks of different runs")
        parts = {k: np.concatenate([getattr(self, k), getattr(other, k)]) for k in (*_TABLES, "q", "runs")}
        return LearningRecord(**parts, settings=self.settings)

    def _table(self, of: str) -> NDArray[Any]:
        if of not in _TABLES:
            raise ValueError(f"no table {of!r} in a learning record: there are {', '.join(_TABLES)}")
        return getattr(self, of)  # type: ignore[no-any-return]

    def __str__(self) -> str:
        from eigenoptions import _text as sketch

        return f"{sketch.spark(self.mean())}\n{self!r}"

    def _repr_html_(self) -> str:
        from eigenoptions import _text as sketch

        picture = sketch.curve_svg(self.mean(), *self.band())
        caption = "mean return of the greedy evaluation by episode (0 to 1), and its 95% band"
        return f"<div>{picture}<br>{caption}<br><code>{escape(repr(self))}</code></div>"

    def __repr__(self) -> str:
        runs, episodes = self.returns.shape
        return (
            f"LearningRecord({self.settings.get('method', 'learning')}, {runs} run{'s' * (runs != 1)} of "
            f"{episodes} episode{'s' * (episodes != 1)}: return {self.returns[:, -1].mean():.2f} in the last)"
        )


def q_learning(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    runs: int | range = 100,
    episodes: int = 500,
    max_steps: int = 100,
    rng: Seed = 0,
    **settings: Unpack[Settings],
) -> LearningRecord:
    """Q-learning over primitive actions, with options to explore (Section 4.3).

    The behaviour chooses at random among the primitive actions and the options that may start, and follows an
    option until it stops. Every primitive step, also inside an option, is one off-policy update.

    Parameters
    ----------
    mdp, options
        Deterministic or stochastic dynamics, and options of this MDP, or None for primitive actions only.
    runs
        Number of runs, or a range of them: run i has child i of ``SeedSequence(rng)``, so ``runs=range(50, 100)`` gives
        exactly rows 50..99 of ``runs=100``. Workers can compute blocks, to be joined with ``+``.
    episodes, max_steps
        Learning episodes per run, and most primitive steps per episode; a running option is cut there.
    rng
        A seed, a ``SeedSequence``, or a Generator, which is drawn from anew at each call.
    alpha, gamma, epsilon
        Step size (0.1), discount (0.9), and chance of a random action in evaluation (0.01), which is otherwise greedy
        with ties broken at random.
    option_chance
        Probability in [0, 1] that a random decision is for an option, where one may start. None: uniform over actions
        and options, as in the paper.
    follow
        Whether an option is followed until it stops (True). False: its first action is taken twice, wherever that
        leads, and then the next choice is made, as the program published with the paper does.
    start, goal
        Start and goal of the task; by default those of the MDP.
    progress
        Called with the number of runs done and wanted.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> alone = q_learning(mdp, runs=10, episodes=100)
    >>> skilled = q_learning(mdp, eo.discover(mdp, n_options=64), runs=10, episodes=100)
    >>> bool(skilled.returns.mean() > alone.returns.mean())
    True
    """
    return _learn("q_learning", mdp, options, runs, (episodes, max_steps), rng, {**settings})


def smdp_q_learning(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    runs: int | range = 100,
    episodes: int = 500,
    max_steps: int = 100,
    rng: Seed = 0,
    **settings: Unpack[Settings],
) -> LearningRecord:
    """Q-learning over actions and options, each updated when it ends (Section 2.2).

    A choice o made in s that ends after k steps in s' with the discounted reward R on the way moves Q(s, o)
    towards R + gamma^k max Q(s', .), the maximum over the choices in s'. An option that is cut because the
    episode is over would have continued from s': its target is R + gamma^k Q(s', o) (Sutton, Precup and Singh,
    1999). Evaluation follows the best choice to its end.

    Parameters
    ----------
    mdp, options, runs, episodes, max_steps, rng, alpha, gamma, epsilon, option_chance, start, goal, progress
        As in `q_learning`; `epsilon` is the chance of a random choice at each decision of an evaluation. Where all
        values are still 0, the choice is random too.
    explore
        The same chance while learning (1). At 1 the behaviour is that of `q_learning`, below it is epsilon-greedy.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("S...G")
    >>> jump = eo.solve(mdp, eo.Purpose(np.array([0.0, 0, 0, 0, 1]), "goal 4"))
    >>> record = smdp_q_learning(mdp, jump, runs=1, alpha=1.0)
    >>> record.q[0, 0].round(3).tolist()  # up, right, down, left, the option; 0.9^3 is the optimum
    [0.656, 0.729, 0.656, 0.656, 0.729]
    """
    return _learn("smdp_q_learning", mdp, options, runs, (episodes, max_steps), rng, {**settings})


def intra_option_q_learning(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    runs: int | range = 100,
    episodes: int = 500,
    max_steps: int = 100,
    rng: Seed = 0,
    **settings: Unpack[Settings],
) -> LearningRecord:
    """Q-learning over actions and options; each step updates all options that agree with it (Section 2.2).

    After each primitive step (s, a, r, s'), Q(s, a) moves towards r + gamma max Q(s', .), and Q(s, o) of every option o
    that takes a in s towards r + gamma U(s', o), where U is Q(s', o) while o continues and max Q(s', .) where it stops
    (Sutton, Precup and Singh, 1999). Behaviour, evaluation and values in the limit are those of `smdp_q_learning`;
    they converge sooner, because no option has to run to its end first.

    Parameters
    ----------
    mdp, options, runs, episodes, max_steps, rng, alpha, gamma, epsilon, option_chance, explore, start, goal, progress
        As in `smdp_q_learning`.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("S...G")
    >>> jump = eo.solve(mdp, eo.Purpose(np.array([0.0, 0, 0, 0, 1]), "goal 4"))
    >>> record = intra_option_q_learning(mdp, jump, runs=1, alpha=1.0)
    >>> record.q[0, :, -1].round(3).tolist()  # value of the option in each state
    [0.729, 0.81, 0.9, 1.0, 0.0]
    """
    return _learn("intra_option_q_learning", mdp, options, runs, (episodes, max_steps), rng, {**settings})


def _learn(
    method: str,
    mdp: MDP,
    options: OptionSet | None,
    runs: int | range,
    length: tuple[int, int],
    rng: Seed,
    given: dict[str, Any],
) -> LearningRecord:
    """Check everything, lay out the tables, and call a kernel once per run (Ctrl-C works in between)."""
    from eigenoptions._kernels import learning as kernels

    numbers = _runs(runs)
    episodes, max_steps = (
        check_int(name, n, maximum=_MAX_COUNT)
        for name, n in zip(("episodes", "max_steps"), length, strict=True)
    )
    over_options = method != "q_learning"
    follow = True if over_options else given.pop("follow", True)
    progress = given.pop("progress", None)
    if not isinstance(follow, bool):
        raise ValueError(f"follow must be True or False, got {follow!r}")
    names = [*_RATES] if over_options else ["alpha", "gamma", "epsilon"]
    more = ["option_chance", *([] if over_options else ["follow"]), "start", "goal", "progress"]
    check_settings(method, given, [*names, *more], PARAMETERS)
    # A step size of 0 would learn nothing.
    rates = {name: check_float(name, given.get(name, _RATES[name]), minimum=0, maximum=1) for name in names}
    check_float("alpha", rates["alpha"], above=0, maximum=1)
    chance = check_option_chance(given.get("option_chance"))
    start, goal = _task(mdp, given.get("start"), given.get("goal"), max_steps)
    if options is not None and not isinstance(options, OptionSet):
        raise ValueError(f"options must be an OptionSet or None, got {type(options).__name__}")
    if options is not None:
        options.check(mdp)
    root = _root(rng)
    n = 0 if options is None else len(options)
    arguments = (
        _dynamics(mdp),
        _choices(mdp, options, chance, follow),
        kernels.Task(start, goal, max_steps),
        kernels.Rates(**{"explore": 1.0, **rates}),
    )
    check_size(len(numbers), episodes, mdp.n_states * (mdp.n_actions + n * over_options))
    q = np.zeros((len(numbers), mdp.n_states, mdp.n_actions + n * over_options))
    returns, learning_returns = np.empty((2, len(numbers), episodes))
    steps, evaluation_steps = np.empty((2, len(numbers), episodes), dtype=np.int32)
    for i, run in enumerate(numbers):
        record = kernels.Record(q[i], returns[i], evaluation_steps[i], learning_returns[i], steps[i])
        kernels.learn(*arguments, _seed(root, run), record, over_options, method != "smdp_q_learning")
        if progress is not None:
            progress(i + 1, len(numbers))
    settings = {"method": method, "n_options": n, "episodes": episodes, "max_steps": max_steps, **rates}
    settings |= {"start": start, "goal": goal, "rng": root.entropy}
    if chance is not None:
        settings["option_chance"] = chance
    if not follow:
        settings["follow"] = False
    if root.spawn_key:
        settings["spawn_key"] = list(root.spawn_key)
    numbered = np.array(numbers, dtype=np.int64)
    set_readonly(returns, steps, q)
    return LearningRecord(returns, learning_returns, steps, evaluation_steps, q, numbered, settings)


def _seed(root: np.random.SeedSequence, run: int) -> np.uint64:
    """Seed of a run: child `run` of the root, without making the children before it."""
    child = np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, run), pool_size=root.pool_size)
    return np.uint64(child.generate_state(1, np.uint64)[0])


def _root(rng: Any) -> np.random.SeedSequence:
    if isinstance(rng, np.random.SeedSequence):
        return rng
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence([int(x) for x in rng.integers(2**32, size=4)])
    if isinstance(rng, bool | np.bool_) or not isinstance(rng, int | np.integer) or rng < 0:
        raise ValueError(f"rng must be a seed of at least 0, a SeedSequence or a Generator, got {rng!r}")
    return np.random.SeedSequence(int(rng))


def _dynamics(mdp: MDP) -> Any:
    """Next states with -1 where uncertain, and the csr rows with running sums to draw those from."""
    from eigenoptions._kernels.learning import Dynamics

    if mdp.successors is not None:
        none = np.empty(0, dtype=np.int64)
        # A copy: read-only arrays would compile the kernel again.
        return Dynamics(mdp.successors.copy(), none, none, np.empty(0))
    P = mdp.transition
    indptr = P.indptr.astype(np.int64)
    nxt = np.where(np.diff(indptr) == 1, P.indices[indptr[:-1]], -1).astype(np.int32)
    nxt = nxt.reshape(mdp.n_states, mdp.n_actions)
    return Dynamics(nxt, indptr, P.indices.astype(np.int64), cumulate_rows(indptr, P.data))


def _choices(mdp: MDP, options: OptionSet | None, chance: float | None, follow: bool) -> Any:
    """Actions of the options, which may start in each state, and which take which action there."""
    from eigenoptions._kernels.learning import Choices

    S, A = mdp.n_states, mdp.n_actions
    policy: NDArray[Any] = np.empty((0, S), dtype=np.int8) if options is None else options.policy
    plan: NDArray[Any] = np.array(policy.T, dtype=np.int8 if A <= 127 else np.int32, order="C")
    s, o = np.nonzero(plan >= 0)
    offered = o.astype(np.int32)
    pair = s * A + plan[s, o]
    takers = offered[np.argsort(pair, kind="stable")]
    taking = np.concatenate([[0], np.cumsum(np.bincount(pair, minlength=S * A))])
    starts = np.ascontiguousarray(taking[::A])
    return Choices(plan, starts, offered, taking, takers, -1.0 if chance is None else chance, follow)


def _task(mdp: MDP, start: int | None, goal: int | None, max_steps: int) -> tuple[int, int]:
    """Start and goal of a task that can be learned."""
    if not isinstance(mdp, MDP):
        raise TypeError(
            f"learning takes an MDP, got {type(mdp).__name__}: make one with maze() or from_env()"
        )
    task = mdp.with_task(start, goal)
    start, goal = task.start, task.goal
    for name, state in (("start", start), ("goal", goal)):
        if state is None:
            raise ValueError(f"the MDP has no {name}: give {name}=, or a task: mdp.with_task(start=, goal=)")
    assert start is not None
    assert goal is not None
    if start == goal:
        raise ValueError(f"start and goal are both state {goal}: choose two, mdp.with_task(start=, goal=)")
    away = distance(task, start, goal)
    if away is None:
        remedy = "choose another pair with mdp.with_task(start=, goal=)"
        raise ValueError(f"goal {goal} cannot be reached from start {start}: {remedy}")
    if away > max_steps:
        log.warning("the goal is %d steps away: no episode of %d steps can reach it", away, max_steps)
    return start, goal


def check_size(runs: int, episodes: int, n_values: int) -> None:
    """Raise ValueError where a record of so many runs, episodes and values per run would fill the memory.

    >>> check_size(10**10, 250, 416)
    Traceback (most recent call last):
    ValueError: runs must be a whole number in 1..2147483647, got 10000000000
    >>> check_size(10**6, 250, 416)
    Traceback (most recent call last):
    ValueError: 1000000 runs of 250 episodes with 416 values take 9.3 GB, the limit is 8.6 GB: compute fewer at a time
    """
    size = check_int("runs", runs, maximum=_MAX_COUNT) * (
        24 * check_int("episodes", episodes, maximum=_MAX_COUNT) + 8 * n_values
    )
    if size > MAX_RECORD_BYTES:
        raise ValueError(
            f"{runs} runs of {episodes} episodes with {n_values} values take {size / 1e9:.1f} GB, "
            f"the limit is {MAX_RECORD_BYTES / 1e9:.1f} GB: compute fewer at a time"
        )


def _runs(runs: Any) -> range:
    if not isinstance(runs, range):
        return range(check_int("runs", runs, maximum=_MAX_COUNT))
    if len(runs) == 0 or runs.step != 1 or runs.start < 0:
        raise ValueError(f"runs must be at least 1, or a range of runs like range(50, 100), got {runs}")
    return runs
