"""Diffusion time: the mean of hitting times over all pairs of states (Section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log

import numpy as np

from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._types import FloatArray, Progress
from eigenoptions.evaluation.behaviour import Chance, prepare_behaviour
from eigenoptions.evaluation.hitting import HittingSystem
from eigenoptions.mdp import MDP
from eigenoptions.options import OptionSet


@shows_progress
def diffusion_time(
    mdp: MDP,
    options: OptionSet | None = None,
    *,
    option_chance: Chance = None,
    stop_chance: float = 0.0,
    progress: ProgressArgument = None,
) -> float:
    """Compute the mean expected number of primitive steps between two different states.

    This is the measure of Section 4.2 and Appendix B: how far a random walk over
    actions and options gets.

    Parameters
    ----------
    mdp : MDP
        At most 4,000 states, each reachable from every other. Where an episode ends,
        which is where no action leaves the state, the next step leads to the start
        (without one, to any other state). States that cannot be reached from the start
        are left out, and logged. Additional states, the ends of some steps, are neither
        starts nor goals.
    options : OptionSet or None, default=None
        Options of this MDP; None for primitive actions only.
    option_chance : float in [0, 1), "auto" or None, default=None
        Probability that a decision is for an option where one is available. None: the
        decision is uniform over the actions and the available options, as in the
        paper. ``"auto"``: `tune_exploration` chooses this and the stop chance.
    stop_chance : float in [0, 1], default=0.0
        Probability that an option also terminates after each of its steps.
    progress : bool or callable, default=None
        True shows a bar, None only after two seconds. A function is called as
        ``progress(done, total)`` with numbers of goals. With more than 1,000 states, a
        minute can pass.

    Returns
    -------
    float
        The diffusion time. Its relative error is proved to be at most 1e-9. With more
        than 500 states and 1e6 steps the proof is weaker, at worst 1e-2.

    Raises
    ------
    ValueError
        If the diffusion time is infinite.
    OverflowError
        If it is too large to be computed: more than 1e12 steps.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> options = eo.discover(mdp, n_options=64)
    >>> round(diffusion_time(mdp), 3), round(diffusion_time(mdp, options), 1)
    (620.769, 218.4)
    """
    progress = check_progress(progress)
    behaviour = prepare_behaviour(mdp, options, option_chance, stop_chance)
    system = HittingSystem(behaviour)
    return _average_pairs(system.solve(behaviour.option_chance, progress=progress))


@shows_progress
def diffusion_curve(
    mdp: MDP,
    options: OptionSet,
    *,
    option_chance: Chance = None,
    stop_chance: float = 0.0,
    progress: ProgressArgument = None,
) -> FloatArray:
    """Compute the diffusion time as options are added one by one (Figure 6).

    Parameters
    ----------
    mdp, options, option_chance, stop_chance
        As in `diffusion_time`.
    progress : bool or callable, default=None
        True shows a bar, None only after two seconds. A function is called as
        ``progress(done, total)`` with numbers of diffusion times.

    Returns
    -------
    array (n_options + 1,)
        The diffusion time without options, with the first, with the first two, and so
        on; inf where `diffusion_time` raises OverflowError.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("S...G")
    >>> ends = [eo.Purpose(np.eye(5)[s], f"to {s}") for s in (0, 4)]
    >>> diffusion_curve(mdp, eo.solve(mdp, ends)).round(1).tolist()
    [20.0, 37.1, 5.8]
    """
    progress = check_progress(progress)
    behaviour = prepare_behaviour(mdp, options, option_chance, stop_chance)
    system = HittingSystem(behaviour)
    times = np.empty(len(behaviour.policy) + 1)
    for n_options in range(len(times)):
        times[n_options] = _measure_diffusion_time(
            system, behaviour.option_chance, n_options
        )
        if progress is not None:
            progress(n_options + 1, len(times))
    return times


@dataclass(frozen=True)
class BestChance:
    """The option chance with the smallest diffusion time; see `best_option_chance`.

    Attributes
    ----------
    chance : float
        The best option chance; 0 if options do not help.
    diffusion_time : float
        The diffusion time with this chance.
    primitive_diffusion_time : float
        That of primitive actions only.
    uniform_diffusion_time : float
        That of the paper's uniform choice; inf where the options trap the walk.
    """

    chance: float
    diffusion_time: float
    primitive_diffusion_time: float
    uniform_diffusion_time: float


@shows_progress
def best_option_chance(
    mdp: MDP,
    options: OptionSet,
    *,
    stop_chance: float = 0.0,
    progress: ProgressArgument = None,
) -> BestChance:
    """Find the option chance with the smallest diffusion time (Section 4.2).

    Parameters
    ----------
    mdp, options, stop_chance
        As in `diffusion_time`.
    progress : bool or callable, default=None
        True shows a bar, None only after two seconds. A function is called as
        ``progress(done, total)`` with the number of diffusion times that are computed,
        and the largest number that there can be.

    Returns
    -------
    BestChance
        The chance, and diffusion times to compare it with.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> mdp = eo.maze("four-rooms")
    >>> best = best_option_chance(mdp, eo.discover(mdp, n_options=4))
    >>> round(best.chance, 2), round(best.diffusion_time, 1)
    (0.05, 267.7)
    >>> round(best.uniform_diffusion_time)
    13525
    """
    progress = check_progress(progress)
    behaviour = prepare_behaviour(mdp, options, None, stop_chance)
    if not len(behaviour.policy):
        raise ValueError(
            "there are no options, so no option chance: discover at least one"
        )

    system = HittingSystem(behaviour)
    search = _ChanceSearch(system, progress)
    chance = search.find_chance()
    time = _measure_diffusion_time(system, chance)
    # The paper's choice, uniform over actions and options, and actions alone.
    uniform_time = _measure_diffusion_time(system, option_chance=None)
    primitive_time = _measure_diffusion_time(system, option_chance=None, n_options=0)
    search.report_end()

    # The search tries positive chances only. If none helps, options are not used.
    if time >= primitive_time:
        chance = 0.0
        time = primitive_time
    return BestChance(
        chance=chance,
        diffusion_time=time,
        primitive_diffusion_time=primitive_time,
        uniform_diffusion_time=uniform_time,
    )


# Log-odds in ascending order: chances from 5e-5 to 0.99.
_GRID = (-10.0, -7.0, -4.5, -2.0, 0.5, 4.5)

# Most diffusion times after those of the grid.
_MOST_REFINEMENTS = 20


class _ChanceSearch:
    """A search for the best option chance, which counts what it computes.

    The logarithm of the diffusion time is a smooth function of the log-odds of the
    chance. It is computed on a grid, and then minimised between the neighbours of the
    grid's best point.

    Parameters
    ----------
    system : HittingSystem
        Computes the diffusion times.
    progress : callable or None
        See `best_option_chance`.
    """

    def __init__(
        self,
        system: HittingSystem,
        progress: Progress | None,
    ) -> None:
        self.system = system
        self.progress = progress
        self.n_computed = 0
        # One more, for the times that the result is compared with.
        self.n_total = len(_GRID) + _MOST_REFINEMENTS + 1

    def find_chance(self) -> float:
        """The option chance with the smallest diffusion time."""
        # SciPy's optimisers take long to load.
        from scipy.optimize import minimize_scalar

        log_times = [self._compute_log_time(log_odds) for log_odds in _GRID]
        best = int(np.argmin(log_times))
        low = _GRID[max(best - 1, 0)]
        high = _GRID[min(best + 1, len(_GRID) - 1)]
        minimum = minimize_scalar(
            self._compute_log_time,
            bounds=(low, high),
            method="bounded",
            options={"xatol": 0.01, "maxiter": _MOST_REFINEMENTS},
        )
        return _convert_log_odds(minimum.x)

    def _compute_log_time(self, log_odds: float) -> float:
        """The logarithm of the diffusion time, without a proof."""
        chance = _convert_log_odds(log_odds)
        time = _average_pairs(self.system.solve(chance, prove=False))
        self.n_computed += 1
        if self.progress is not None:
            self.progress(self.n_computed, self.n_total)
        # Where options trap the walk, the time is nonsense: huge, negative or nan.
        if 0 < time < 1e300:
            return log(time)
        return 1e3

    def report_end(self) -> None:
        """Tell that everything is computed."""
        if self.progress is not None:
            self.progress(self.n_total, self.n_total)


def _convert_log_odds(log_odds: float) -> float:
    """The probability with these log-odds."""
    from scipy.special import expit

    return float(expit(log_odds))


def _measure_diffusion_time(
    system: HittingSystem, option_chance: float | None, n_options: int | None = None
) -> float:
    """The diffusion time with the first options; inf where they trap the walk.

    The option chance None is the uniform choice, and the number None is all options.
    """
    try:
        times = system.solve(option_chance, n_options)
    except OverflowError:
        return inf
    return _average_pairs(times)


def _average_pairs(times: FloatArray) -> float:
    """The mean over all ordered pairs of different states."""
    n_states = len(times)
    return float(times.sum() / (n_states * (n_states - 1)))
