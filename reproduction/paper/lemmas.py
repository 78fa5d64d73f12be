"""Appendix A: Lemmas 3.1 and 3.2, the bound in the proof of Theorem 3.1, and the theorem in other finite MDPs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions.mdp import MDP, graph
from eigenoptions.options import Purpose, eigenpurposes
from eigenoptions.options.solver import solve
from eigenoptions.spectra import spectrum
from reproduction import Claim, Pmap, Results, Settings, sizes
from reproduction import panels as plots
from reproduction.claims import experiment, judge
from reproduction.tables import Row, column, distinct, groups, series

SETTINGS = sizes(
    {"matrices": 100, "mdps": 8, "states": 24, "gammas": [0.0, 0.5, 0.9, 0.99], "seed": 2017},
    matrices=20,
    mdps=2,
    states=8,
    gammas=[0.5, 0.9],
)
# What rounding may add to a bound that is reached exactly.
ROUNDING = 1e-9
# Kinds of random MDPs, by the number of states that one action may lead to.
KINDS = {"deterministic": 1, "stochastic": 4}
# Features per state of the linear case.
FEATURES = 5


def run(settings: Settings, pmap: Pmap) -> Results:
    """Norms of random matrices, and options of random MDPs from eigenvectors and from linear features."""
    rng = np.random.default_rng(settings["seed"])
    norms = [_norms(rng, settings["states"], a) for a in np.linspace(0.0, 0.999, settings["matrices"])]
    rows = [
        {"mdp": number, "kind": kind, "gamma": gamma, "purposes": of, **row}
        for kind, reach in KINDS.items()
        for number in range(settings["mdps"])
        for mdp in [_random_mdp(rng, settings["states"], reach)]
        for of, purposes in _purposes(rng, mdp).items()
        for gamma in settings["gammas"]
        for row in [_bound(mdp, purposes, gamma)]
    ]
    # Norm 1, which Lemma 3.1 includes: I + I has the inverse I / 2.
    edge = [{"norm": 1.0, "inverse": 0.5, "bound": float("inf")}]
    return {"norms": norms, "edge": edge, "mdps": rows}


def _norms(rng: np.random.Generator, n: int, a: float) -> Row:
    """Both sides of the two lemmas, for a random matrix of this norm and a random stochastic one."""
    A = rng.normal(size=(n, n))
    A *= a / np.abs(A).sum(axis=1).max()
    T = rng.dirichlet(np.full(n, 0.2), size=n)
    inverse = np.linalg.inv(np.eye(n) - a * T) @ T
    return {
        "norm": float(a),
        "lemma_3_1": float(np.abs(np.linalg.inv(np.eye(n) + A)).sum(axis=1).max()),
        "lemma_3_2": float(np.abs(inverse).sum(axis=1).max()),
        "bound": float(1 / (1 - a)),
    }


def _random_mdp(rng: np.random.Generator, n: int, reach: int) -> MDP:
    """Three actions per state, each to `reach` random states; a ring of moves keeps the graph in one piece."""
    table = np.zeros((n, 3, n))
    for s in range(n):
        for a in range(3):
            table[s, a, rng.choice(n, size=reach, replace=False)] = rng.dirichlet(np.ones(reach))
        table[s, 0] = 0.5 * (reach > 1) * table[s, 0]
        table[s, 0, (s + 1) % n] += 1 - table[s, 0].sum()
    return MDP(csr_array(table.reshape(n * 3, n)))


def _purposes(rng: np.random.Generator, mdp: MDP) -> dict[str, list[Purpose]]:
    """Eigenpurposes of the graph, and random directions in a space of few features."""
    tabular = eigenpurposes(spectrum(graph(mdp)), skip_zero=False)
    w = rng.normal(size=(mdp.n_states, FEATURES)) @ rng.normal(size=(FEATURES, 2 * FEATURES))
    return {"tabular": tabular, "linear": [Purpose(e, f"w{i}") for i, e in enumerate(w.T)]}


def _bound(mdp: MDP, purposes: list[Purpose], gamma: float) -> Row:
    """Fewest terminating states, and the largest ratio of |v + w| to |w| for the best policy without TERMINATE."""
    options = solve(mdp, purposes, gamma)
    P = mdp.transition.toarray().reshape(mdp.n_states, mdp.n_actions, -1)
    ratio = 0.0
    for purpose in purposes:
        w = purpose.potential - purpose.potential.min()
        if w.max() > ROUNDING:
            v = _values(P, w, gamma)
            ratio = max(ratio, float(np.abs(v + w).max() / w.max()))
    return {
        "options": len(options),
        "fewest_stops": int(options.termination.sum(axis=1).min()),
        "ratio": ratio,
    }


def _values(P: NDArray[np.float64], w: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
    """Values of the eigenbehavior: the best policy that never terminates, by policy iteration."""
    r = P @ w - w[:, None]
    states = np.arange(len(w))
    policy = r.argmax(axis=1)
    for _ in range(len(w) + 1):
        v = np.linalg.solve(np.eye(len(w)) - gamma * P[states, policy], r[states, policy])
        q = r + gamma * P @ v
        better = q.max(axis=1) > q[states, policy] + ROUNDING
        if not better.any():
            break
        policy = np.where(better, q.argmax(axis=1), policy)
    return np.asarray(v)


def figure(results: Results) -> Any:
    """Both norms against their bound, and the ratio of the proof by discount."""
    norms = results["norms"]
    gammas = distinct(results["mdps"], "gamma")
    ratios = series(results["mdps"], "ratio", "kind", "purposes", "gamma")
    worst = {
        f"{kind}, {of}": [x.max() for x in by_gamma.values()]
        for kind, purposes in ratios.items()
        for of, by_gamma in purposes.items()
    }
    return plots.figure(
        [
            plots.curve_panel(
                column(norms, "norm"),
                {
                    "Lemma 3.2, its norm": column(norms, "lemma_3_2"),
                    "Lemma 3.1, its norm": column(norms, "lemma_3_1"),
                },
                "Both lemmas",
                xlabel="norm of A, or discount",
                ylabel="norm of the inverse",
                log=True,
                threads={"bound 1 / (1 - norm)": [column(norms, "bound")]},
            ),
            plots.curve_panel(
                range(len(gammas)),
                worst,
                "Bound in the proof of Theorem 3.1",
                xlabel="discount",
                ylabel="largest |v + w| / |w|",
                ticks=[f"{g:g}" for g in gammas],
                levels={"bound": 1.0},
                limits=(0.0, 1.1),
            ),
        ],
        width=plots.PAGE,
    )


def claims(results: Results) -> list[Claim]:
    """Whether every option stops in any finite MDP, and whether the bounds are kept."""
    mdps, norms = results["mdps"], results["norms"]
    share = {
        name: (column(norms, name) / column(norms, "bound")).max() for name in ("lemma_3_1", "lemma_3_2")
    }
    finite = np.isfinite(column(results["edge"], "bound")).all()
    ratio = column(mdps, "ratio").max()
    tried = f"{len(distinct(mdps, 'mdp'))} random deterministic and as many stochastic MDPs, all discounts"
    stops = {
        of: {
            "tried": tried,
            "many": sum(r["options"] for r in rows),
            "fewest": min(r["fewest_stops"] for r in rows),
        }
        for of, rows in groups(mdps, "purposes").items()
    }
    return [
        judge("theorem-3.1-any-mdp", stops["tabular"]["fewest"] >= 1, **stops["tabular"]),
        judge("theorem-3.1-linear", stops["linear"]["fewest"] >= 1, **stops["linear"], features=FEATURES),
        judge("lemma-3.1", share["lemma_3_1"] <= 1 + ROUNDING, finite, share=share["lemma_3_1"], norms=norms),
        judge("lemma-3.2", share["lemma_3_2"] <= 1 + ROUNDING, share=share["lemma_3_2"], norms=norms),
        judge("proof-bound", ratio <= 1 + ROUNDING, ratio=ratio, tried=tried),
    ]


EXPERIMENT = experiment("lemmas", SETTINGS, run=run, figure=figure, claims=claims)
