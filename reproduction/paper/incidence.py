"""Section 5.1: options from sampled transitions, by the singular vectors of the incidence matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from eigenoptions.mdp import MDP, graph, maze
from eigenoptions.options import OptionSet, eigenpurposes
from eigenoptions.options.solver import solve
from eigenoptions.spectra import laplacian, spectrum
from reproduction import Claim, Note, Pmap, Results, Settings, sizes
from reproduction import panels as plots
from reproduction.claims import experiment, judge, note
from reproduction.paper.jobs import MAZES
from reproduction.tables import Row, column, curve_row, distinct, grid, series, where

STEPS = [100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600]
SETTINGS = sizes(
    {"mazes": MAZES, "steps": STEPS, "walks": 10, "options": 16, "gamma": 0.9, "seed": 2017},
    mazes=["i-maze"],
    steps=[50, 500, 20000],
    walks=2,
    options=4,
)
# Most numbers of steps that are all written below an axis.
MAX_TICKS = 6
# Largest entry of a residual that is rounding.
ROUNDING = 1e-9


def run(settings: Settings, pmap: Pmap) -> Results:
    """T of all transitions against the Laplacian; and options after so many steps of a random walk."""
    exact, sampled = [], []
    for number, name in enumerate(settings["mazes"]):
        mdp = maze(name)
        options = _options(mdp, incidence(mdp), settings)
        exact.append({"domain": name, **_compared(mdp, options, settings)})
        for walk in range(settings["walks"]):
            rng = np.random.default_rng([settings["seed"], number, walk])
            path = _random_walk(mdp, max(settings["steps"]), rng)
            for steps in settings["steps"]:
                row = {"domain": name, "walk": walk, "steps": steps}
                sampled.append(row | _found(mdp, options, path[: steps + 1], settings))
    return {"exact": exact, "sampled": sampled}


def incidence(mdp: MDP, path: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """T: one row phi(s') - phi(s) per different transition that changes the state, of a path or of the whole MDP."""
    if path is None:
        start = np.repeat(np.arange(mdp.n_states), mdp.n_actions)
        pairs = np.stack([start, np.asarray(mdp.successors).ravel()], axis=1)
    else:
        pairs = np.stack([path[:-1], path[1:]], axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    states = np.eye(mdp.n_states)
    return np.asarray(states[pairs[:, 1]] - states[pairs[:, 0]])


def _options(mdp: MDP, T: NDArray[np.float64], settings: Settings) -> OptionSet:
    """Options of the smallest singular values of T, in the library's basis of repeated ones.

    T'T / 2 is the Laplacian of the graph of the sampled moves, so its graph is read off T'T.
    """
    gram = T.T @ T
    weights = np.where(np.eye(len(gram)) > 0, 0.0, -gram / 2)
    sp = spectrum(csr_array(weights), operator="combinatorial")
    return solve(mdp, eigenpurposes(sp, skip_zero=False), settings["gamma"])[: settings["options"] + 2]


def _compared(mdp: MDP, options: OptionSet, settings: Settings) -> Row:
    T, W = incidence(mdp), graph(mdp)
    L = laplacian(W, "combinatorial").toarray()
    _, sigma, Vt = np.linalg.svd(T, full_matrices=True)
    values = np.zeros(mdp.n_states)
    values[: len(sigma)] = sigma**2 / 2
    sp = spectrum(W, operator="combinatorial")
    own = solve(mdp, eigenpurposes(sp, skip_zero=False), settings["gamma"])[: len(options)]
    return {
        "states": mdp.n_states,
        "transitions": len(T),
        "undirected": len(np.unique(np.abs(T), axis=0)),
        "lemma_error": float(np.abs(T.T @ T - 2 * L).max()),
        "residual": float(np.abs(L @ Vt.T - Vt.T * values).max()),
        "options": len(own),
        "same_options": int((own.policy == options.policy).all(axis=1).sum()),
        "repeated": int((np.diff(sp.values) < 1e-9).sum()),
    }


def _random_walk(mdp: MDP, steps: int, rng: np.random.Generator) -> NDArray[np.int64]:
    successors, path = np.asarray(mdp.successors), [mdp.start or 0]
    for a in rng.integers(mdp.n_actions, size=steps).tolist():
        path.append(int(successors[path[-1], a]))
    return np.array(path)


def _found(mdp: MDP, exact: OptionSet, path: NDArray[np.int64], settings: Settings) -> Row:
    """Share of the transitions seen, and of the policy entries that equal those of the exact options.

    States that were never seen have no value yet: no option is discovered there, and moves to them stay where they are.
    """
    T, here = incidence(mdp, path), np.unique(path)
    inside = np.arange(len(here))
    number = np.full(mdp.n_states, -1)
    number[here] = inside
    to = number[np.asarray(mdp.successors)[here]]
    moves = csr_array(np.eye(len(here))[np.where(to < 0, inside[:, None], to).ravel()])
    seen = MDP(moves, coords=None if mdp.coords is None else mdp.coords[here])
    most = min(settings["options"], 2 * (len(here) - 1))
    own = _options(seen, T[:, here], {**settings, "options": most})
    same = (own.policy[2 : most + 2] == exact.policy[2 : most + 2][:, here]).sum() / exact.policy[2:].size
    return {"transitions_seen": len(T) / len(incidence(mdp)), "same_policy": float(same)}


def figure(results: Results) -> Any:
    """Share of transitions seen, and of option policies that are the exact ones, against the steps of a walk."""
    parts = {"eigenoptions": "same_policy", "transitions seen": "transitions_seen"}
    steps = distinct(results["sampled"], "steps")
    # Of many numbers every second, or the labels would overlap.
    every = 2 if len(steps) > MAX_TICKS else 1
    names = [f"{s / 1000:g}k" if s >= 1000 else str(s) for s in steps]
    ticks = [name if i % every == 0 else "" for i, name in enumerate(names)]
    panels: dict[str, Any] = {}
    for words, part in parts.items():
        for name, walks in series(results["sampled"], part, "domain", "walk").items():
            panel = panels.setdefault(name, {"x": range(len(steps)), "series": {}})
            panel["series"][words] = [*walks.values()]
    row = curve_row(panels, "share", xlabel="steps of a random walk", ticks=ticks, limits=(-0.02, 1.04))
    return plots.figure(row, width=plots.PAGE)


def claims(results: Results) -> list[Claim]:
    """Lemma 5.1, Theorem 5.1, the same options, and what samples lead to."""
    exact, sampled = results["exact"], results["sampled"]
    error, residual, repeated = (column(exact, name) for name in ("lemma_error", "residual", "repeated"))
    last = max(r["steps"] for r in sampled)
    whole = column(sampled, "same_policy", transitions_seen=1)
    (sparse,) = where(exact, domain="i-maze")
    return [
        judge("lemma-5.1", *(error == 0), error=error.max(), exact=exact, rows=exact),
        judge("theorem-5.1", *(residual < ROUNDING), error=residual.max()),
        judge(
            "same-options",
            *(r["same_options"] == r["options"] for r in exact),
            exact=exact,
            repeated=int(repeated.max()),
        ),
        judge(
            "asymptotic",
            (whole == 1).all() if len(whole) else None,
            last=last,
            same=column(sampled, "same_policy", steps=last).mean(),
            right=(whole == 1).sum(),
            whole=whole,
        ),
        judge(
            "fewer-transitions",
            sparse["undirected"] < sparse["states"],
            sparse["transitions"] < sparse["states"],
            sparse=sparse,
        ),
    ]


def notes(results: Results) -> list[Note]:
    """How soon options are right."""
    shares = series(results["sampled"], "same_policy", "domain", "steps")
    lines = {name: {f"{s:,}": x.mean() for s, x in of.items()} for name, of in shares.items()}
    return [note("missing-transitions", grid("share of exact policy entries", lines, ".0%"))]


EXPERIMENT = experiment("incidence", SETTINGS, run=run, figure=figure, claims=claims, notes=notes)
