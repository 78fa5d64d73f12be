"""Appendix A: lemmas, and any finite MDP.

Proofs of Theorem 3.1 and of its lemmas; the figure is ours: random matrices and random MDPs against the bounds.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import eigenoptions as eo
from eigenoptions import MDP, Purpose
from reproduction.drawing import Figure, add_legend, draw_lines, make_graphs
from reproduction.lab import Claim, Claims, Data, Lab

SECTION, ORDER = "Appendix A", 35
QUICK = {"matrices": 20, "mdps": 2, "states": 8, "gammas": [0.5, 0.9]}
# What rounding may add to a bound that is reached exactly.
ROUNDING = 1e-9
# Features per state of the linear case.
FEATURES = 5


def run(
    lab: Lab,
    *,
    matrices=100,
    mdps=8,
    states=24,
    gammas=(0.0, 0.5, 0.9, 0.99),
    seed=2017,
) -> Data:
    """Norms of random matrices, and options of random MDPs from eigenvectors and from linear features."""
    job = {
        "matrices": matrices,
        "mdps": mdps,
        "states": states,
        "gammas": tuple(gammas),
        "seed": seed,
    }
    return lab.pmap(sample, [job])[0]


def sample(*, matrices, mdps, states, gammas, seed) -> Data:
    """Both sides of the lemmas for random matrices, and those of the theorem for random MDPs."""
    rng = np.random.default_rng(seed)
    norms = [measure_norms(rng, states, a) for a in np.linspace(0.0, 0.999, matrices)]
    rows = [
        {
            "mdp": number,
            "kind": kind,
            "gamma": gamma,
            "purposes": name,
            **measure_bound(mdp, purposes, gamma),
        }
        for kind, reach in (("deterministic", 1), ("stochastic", 4))
        for number in range(mdps)
        for mdp in [make_mdp(rng, states, reach)]
        for name, purposes in make_purposes(rng, mdp).items()
        for gamma in gammas
    ]
    return {"norms": pd.DataFrame(norms), "mdps": pd.DataFrame(rows)}


def measure_norms(rng: np.random.Generator, n: int, a: float) -> dict[str, float]:
    """Both sides of the two lemmas, for a random matrix of this norm and a random stochastic one."""
    A = rng.normal(size=(n, n))
    A *= a / np.abs(A).sum(axis=1).max()
    T = rng.dirichlet(np.full(n, 0.2), size=n)
    return {
        "norm": a,
        "lemma_3_1": np.linalg.norm(np.linalg.inv(np.eye(n) + A), np.inf),
        "lemma_3_2": np.linalg.norm(np.linalg.inv(np.eye(n) - a * T) @ T, np.inf),
        "bound": 1 / (1 - a),
    }


def make_mdp(rng: np.random.Generator, n: int, reach: int) -> MDP:
    """Three actions per state, each to `reach` random states; a ring of moves keeps the graph in one piece."""
    table = np.zeros((n, 3, n))
    for s in range(n):
        for a in range(3):
            table[s, a, rng.choice(n, size=reach, replace=False)] = rng.dirichlet(
                np.ones(reach)
            )
        table[s, 0] = 0.5 * (reach > 1) * table[s, 0]
        table[s, 0, (s + 1) % n] += 1 - table[s, 0].sum()
    return MDP(table)


def make_purposes(rng: np.random.Generator, mdp: MDP) -> dict[str, list[Purpose]]:
    """Eigenpurposes of the graph, and random directions in a space of few features."""
    tabular = eo.eigenpurposes(eo.spectrum(eo.graph(mdp)), skip_zero=False)
    w = rng.normal(size=(mdp.n_states, FEATURES)) @ rng.normal(
        size=(FEATURES, 2 * FEATURES)
    )
    return {
        "tabular": tabular,
        "linear": [Purpose(e, f"w{i}") for i, e in enumerate(w.T)],
    }


def measure_bound(mdp: MDP, purposes: list[Purpose], gamma: float) -> dict[str, float]:
    """Fewest terminating states, and the largest ratio of |v + w| to |w| for the best policy without TERMINATE."""
    options = eo.solve(mdp, purposes, gamma)
    P = mdp.transition.toarray().reshape(mdp.n_states, mdp.n_actions, -1)
    shifted = [purpose.potential - np.min(purpose.potential) for purpose in purposes]
    varied = [w for w in shifted if w.max() > ROUNDING]
    ratio = max(
        np.abs(solve_eigenbehavior(P, w, gamma) + w).max() / w.max() for w in varied
    )
    return {
        "options": len(options),
        "fewest_stops": options.termination.sum(axis=1).min(),
        "ratio": ratio,
    }


def solve_eigenbehavior(
    P: NDArray[np.float64], w: NDArray[np.float64], gamma: float
) -> NDArray[np.float64]:
    """Values of the best policy that never terminates, by policy iteration."""
    r = P @ w - w[:, None]
    states = np.arange(len(w))
    policy = r.argmax(axis=1)
    for _ in range(len(w) + 1):
        v = np.linalg.solve(
            np.eye(len(w)) - gamma * P[states, policy], r[states, policy]
        )
        q = r + gamma * P @ v
        better = q.max(axis=1) > q[states, policy] + ROUNDING
        if not better.any():
            break
        policy = np.where(better, q.argmax(axis=1), policy)
    return v


def figure(data: Data) -> Figure:
    norms = data["norms"]
    picture, (left, right) = make_graphs(2)
    lines = {
        "Lemma 3.2, its norm": norms.lemma_3_2,
        "Lemma 3.1, its norm": norms.lemma_3_1,
    }
    draw_lines(left, norms.norm, lines, thin={"bound": [norms.bound]}, yscale="log")
    left.set(
        title="Both lemmas",
        xlabel="norm of A, or discount",
        ylabel="norm of the inverse",
    )
    worst = data["mdps"].groupby(["kind", "purposes", "gamma"]).ratio.max().unstack()
    lines, x = (
        {", ".join(names): row for names, row in worst.iterrows()},
        range(worst.shape[1]),
    )
    draw_lines(
        right,
        x,
        lines,
        thin={"bound": [np.ones(len(x))]},
        ticks=worst.columns,
        ylim=(0.0, 1.1),
    )
    right.set(
        title="Bound in the proof of Theorem 3.1",
        xlabel="discount",
        ylabel="largest |v + w| / |w|",
    )
    return add_legend(picture, columns=3)


def claims(data: Data) -> Claims:
    norms, mdps = data["norms"], data["mdps"]
    tried = f"{mdps.mdp.nunique()} random deterministic and as many stochastic MDPs, all discounts"
    tabular, linear = (mdps[mdps.purposes == name] for name in ("tabular", "linear"))
    yield Claim(
        "theorem-3.1-any-mdp",
        "Theorem 3.1: in an MDP with finite state space, the set of terminating states of an eigenoption is nonempty "
        "(stochastic and one-way MDPs).",
        section="3",
        tests=[tabular.fewest_stops.min() >= 1],
        measured=f"{tabular.options.sum():,} eigenoptions, each with at least {tabular.fewest_stops.min()} terminating "
        "state",
        evidence=f"Both signs of all eigenvectors of {tried}; moves cannot always be undone.",
    )
    yield Claim(
        "theorem-3.1-linear",
        "This result is applicable in both the tabular and linear function approximation case.",
        section="3",
        tests=[linear.fewest_stops.min() >= 1],
        measured=f"{linear.options.sum():,} options of directions in a space of {FEATURES} features, each with at "
        f"least {linear.fewest_stops.min()} terminating state",
        evidence=f"Random features and directions, {tried}. It needs a solver that knows the values of states: it "
        "does not apply to Atari games, where options look one step ahead.",
    )
    share = (norms.lemma_3_1 / norms.bound).max()
    yield Claim(
        "lemma-3.1",
        "Lemma 3.1: if I + A is non-singular and the norm of A is at most 1, the norm of its inverse is at most "
        "1 / (1 - the norm of A).",
        tests=[share <= 1 + ROUNDING],
        measured=f"largest norm relative to its bound: {share:.3f} ({len(norms)} matrices of norm below 1)",
        evidence="At norm 1, which the lemma includes, the bound divides by zero; the proof needs norms below 1 only.",
    )
    share = (norms.lemma_3_2 / norms.bound).max()
    yield Claim(
        "lemma-3.2",
        "Lemma 3.2: the infinity norm of the inverse of I - gamma T, times T, is at most 1 / (1 - gamma).",
        tests=[share <= 1 + ROUNDING],
        measured=f"largest norm relative to its bound: {share:.3f} ({len(norms)} stochastic matrices)",
        evidence="It is always equal to the bound: the rows of a stochastic matrix sum to 1.",
    )
    yield Claim(
        "proof-bound",
        "The norm of v + w is at most the norm of w (proof of Theorem 3.1).",
        section="3",
        tests=[mdps.ratio.max() <= 1 + ROUNDING],
        measured=f"largest ratio {mdps.ratio.max():.3f}",
        evidence=f"Values v of the best policy that never terminates, potentials w shifted to be at least 0; {tried}.",
    )
