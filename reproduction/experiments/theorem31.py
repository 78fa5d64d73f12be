"""Theorem 3.1: every option stops.

The paper proves that an eigenoption always has a state to stop in, and says that
options of different eigenvectors run for different times; the figure is not in the
paper.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import spearmanr

import eigenoptions as eo
from eigenoptions import MDP, OptionSet, Spectrum
from eigenoptions._types import BoolArray, FloatArray
from eigenoptions.mdp.chains import compute_lengths
from reproduction.claims import Finding, claim, list_rows
from reproduction.drawing import make_graphs
from reproduction.lab import Data, Job, Jobs, Results
from reproduction.runs.options import MAZES, describe_options
from reproduction.thresholds import DENSE, DOZENS, FEW, MAJOR, OFTEN, STRONG

SECTION = "3"
ORDER = 30
QUICK = {
    "mazes": MAZES[1:],
    "operators": ["normalized"],
    "gammas": [0.0, 0.9],
    "eigenvectors": 8,
}

OPERATORS = ("normalized", "combinatorial", "random-walk")
GAMMAS = (0.0, 0.5, 0.9, 0.99)

# Differences of eigenvector entries below this are rounding errors.
ROUNDING = 1e-9


def list_jobs(
    *,
    mazes: Sequence[str] = MAZES,
    operators: Sequence[str] = OPERATORS,
    gammas: Sequence[float] = GAMMAS,
    eigenvectors: int | None = None,
) -> Jobs:
    """Options of all eigenvectors, under every Laplacian and discount."""
    jobs = [
        Job(
            examine_options,
            {
                "maze": maze,
                "operator": operator,
                "gammas": tuple(gammas),
                "eigenvectors": eigenvectors,
            },
        )
        for maze in mazes
        for operator in operators
    ]
    return {"options": jobs}


def examine_options(
    *,
    maze: str,
    operator: str,
    gammas: Sequence[float],
    eigenvectors: int | None,
) -> Data:
    """The options of a maze under a Laplacian, and facts about them by discount."""
    mdp = eo.maze(maze)
    spectrum = eo.spectrum(eo.graph(mdp), k=eigenvectors, operator=operator)
    purposes = eo.eigenpurposes(spectrum, skip_zero=False)
    potentials = np.stack([np.asarray(purpose.potential) for purpose in purposes])
    of_rates = measure_rates(mdp, spectrum)

    tables = []
    facts = []
    for gamma in gammas:
        options = eo.solve(mdp, purposes, gamma)
        key = {"domain": maze, "operator": operator, "gamma": gamma}
        tables.append(describe_options(options).assign(**key))
        facts.append(key | measure_stops(mdp, potentials, options) | of_rates)
    return {"options": pd.concat(tables), "facts": pd.DataFrame(facts)}


def measure_stops(
    mdp: MDP, potentials: FloatArray, options: OptionSet
) -> dict[str, float]:
    """Facts about the rewards and the terminating states of options.

    They are how dense the rewards are, how many terminating states are local maxima (no
    move leads to a higher value), how many options terminate at the largest value, the
    fewest options that may start in a state, and the longest run of an option.
    """
    rise = _measure_rise(mdp, potentials)
    is_dense = np.abs(rise) > ROUNDING
    dense = is_dense[:, _find_moves(mdp)].mean(axis=1)
    is_local_maximum = (rise <= ROUNDING).all(axis=2)
    highest = potentials.max(axis=1, keepdims=True)
    is_highest = potentials >= highest - ROUNDING

    # An eigenvector without differences has no reward and no maximum.
    varies = np.ptp(potentials, axis=1) > ROUNDING
    stops = options.termination
    starts = ~stops
    return {
        "dense": np.median(dense[varies]),
        "stops": stops[varies].sum(),
        "stops_at_maxima": (stops & is_local_maximum)[varies].sum(),
        "options": varies.sum(),
        "stop_at_the_highest": (stops & is_highest)[varies].any(axis=1).sum(),
        "fewest_in_a_state": starts.sum(axis=0).min(),
        "fewest_of_few": starts[:FEW].sum(axis=0).min(),
        "longest": max(compute_lengths(mdp, policy).max() for policy in options.policy),
    }


def measure_rates(mdp: MDP, spectrum: Spectrum) -> dict[str, float]:
    """How fast eigenvectors change, beside their eigenvalues.

    The rate of change is the mean squared reward of the moves, for eigenvectors of
    length 1.
    """
    eigenvectors = spectrum.vectors.T
    rise = _measure_rise(mdp, eigenvectors)
    squares = (rise[:, _find_moves(mdp)] ** 2).sum(axis=1)
    rates = squares / (2 * (eigenvectors**2).sum(axis=1))
    is_zero = np.isclose(spectrum.values, 0, atol=ROUNDING)
    return {
        "rate_error": np.abs(rates - spectrum.values).max(),
        "slowest": rates[~is_zero].min(),
        "fastest": rates.max(),
        "rate_rank": spearmanr(rates, spectrum.values).statistic,
    }


def tabulate_results(results: Results) -> Data:
    """Options and facts of all mazes and Laplacians."""
    tables = [value for _, value in results["options"]]
    return {
        "options": pd.concat([table["options"] for table in tables]),
        "facts": pd.concat([table["facts"] for table in tables]),
    }


def draw_figure(data: Data) -> Figure:
    """Mean length of the options of each eigenvector, a graph per domain."""
    domains = _select(data["options"]).groupby("domain", sort=False)
    figure, axes = make_graphs(len(domains), ylabel="mean length (steps)")
    for ax, (domain, options) in zip(axes, domains, strict=True):
        by_sign = options.mean_length.to_numpy().reshape(-1, 2)
        mean_lengths = by_sign.mean(axis=1)
        ax.plot(
            np.arange(len(mean_lengths)) + 1,
            mean_lengths,
            "o",
            markersize=2.5,
            markeredgewidth=0,
            alpha=0.7,
        )
        ax.set(title=domain, xlabel="eigenvector")
    return figure


@claim(
    "theorem-3.1",
    "For an eigenoption and a discount below 1, in a finite MDP, the set of "
    "terminating states is nonempty.",
)
def have_terminating_states(data: Data) -> Finding:
    options = data["options"]
    fewest = options.n_stops.min()
    n_endless = int((~np.isfinite(options.mean_length)).sum())
    discounts = ", ".join(f"{gamma:g}" for gamma in options.gamma.unique())
    return Finding(
        tests=[fewest >= 1, n_endless == 0],
        measured=f"{len(options)} options, each with at least {fewest} terminating "
        f"state; {n_endless or 'none'} can run forever",
        evidence=f"Both signs, discounts {discounts}, Laplacians "
        f"{', '.join(options.operator.unique())}, all domains. An option can run "
        "forever if from some state it may miss all of its terminating states. Other "
        "finite MDPs are under Appendix A.",
    )


@claim(
    "stops-at-maxima",
    "Options terminate when the agent reaches the state with largest value in the "
    "eigenpurpose, or a local maximum when the discount is below 1.",
)
def terminate_at_maxima(data: Data) -> Finding:
    columns = ["stops", "stops_at_maxima", "options", "stop_at_the_highest"]
    total = data["facts"][columns].sum()
    return Finding(
        tests=[
            total.stops_at_maxima == total.stops,
            total.stop_at_the_highest == total.options,
        ],
        measured=f"{total.stops_at_maxima:,} of {total.stops:,} terminating states are "
        f"local maxima; {total.stop_at_the_highest:,} of {total.options:,} options "
        "stop at the largest value",
        evidence="Two tests: no terminating state has a neighbour of larger value, and "
        "the state of the largest value is one of them.",
    )


@claim("dense-reward", "This reward function tends to be dense.")
def give_dense_reward(data: Data) -> Finding:
    facts = _select(data["facts"])
    return Finding(
        tests=list(facts.dense >= DENSE),
        measured="rewards that are not zero, median option: "
        + list_rows("{domain} {dense:.0%}", facts),
        evidence=f"Share of the moves that change the state; at least {DENSE:.0%} in "
        "each domain.",
    )


@claim(
    "discount-timescale", "The discount rate impacts the timescale the option encodes."
)
def impact_timescale(data: Data) -> Finding:
    options = data["options"]
    low = options.gamma.min()
    high = options.gamma.max()
    by_gamma = options.groupby(["domain", "gamma"], sort=False).mean_length.mean()
    steps = by_gamma.unstack().rename(columns={low: "low", high: "high"})
    return Finding(
        tests=list(steps.high > 1.1 * steps.low),
        measured=f"mean steps with {low:g} and with {high:g}: "
        + list_rows("{domain} {low:.1f} and {high:.1f}", steps),
        evidence="Mean length of all options; it must grow by more than a tenth, in "
        "each domain.",
    )


@claim(
    "multiple-options",
    "Because our options are defined across the whole state space, multiple options "
    "are available in every state.",
    section="1",
)
def offer_multiple_options(data: Data) -> Finding:
    facts = _select(data["facts"])
    return Finding(
        tests=[*(facts.fewest_in_a_state > 1), *(facts.fewest_of_few > 1)],
        measured="fewest options in any state, and of the first few: "
        + list_rows("{domain} {fewest_in_a_state} and {fewest_of_few}", facts),
        evidence=f"Of all eigenoptions, and of the first {FEW}; more than one in every "
        "state of each domain.",
    )


@claim(
    "frequencies",
    "Eigenoptions operate at different frequencies, with the length of a trajectory "
    "until termination varying.",
    section="4.2",
)
def operate_at_different_frequencies(data: Data) -> Finding:
    options = _select(data["options"])
    moving = options[options.mean_length > 0]
    steps = moving.groupby("domain", sort=False).mean_length.agg(["min", "max"])
    return Finding(
        tests=list(steps["max"] >= 2 * steps["min"]),
        measured=list_rows("{domain}: from {min:.2f} to {max:.2f} steps", steps),
        evidence="Mean length of each option over the states where it may start "
        "(normalized Laplacian, discount 0.9). It varies when the longest is at least "
        "twice the shortest.",
    )


@claim(
    "undo-dozens",
    "Sampling an option may undo dozens of primitive actions.",
    section="4.2",
)
def undo_dozens_of_actions(data: Data) -> Finding:
    facts = _select(data["facts"])
    high = data["options"].gamma.max()
    with_high = _select(data["facts"], gamma=high)
    return Finding(
        tests=list(facts.longest >= DOZENS),
        measured="longest run of any eigenoption: "
        + list_rows("{domain} {longest:.0f} steps", facts),
        evidence="Until it terminates (normalized Laplacian, discount 0.9); dozens are "
        f"at least {DOZENS}. With the discount {high:g} they are "
        f"{list_rows('{longest:.0f}', with_high)} steps.",
        lesson="In domains of this size no eigenoption runs that long; one undoes at "
        "most about twenty actions.",
    )


@claim(
    "rates-of-change",
    "Eigenpurposes encode different rates of change in the agent's representation.",
    section="6",
)
def encode_rates_of_change(data: Data) -> Finding:
    facts = _select(data["facts"])
    high = data["options"].gamma.max()
    combinatorial = data["facts"][data["facts"].operator == "combinatorial"]
    errors = combinatorial[combinatorial.gamma == high].rate_error
    return Finding(
        tests=[
            *(facts.fastest >= MAJOR * facts.slowest),
            *(facts.rate_rank >= STRONG),
            *(errors < ROUNDING),
        ],
        measured="rank correlation of the rate and the eigenvalue: "
        + list_rows("{domain} {rate_rank:.3f}", facts),
        evidence="The rate of change of an eigenpurpose is the sum of the squared "
        "rewards of all moves between neighbours, for a vector of length 1. Tests in "
        f"each domain: the fastest is at least {MAJOR:g} times the slowest; the rank "
        f"correlation with the eigenvalue is at least {STRONG:g}; under the "
        "combinatorial Laplacian both are equal.",
    )


@claim(
    "whole-state-space",
    "Eigenoptions are often defined in the whole state space, allowing sequencing.",
    section="4.2",
)
def start_in_whole_state_space(data: Data) -> Finding:
    starts = _select(data["options"]).groupby("domain", sort=False).start_share
    # Of e2 to e4, which Figures 3 to 5 show, and of all options.
    shares = pd.DataFrame(
        {
            "median": starts.median(),
            "first": starts.apply(lambda share: share.iloc[2:8].min()),
        }
    )
    return Finding(
        tests=list(shares["median"] >= OFTEN),
        measured="start in at least this share of the states, e2 to e4 and the median "
        "of all options: " + list_rows("{domain} {first:.0%} and {median:.0%}", shares),
        evidence="The median option must be able to start in at least "
        f"{OFTEN:.0%} of the states of each domain. An option that stops in 2 of the "
        "19 states of the I-Maze is already below.",
    )


def _select(table: pd.DataFrame, gamma: float = 0.9) -> pd.DataFrame:
    """Rows of the paper's Laplacian and of one discount, that of the authors' code."""
    return table[(table.operator == "normalized") & (table.gamma == gamma)]


def _find_moves(mdp: MDP) -> BoolArray:
    """``(S, A)`` whether an action changes the state."""
    moves: BoolArray = np.asarray(mdp.successors) != np.arange(mdp.n_states)[:, None]
    return moves


def _measure_rise(mdp: MDP, potentials: FloatArray) -> FloatArray:
    """``(n, S, A)`` how much each action raises each of n potentials: its reward."""
    return potentials[:, np.asarray(mdp.successors)] - potentials[:, :, None]
