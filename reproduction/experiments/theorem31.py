"""Theorem 3.1: every option stops.

The paper proves that an eigenoption always has a state to stop in, and says that
options of different eigenvectors run for different times; the figure is not in the
paper.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.sparse.csgraph import shortest_path
from scipy.stats import spearmanr

import eigenoptions as eo
from eigenoptions import MDP, OptionSet, Spectrum
from eigenoptions._types import BoolArray, FloatArray
from eigenoptions.mdp.chains import compute_lengths, uniform_walk
from reproduction.claims import Finding, Tests, claim, list_rows, move_limit
from reproduction.drawing import make_graphs
from reproduction.lab import Data, Job, Jobs, Results
from reproduction.readings import (
    COMBINATORIAL,
    HIGH_DISCOUNT,
    LAXER,
    LOW_DISCOUNT,
    MAIN,
    STRICTER,
    TOLERANCE,
    TWO_OPTIONS,
    WALLS,
    WITHOUT_E1,
)
from reproduction.runs.options import (
    BASIS_READINGS,
    MAZES,
    OPTION_READINGS,
    describe_options,
    make_eigenoptions,
)
from reproduction.thresholds import DENSE, DOZENS, FEW, MAJOR, MOVED, OFTEN, STRONG

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

# Readings by Laplacian and discount.
READINGS = {
    ("normalized", 0.9): MAIN,
    ("combinatorial", 0.9): COMBINATORIAL,
    ("normalized", 0.5): LOW_DISCOUNT,
    ("normalized", 0.99): HIGH_DISCOUNT,
}

# Readings that change the options of the main one a little.
CHANGES = (WITHOUT_E1, TOLERANCE, WALLS, *BASIS_READINGS)

# What other Laplacians and discounts have in place of a reading.
OTHER = "other"

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
        reading = READINGS.get((operator, gamma), OTHER)
        key = {"domain": maze, "operator": operator, "gamma": gamma, "reading": reading}
        tables.append(describe_options(options).assign(**key))
        facts.append(key | measure_stops(mdp, potentials, options) | of_rates)

        if reading == MAIN:
            for change in CHANGES:
                key = key | {"reading": change}
                changed = _make_changed_options(mdp, change, eigenvectors)
                rewards = np.stack(
                    [np.asarray(purpose.potential) for purpose in changed.purposes]
                )
                tables.append(describe_options(changed).assign(**key))
                facts.append(key | measure_stops(mdp, rewards, changed) | of_rates)
    return {"options": pd.concat(tables), "facts": pd.DataFrame(facts)}


def _make_changed_options(mdp: MDP, change: str, eigenvectors: int | None) -> OptionSet:
    """The options of the main reading, with one change."""
    n_options = None if eigenvectors is None else 2 * eigenvectors
    return make_eigenoptions(mdp, n_options, **OPTION_READINGS[change])


def measure_stops(
    mdp: MDP, potentials: FloatArray, options: OptionSet
) -> dict[str, float]:
    """Facts about the rewards, the terminating states and the lengths of options.

    They are how dense the rewards are, how many terminating states are local maxima (no
    move leads to a higher value), how many options terminate at the largest value, how
    many moves out of terminating states have a negative reward, and a reward of zero;
    the fewest options that may start in a state, the longest run of an option, how many
    random actions it undoes, and how finely the options of a state are timed.
    """
    rise = _measure_rise(mdp, potentials)
    moves = _find_moves(mdp)
    is_dense = np.abs(rise) > ROUNDING
    dense = is_dense[:, moves].mean(axis=1)
    is_local_maximum = (rise <= ROUNDING).all(axis=2)
    highest = potentials.max(axis=1, keepdims=True)
    is_highest = potentials >= highest - ROUNDING

    # An eigenvector without differences has no reward and no maximum.
    varies = np.ptp(potentials, axis=1) > ROUNDING
    stops = options.termination
    starts = ~stops
    rewards_after = rise[varies][stops[varies][:, :, None] & moves]

    lengths = np.stack([compute_lengths(mdp, policy) for policy in options.policy])
    number, state = np.unravel_index(lengths.argmax(), lengths.shape)
    end = options.follow(int(number), int(state))[-1]
    return {
        "dense": np.median(dense[varies]),
        "stops": stops[varies].sum(),
        "stops_at_maxima": (stops & is_local_maximum)[varies].sum(),
        "options": varies.sum(),
        "stop_at_the_highest": (stops & is_highest)[varies].any(axis=1).sum(),
        "moves_after": len(rewards_after),
        "negative_after": (rewards_after < -ROUNDING).sum(),
        "zero_after": (np.abs(rewards_after) <= ROUNDING).sum(),
        "fewest_in_a_state": starts.sum(axis=0).min(),
        "fewest_of_two": starts[:2].sum(axis=0).min(),
        "fewest_of_few": starts[:FEW].sum(axis=0).min(),
        "longest": lengths.max(),
        "undone": count_undone_actions(mdp, int(state), int(end)),
        "finely_timed": measure_timing(lengths),
    }


def count_undone_actions(mdp: MDP, state: int, end: int) -> float:
    """Random actions that an option undoes which leads from a state to its end.

    It is the expected number of random actions until a walk from the end is as far away
    as the state.
    """
    distances = shortest_path(eo.graph(mdp), unweighted=True, indices=end)
    is_nearer = distances < distances[state]
    walk = uniform_walk(mdp).toarray()[np.ix_(is_nearer, is_nearer)]
    steps = np.linalg.solve(np.eye(len(walk)) - walk, np.ones(len(walk)))
    return float(steps[is_nearer[:end].sum()])


def measure_timing(lengths: FloatArray) -> float:
    """How finely options are timed: the share of times that some option takes.

    The times are the numbers of steps from 1 to the longest run from a state. `lengths`
    has the shape (n, S); the result is that of the median state.

    >>> measure_timing(np.array([[1, 1], [2, 4], [0, 3]]))
    0.875
    """
    shares = []
    for of_state in lengths.T:
        times = np.unique(of_state[of_state > 0])
        shares.append(len(times) / of_state.max(initial=1))
    return float(np.median(shares))


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
        # Options come in pairs, + and - of one eigenvector.
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
    options = data["options"][~data["options"].reading.isin(CHANGES)]
    fewest = options.n_stops.min()
    is_endless = ~np.isfinite(options.mean_length)
    n_endless = int(is_endless.sum())
    discounts = ", ".join(f"{gamma:g}" for gamma in options.gamma.unique())
    operators = ", ".join(options.operator.unique())

    def judge(options: pd.DataFrame) -> Tests:
        return [
            options.n_stops.min() >= 1,
            bool(np.isfinite(options.mean_length).all()),
        ]

    readings = _judge_readings(data, judge, table="options")
    return Finding(
        tests=judge(options),
        readings={name: readings[name] for name in CHANGES if name in readings},
        measured=f"{len(options):,} options, each with at least {fewest} terminating "
        f"state; {n_endless or 'none'} can run forever",
        evidence=f"Both signs, discounts {discounts}, Laplacians {operators}, "
        "all domains. An option can run forever if from some state it may miss all of "
        "its terminating states. Other finite MDPs are under Appendix A.",
    )


@claim(
    "stops-at-maxima",
    "Options terminate when the agent reaches the state with largest value in the "
    "eigenpurpose, or a local maximum when the discount is below 1.",
)
def terminate_at_maxima(data: Data) -> Finding:
    columns = ["stops", "stops_at_maxima", "options", "stop_at_the_highest"]
    facts = data["facts"]

    def judge(total: pd.Series) -> Tests:
        return [
            total.stops_at_maxima == total.stops,
            total.stop_at_the_highest == total.options,
        ]

    total = facts[~facts.reading.isin(CHANGES)][columns].sum()
    return Finding(
        tests=judge(total),
        readings={name: judge(_select(facts, name)[columns].sum()) for name in CHANGES},
        measured=f"{total.stops_at_maxima:,} of {total.stops:,} terminating states are "
        f"local maxima; {total.stop_at_the_highest:,} of {total.options:,} options "
        "stop at the largest value",
        evidence="Two tests: no terminating state has a neighbour of larger value, and "
        "the state of the largest value is one of them.",
    )


@claim("negative-after", "Any subsequent reward will be negative.")
def give_negative_rewards_after(data: Data) -> Finding:
    def judge(facts: pd.DataFrame) -> Tests:
        return list(facts.negative_after == facts.moves_after)

    def judge_loosely(facts: pd.DataFrame) -> Tests:
        return list(facts.negative_after + facts.zero_after == facts.moves_after)

    facts = _select(data["facts"])
    shares = facts.assign(share=facts.negative_after / facts.moves_after)
    return Finding(
        tests=judge(facts),
        readings={
            LAXER: judge_loosely(facts),
            **_judge_readings(data, judge),
        },
        measured="moves out of terminating states whose reward is negative: "
        + list_rows("{domain} {share:.1%}", shares),
        evidence="The next reward of every move that changes the state, after every "
        "eigenoption (normalized Laplacian, discount 0.9). The laxer reading is that "
        "none is positive; a reward of zero is between states of equal value.",
    )


@claim("dense-reward", "This reward function tends to be dense.")
def give_dense_reward(data: Data) -> Finding:
    def judge(facts: pd.DataFrame, limit: float = DENSE) -> Tests:
        return list(facts.dense >= limit)

    facts = _select(data["facts"])
    return Finding(
        tests=judge(facts),
        readings={
            **_judge_readings(data, judge),
            **move_limit("DENSE", lambda limit: judge(facts, limit)),
        },
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
        readings={
            STRICTER: list(steps.high > 1.5 * steps.low),
            LAXER: list(steps.high > steps.low),
        },
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
    def judge(facts: pd.DataFrame, few: str = "fewest_of_few") -> Tests:
        return [*(facts.fewest_in_a_state > 1), *(facts[few] > 1)]

    facts = _select(data["facts"])
    return Finding(
        tests=judge(facts),
        readings={
            TWO_OPTIONS: judge(facts, "fewest_of_two"),
            **_judge_readings(data, judge),
        },
        measured="fewest options in any state, and of the first few: "
        + list_rows("{domain} {fewest_in_a_state} and {fewest_of_few}", facts),
        evidence=f"Of all eigenoptions, and of the first {FEW}; more than one in every "
        "state of each domain.",
    )


@claim(
    "finely-timed",
    "Having options that operate at different time scales allows agents to make finely "
    "timed actions.",
    section="1",
)
def make_finely_timed_actions(data: Data) -> Finding:
    def judge(facts: pd.DataFrame, limit: float = OFTEN) -> Tests:
        return list(facts.finely_timed >= limit)

    facts = _select(data["facts"])
    return Finding(
        tests=judge(facts),
        readings={
            **_judge_readings(data, judge),
            **move_limit("OFTEN", lambda limit: judge(facts, limit)),
        },
        measured="of the numbers of steps up to the longest run from a state, some "
        "option takes: " + list_rows("{domain} {finely_timed:.0%}", facts),
        evidence="All eigenoptions that may start in a state, in the median state "
        "(normalized Laplacian, discount 0.9). Finely timed: at least "
        f"{OFTEN:.0%} of the times from one step to the longest run can be had by one "
        "option.",
    )


@claim(
    "frequencies",
    "Eigenoptions operate at different frequencies, with the length of a trajectory "
    "until termination varying.",
    section="4.2",
)
def operate_at_different_frequencies(data: Data) -> Finding:
    def find_extremes(options: pd.DataFrame) -> pd.DataFrame:
        moving = options[options.mean_length > 0]
        domains = moving.groupby("domain", sort=False)
        return domains.mean_length.agg(["min", "max"])

    def judge(options: pd.DataFrame, factor: float = MAJOR) -> Tests:
        steps = find_extremes(options)
        return list(steps["max"] >= factor * steps["min"])

    options = _select(data["options"])
    steps = find_extremes(options)
    return Finding(
        tests=judge(options),
        readings={
            **_judge_readings(data, judge, table="options"),
            **move_limit("MAJOR", lambda factor: judge(options, factor)),
        },
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
    def judge(facts: pd.DataFrame, limit: float = DOZENS) -> Tests:
        return list(facts.undone >= limit)

    facts = _select(data["facts"])
    _, laxer = MOVED["DOZENS"]
    return Finding(
        tests=judge(facts),
        readings={
            **_judge_readings(data, judge),
            STRICTER: list(facts.longest >= DOZENS),
            LAXER: judge(facts, laxer),
        },
        measured="the longest run of an eigenoption undoes what so many random actions "
        "do: " + list_rows("{domain} {undone:,.0f} ({longest:.0f} steps)", facts),
        evidence="The expected number of random actions until a walk is as far from "
        "the end of the option as its farthest start is (normalized Laplacian, "
        f"discount 0.9); dozens are at least {DOZENS}. The stricter reading is that "
        "the option itself runs for that many steps.",
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

    def judge(limit: float) -> Tests:
        return [
            *(facts.fastest >= MAJOR * facts.slowest),
            *(facts.rate_rank >= limit),
            *(errors < ROUNDING),
        ]

    return Finding(
        tests=judge(STRONG),
        readings=move_limit("STRONG", judge),
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
    def find_shares(options: pd.DataFrame) -> pd.DataFrame:
        starts = options.groupby("domain", sort=False).start_share
        # Of e2 to e4, which Figures 3 to 5 show, and of all options.
        return pd.DataFrame(
            {
                "median": starts.median(),
                "first": starts.apply(lambda share: share.iloc[2:8].min()),
            }
        )

    def judge(options: pd.DataFrame, limit: float = OFTEN) -> Tests:
        return list(find_shares(options)["median"] >= limit)

    options = _select(data["options"])
    shares = find_shares(options)
    return Finding(
        tests=judge(options),
        readings={
            **_judge_readings(data, judge, table="options"),
            **move_limit("OFTEN", lambda limit: judge(options, limit)),
        },
        measured="start in at least this share of the states, e2 to e4 and the median "
        "of all options: " + list_rows("{domain} {first:.0%} and {median:.0%}", shares),
        evidence="The median option must be able to start in at least "
        f"{OFTEN:.0%} of the states of each domain. An option that stops in 2 of the "
        "19 states of the I-Maze is already below.",
    )


def _select(table: pd.DataFrame, reading: str = MAIN) -> pd.DataFrame:
    """Rows of a reading; the main one has the discount of the authors' code."""
    return table[table.reading == reading]


def _judge_readings(
    data: Data, judge: Callable[[pd.DataFrame], Tests], table: str = "facts"
) -> dict[str, Tests]:
    """The tests of a table under each other reading that it has rows of."""
    rows = data[table]
    readings = [name for name in rows.reading.unique() if name not in (OTHER, MAIN)]
    return {reading: judge(_select(rows, reading)) for reading in readings}


def _find_moves(mdp: MDP) -> BoolArray:
    """``(S, A)`` whether an action changes the state."""
    moves: BoolArray = np.asarray(mdp.successors) != np.arange(mdp.n_states)[:, None]
    return moves


def _measure_rise(mdp: MDP, potentials: FloatArray) -> FloatArray:
    """``(n, S, A)`` how much each action raises each of n potentials: its reward."""
    return potentials[:, np.asarray(mdp.successors)] - potentials[:, :, None]
