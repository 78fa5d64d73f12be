"""Theorem 3.1: every option stops.

The paper proves that an eigenoption always has a state to stop in, and says that options of different eigenvectors
run for different times; the figure is not in the paper.
"""

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

import eigenoptions as eo
from eigenoptions.mdp.chains import compute_lengths
from reproduction.drawing import Figure, make_graphs
from reproduction.experiments.agents import MAZES
from reproduction.experiments.first_options import describe_options
from reproduction.lab import (
    DENSE,
    DOZENS,
    FEW,
    MAJOR,
    OFTEN,
    STRONG,
    Claim,
    Claims,
    Data,
    Lab,
    list_rows,
)

SECTION, ORDER = "3", 30
OPERATORS, GAMMAS = (
    ("normalized", "combinatorial", "random-walk"),
    (0.0, 0.5, 0.9, 0.99),
)
QUICK = {
    "mazes": MAZES[1:],
    "operators": ["normalized"],
    "gammas": [0.0, 0.9],
    "eigenvectors": 8,
}
# Differences of eigenvector entries below this are rounding errors.
ROUNDING = 1e-9


def run(
    lab: Lab, *, mazes=MAZES, operators=OPERATORS, gammas=GAMMAS, eigenvectors=None
) -> Data:
    """Options of all eigenvectors and both signs, in every domain, under every Laplacian and discount."""
    settings = {"gammas": tuple(gammas), "eigenvectors": eigenvectors}
    jobs = [
        {"maze": name, "operator": operator, **settings}
        for name in mazes
        for operator in operators
    ]
    results = lab.pmap(find_options, jobs)
    return {
        name: pd.concat([result[name] for result in results])
        for name in ("options", "facts")
    }


def find_options(*, maze, operator, gammas, eigenvectors) -> Data:
    """Options of a maze under a Laplacian, and facts about them for each discount.

    Facts are how dense the rewards are, how many terminating states are local maxima (no move leads to a higher value),
    how many options terminate at the largest value, the fewest options that may start in a state, the longest run of an
    option, and the rates of change: mean squared rewards of the moves, for eigenvectors of length 1.
    """
    mdp = eo.maze(maze)
    sp = eo.spectrum(eo.graph(mdp), k=eigenvectors, operator=operator)
    successors = np.asarray(mdp.successors)
    moved = successors != np.arange(mdp.n_states)[:, None]
    signed = np.stack([sign * e for e in sp.vectors.T for sign in (1.0, -1.0)])
    rise = signed[:, successors] - signed[:, :, None]
    varied = np.ptp(signed, axis=1) > ROUNDING
    dense = (np.abs(rise) > ROUNDING)[:, moved].mean(axis=1)
    rates = (rise[::2, moved] ** 2).sum(axis=1) / (2 * (signed[::2] ** 2).sum(axis=1))
    local_maximum = (rise <= ROUNDING).all(axis=2)
    highest = signed >= signed.max(axis=1, keepdims=True) - ROUNDING
    tables, facts = [], []
    for gamma in gammas:
        options = eo.solve(mdp, eo.eigenpurposes(sp, skip_zero=False), gamma)
        stops, key = (
            options.termination,
            {"domain": maze, "operator": operator, "gamma": gamma},
        )
        tables.append(describe_options(options).assign(**key))
        fact = {
            "dense": np.median(dense[varied]),
            "stops": stops[varied].sum(),
            "stops_at_maxima": (stops & local_maximum)[varied].sum(),
            "options": varied.sum(),
            "stop_at_the_highest": (stops & highest)[varied].any(axis=1).sum(),
            "fewest_in_a_state": (~stops).sum(axis=0).min(),
            "fewest_of_few": (~stops[:FEW]).sum(axis=0).min(),
            "longest": max(
                compute_lengths(mdp, policy).max() for policy in options.policy
            ),
            "rate_error": np.abs(rates - sp.values).max(),
            "slowest": rates[~np.isclose(sp.values, 0, atol=ROUNDING)].min(),
            "fastest": rates.max(),
            "rate_rank": spearmanr(rates, sp.values).statistic,
        }
        facts.append(key | fact)
    return {"options": pd.concat(tables), "facts": pd.DataFrame(facts)}


def figure(data: Data) -> Figure:
    domains = select(data["options"]).groupby("domain", sort=False)
    picture, axes = make_graphs(len(domains), ylabel="mean length (steps)")
    for ax, (domain, options) in zip(axes, domains, strict=True):
        lengths = options.mean_length.to_numpy().reshape(-1, 2).mean(axis=1)
        ax.plot(
            np.arange(len(lengths)) + 1,
            lengths,
            "o",
            markersize=2.5,
            markeredgewidth=0,
            alpha=0.7,
        )
        ax.set(title=domain, xlabel="eigenvector")
    return picture


def claims(data: Data) -> Claims:
    options, facts = data["options"], data["facts"]
    fewest, endless = (
        options.n_stops.min(),
        int((~np.isfinite(options.mean_length)).sum()),
    )
    yield Claim(
        "theorem-3.1",
        "For an eigenoption and a discount below 1, in a finite MDP, the set of terminating states is nonempty.",
        tests=[fewest >= 1, endless == 0],
        measured=f"{len(options)} options, each with at least {fewest} terminating state; {endless or 'none'} can run "
        "forever",
        evidence=f"Both signs, discounts {', '.join(f'{g:g}' for g in options.gamma.unique())}, Laplacians "
        f"{', '.join(options.operator.unique())}, all domains. An option can run forever if from some state it may "
        "miss all of its terminating states. Other finite MDPs are under Appendix A.",
    )
    total = facts[["stops", "stops_at_maxima", "options", "stop_at_the_highest"]].sum()
    yield Claim(
        "stops-at-maxima",
        "Options terminate when the agent reaches the state with largest value in the eigenpurpose, or a local maximum "
        "when the discount is below 1.",
        tests=[
            total.stops_at_maxima == total.stops,
            total.stop_at_the_highest == total.options,
        ],
        measured=f"{total.stops_at_maxima:,} of {total.stops:,} terminating states are local maxima; "
        f"{total.stop_at_the_highest:,} of {total.options:,} options stop at the largest value",
        evidence="Two tests: no terminating state has a neighbour of larger value, and the state of the largest "
        "value is one of them.",
    )
    shown = select(facts)
    yield Claim(
        "dense-reward",
        "This reward function tends to be dense.",
        tests=list(shown.dense >= DENSE),
        measured=f"rewards that are not zero, median option: {list_rows('{domain} {dense:.0%}', shown)}",
        evidence=f"Share of the moves that change the state; at least {DENSE:.0%} in each domain.",
    )
    length = (
        options.groupby(["domain", "gamma"], sort=False).mean_length.mean().unstack()
    )
    low, high = options.gamma.min(), options.gamma.max()
    yield Claim(
        "discount-timescale",
        "The discount rate impacts the timescale the option encodes.",
        tests=list(length[high] > 1.1 * length[low]),
        measured=f"mean steps with {low:g} and with {high:g}: "
        + list_rows(
            "{domain} {low:.1f} and {high:.1f}",
            length.rename(columns={low: "low", high: "high"}),
        ),
        evidence="Mean length of all options; it must grow by more than a tenth, in each domain.",
    )
    yield Claim(
        "multiple-options",
        "Because our options are defined across the whole state space, multiple options are available in every state.",
        section="1",
        tests=[*(shown.fewest_in_a_state > 1), *(shown.fewest_of_few > 1)],
        measured="fewest options in any state, and of the first few: "
        + list_rows("{domain} {fewest_in_a_state} and {fewest_of_few}", shown),
        evidence=f"Of all eigenoptions, and of the first {FEW}; more than one in every state of each domain.",
    )
    domains = select(options).groupby("domain", sort=False)
    moving = select(options[options.mean_length > 0])
    lengths = moving.groupby("domain", sort=False).mean_length.agg(["min", "max"])
    yield Claim(
        "frequencies",
        "Eigenoptions operate at different frequencies, with the length of a trajectory until termination varying.",
        section="4.2",
        tests=list(lengths["max"] >= 2 * lengths["min"]),
        measured=list_rows("{domain}: from {min:.2f} to {max:.2f} steps", lengths),
        evidence="Mean length of each option over the states where it may start (normalized Laplacian, discount "
        "0.9). It varies when the longest is at least twice the shortest.",
    )
    yield Claim(
        "undo-dozens",
        "Sampling an option may undo dozens of primitive actions.",
        section="4.2",
        tests=list(shown.longest >= DOZENS),
        measured=f"longest run of any eigenoption: {list_rows('{domain} {longest:.0f} steps', shown)}",
        evidence=f"Until it terminates (normalized Laplacian, discount 0.9); dozens are at least {DOZENS}. With the "
        f"discount {high:g} they are {list_rows('{longest:.0f}', select(facts, gamma=high))} steps.",
        lesson="In domains of this size no eigenoption runs that long; one undoes at most about twenty actions.",
    )
    exact = (
        facts[(facts.operator == "combinatorial") & (facts.gamma == high)].rate_error
        < ROUNDING
    )
    yield Claim(
        "rates-of-change",
        "Eigenpurposes encode different rates of change in the agent's representation.",
        section="6",
        tests=[
            *(shown.fastest >= MAJOR * shown.slowest),
            *(shown.rate_rank >= STRONG),
            *exact,
        ],
        measured=f"rank correlation of the rate and the eigenvalue: {list_rows('{domain} {rate_rank:.3f}', shown)}",
        evidence="The rate of change of an eigenpurpose is the sum of the squared rewards of all moves between "
        f"neighbours, for a vector of length 1. Tests in each domain: the fastest is at least {MAJOR:g} times the "
        f"slowest; the rank correlation with the eigenvalue is at least {STRONG:g}; under the combinatorial "
        "Laplacian both are equal.",
    )
    # Of e2 to e4, which Figures 3 to 5 show, and of all options.
    shares = pd.DataFrame({"median": domains.start_share.median()})
    shares["first"] = domains.start_share.apply(lambda share: share.iloc[2:8].min())
    yield Claim(
        "whole-state-space",
        "Eigenoptions are often defined in the whole state space, allowing sequencing.",
        section="4.2",
        tests=list(shares["median"] >= OFTEN),
        measured="start in at least this share of the states, e2 to e4 and the median of all options: "
        + list_rows("{domain} {first:.0%} and {median:.0%}", shares),
        evidence=f"The median option must be able to start in at least {OFTEN:.0%} of the states of each domain. An "
        "option that stops in 2 of the 19 states of the I-Maze is already below.",
    )


def select(table: pd.DataFrame, gamma: float = 0.9) -> pd.DataFrame:
    """Rows of the paper's Laplacian and of one discount, by default that of the authors' program."""
    return table[(table.operator == "normalized") & (table.gamma == gamma)]
