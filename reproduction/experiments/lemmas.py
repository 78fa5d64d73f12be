"""Appendix A: lemmas, and any finite MDP.

Proofs of Theorem 3.1 and of its lemmas; the figure is ours: random matrices and random
MDPs against the bounds.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

import eigenoptions as eo
from eigenoptions import MDP, Purpose
from eigenoptions._types import FloatArray
from reproduction.claims import Finding, claim, demonstration
from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.lab import Data, Job, Jobs, Results, get_tables

SECTION = "Appendix A"
ORDER = 35
QUICK = {"matrices": 20, "mdps": 2, "states": 8, "gammas": [0.5, 0.9]}

# What rounding may add to a bound that is reached exactly.
ROUNDING = 1e-9

# Features per state of the linear case.
FEATURES = 5


def list_jobs(
    *,
    matrices: int = 100,
    mdps: int = 8,
    states: int = 24,
    gammas: Sequence[float] = (0.0, 0.5, 0.9, 0.99),
    seed: int = 2017,
) -> Jobs:
    """Norms of random matrices, and options of random MDPs."""
    arguments = {
        "matrices": matrices,
        "mdps": mdps,
        "states": states,
        "gammas": tuple(gammas),
        "seed": seed,
    }
    return {"samples": [Job(draw_samples, arguments)]}


def draw_samples(
    *, matrices: int, mdps: int, states: int, gammas: Sequence[float], seed: int
) -> Data:
    """Both sides of the lemmas for matrices, and those of the theorem for MDPs."""
    rng = np.random.default_rng(seed)
    norms = [
        measure_norms(rng, states, norm) for norm in np.linspace(0.0, 0.999, matrices)
    ]

    rows = []
    for kind, reach in {"deterministic": 1, "stochastic": 4}.items():
        for number in range(mdps):
            mdp = make_mdp(rng, states, reach)
            for name, purposes in make_purposes(rng, mdp).items():
                for gamma in gammas:
                    key = {
                        "mdp": number,
                        "kind": kind,
                        "gamma": gamma,
                        "purposes": name,
                    }
                    rows.append(key | measure_bound(mdp, purposes, gamma))
    return {"norms": pd.DataFrame(norms), "mdps": pd.DataFrame(rows)}


def measure_norms(rng: np.random.Generator, n: int, norm: float) -> dict[str, float]:
    """Both sides of the two lemmas, for random matrices of n rows.

    That of Lemma 3.1 has the given norm; that of Lemma 3.2 is stochastic, and the
    discount is the given number.
    """
    A = rng.normal(size=(n, n))
    A *= norm / np.abs(A).sum(axis=1).max()
    T = rng.dirichlet(np.full(n, 0.2), size=n)
    identity = np.eye(n)
    return {
        "norm": norm,
        "lemma_3_1": measure_norm(np.linalg.inv(identity + A)),
        "lemma_3_2": measure_norm(np.linalg.inv(identity - norm * T) @ T),
        "bound": 1 / (1 - norm),
    }


def measure_norm(matrix: NDArray[np.floating[Any]]) -> float:
    """The infinity norm: the largest sum of the absolute entries of a row."""
    return float(np.linalg.norm(matrix, np.inf))


def make_mdp(rng: np.random.Generator, n: int, reach: int) -> MDP:
    """A random MDP of n states and three actions, each of which leads to some states.

    Half of the first action (all of it, if actions are deterministic) leads around a
    ring of all states, which keeps the graph in one piece.
    """
    table = np.zeros((n, 3, n))
    for state in range(n):
        for action in range(3):
            probabilities = rng.dirichlet(np.ones(reach))
            targets = rng.choice(n, size=reach, replace=False)
            table[state, action, targets] = probabilities

        others = 0.5 if reach > 1 else 0.0
        table[state, 0] *= others
        table[state, 0, (state + 1) % n] += 1 - table[state, 0].sum()
    return MDP(table)


def make_purposes(rng: np.random.Generator, mdp: MDP) -> dict[str, list[Purpose]]:
    """Eigenpurposes of the graph, and random directions in a space of few features."""
    tabular = eo.eigenpurposes(eo.spectrum(eo.graph(mdp)), skip_zero=False)

    features = rng.normal(size=(mdp.n_states, FEATURES))
    weights = rng.normal(size=(FEATURES, 2 * FEATURES))
    potentials = (features @ weights).T
    linear = [Purpose(potential, f"w{i}") for i, potential in enumerate(potentials)]
    return {"tabular": tabular, "linear": linear}


def measure_bound(mdp: MDP, purposes: list[Purpose], gamma: float) -> dict[str, float]:
    """Fewest terminating states, and the bound in the proof of the theorem.

    The bound is on the ratio of the norms of v + w and w, for the values v of the best
    policy without TERMINATE and a potential w whose least entry is 0.
    """
    options = eo.solve(mdp, purposes, gamma)
    P = mdp.transition.toarray().reshape(mdp.n_states, mdp.n_actions, -1)
    ratios = []
    for purpose in purposes:
        potential = np.asarray(purpose.potential)
        w = potential - potential.min()
        if w.max() > ROUNDING:
            v = solve_eigenbehavior(P, w, gamma)
            ratios.append(np.abs(v + w).max() / w.max())
    return {
        "options": len(options),
        "fewest_stops": options.termination.sum(axis=1).min(),
        "ratio": max(ratios),
    }


def solve_eigenbehavior(P: FloatArray, w: FloatArray, gamma: float) -> FloatArray:
    """Values of the best policy that never terminates, by policy iteration.

    `P` has shape (S, A, S); the reward is the expected rise of the potential `w`.
    """
    n_states = len(w)
    states = np.arange(n_states)
    r = P @ w - w[:, None]
    policy = r.argmax(axis=1)
    for _ in range(n_states + 1):
        system = np.eye(n_states) - gamma * P[states, policy]
        v: FloatArray = np.linalg.solve(system, r[states, policy])
        q = r + gamma * P @ v
        is_better = q.max(axis=1) > q[states, policy] + ROUNDING
        if not is_better.any():
            break
        policy = np.where(is_better, q.argmax(axis=1), policy)
    return v


def tabulate_results(results: Results) -> Data:
    """The tables of the only job."""
    return get_tables(results["samples"])


def draw_figure(data: Data) -> Figure:
    """Both lemmas, and the bound of the theorem's proof."""
    figure, (left, right) = make_graphs(2)

    norms = data["norms"]
    draw_lines(
        left,
        norms.norm,
        {
            "Lemma 3.2, its norm": norms.lemma_3_2,
            "Lemma 3.1, its norm": norms.lemma_3_1,
        },
        thin={"bound": [norms.bound]},
        yscale="log",
        title="Both lemmas",
        xlabel="norm of A, or discount",
        ylabel="norm of the inverse",
    )

    worst = data["mdps"].groupby(["kind", "purposes", "gamma"]).ratio.max().unstack()
    n_gammas = worst.shape[1]
    draw_lines(
        right,
        range(n_gammas),
        {", ".join(names): ratios for names, ratios in worst.iterrows()},
        thin={"bound": [np.ones(n_gammas)]},
        ticks=worst.columns,
        ylim=(0.0, 1.1),
        title="Bound in the proof of Theorem 3.1",
        xlabel="discount",
        ylabel="largest |v + w| / |w|",
    )
    return add_legend(figure, columns=3)


@claim(
    "theorem-3.1-any-mdp",
    "Theorem 3.1: in an MDP with finite state space, the set of terminating states of "
    "an eigenoption is nonempty (stochastic and one-way MDPs).",
    section="3",
)
def terminate_in_any_mdp(data: Data) -> Finding:
    tabular = data["mdps"][data["mdps"].purposes == "tabular"]
    fewest = tabular.fewest_stops.min()
    return Finding(
        tests=[fewest >= 1],
        measured=f"{tabular.options.sum():,} eigenoptions, each with at least {fewest} "
        "terminating state",
        evidence="Both signs of all eigenvectors of "
        f"{_describe_mdps(data)}; moves cannot always be undone.",
    )


@demonstration(
    "theorem-3.1-linear",
    "This result is applicable in both the tabular and linear function approximation "
    "case.",
    section="3",
)
def terminate_with_linear_features(data: Data) -> Finding:
    linear = data["mdps"][data["mdps"].purposes == "linear"]
    fewest = linear.fewest_stops.min()
    return Finding(
        tests=[fewest >= 1],
        measured=f"{linear.options.sum():,} options of directions in a space of "
        f"{FEATURES} features, each with at least {fewest} terminating state",
        evidence=f"Random features and directions, {_describe_mdps(data)}. It needs a "
        "solver that knows the values of states: it does not apply to Atari games, "
        "where options look one step ahead.",
    )


@claim(
    "lemma-3.1",
    "Lemma 3.1: if I + A is non-singular and the norm of A is at most 1, the norm of "
    "its inverse is at most 1 / (1 - the norm of A).",
)
def bound_norm_of_inverse(data: Data) -> Finding:
    norms = data["norms"]
    share = (norms.lemma_3_1 / norms.bound).max()
    return Finding(
        tests=[share <= 1 + ROUNDING],
        measured=f"largest norm relative to its bound: {share:.3f} ({len(norms)} "
        "matrices of norm below 1)",
        evidence="At norm 1, which the lemma includes, the bound divides by zero; the "
        "proof needs norms below 1 only.",
    )


@demonstration(
    "lemma-3.2",
    "Lemma 3.2: the infinity norm of the inverse of I - gamma T, times T, is at most "
    "1 / (1 - gamma).",
)
def bound_norm_of_discounted_inverse(data: Data) -> Finding:
    norms = data["norms"]
    share = (norms.lemma_3_2 / norms.bound).max()
    return Finding(
        tests=[share <= 1 + ROUNDING],
        measured=f"largest norm relative to its bound: {share:.3f} ({len(norms)} "
        "stochastic matrices)",
        evidence="It is always equal to the bound: the rows of a stochastic matrix sum "
        "to 1.",
    )


@claim(
    "proof-bound",
    "The norm of v + w is at most the norm of w (proof of Theorem 3.1).",
    section="3",
)
def bound_values_by_potential(data: Data) -> Finding:
    largest = data["mdps"].ratio.max()
    return Finding(
        tests=[largest <= 1 + ROUNDING],
        measured=f"largest ratio {largest:.3f}",
        evidence="Values v of the best policy that never terminates, potentials w "
        f"shifted to be at least 0; {_describe_mdps(data)}.",
    )


def _describe_mdps(data: Data) -> str:
    """What was tried, in words."""
    n_mdps = data["mdps"].mdp.nunique()
    return f"{n_mdps} random deterministic and as many stochastic MDPs, all discounts"
