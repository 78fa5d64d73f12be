"""Section 5.1: options from samples.

The paper proves that singular vectors of sampled transitions are eigenvectors of the Laplacian; it has no figure.
This one shows how soon a random walk finds the options.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import eigenoptions as eo
from eigenoptions import MDP, OptionSet
from eigenoptions.options.walks import walk
from eigenoptions.spectra import laplacian
from reproduction.drawing import Figure, add_legend, draw_lines, make_graphs
from reproduction.experiments.agents import MAZES
from reproduction.lab import Claim, Claims, Data, Lab, list_rows

SECTION, ORDER = "5.1", 130
QUICK = {"mazes": ["i-maze"], "steps": [50, 500, 20000], "walks": 2, "n": 4}
STEPS = (100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600)


def run(
    lab: Lab, *, mazes=MAZES, steps=STEPS, walks=10, n=16, gamma=0.9, seed=2017
) -> Data:
    """T of all transitions against the Laplacian; and options after so many steps of a random walk."""
    settings = {"n": n, "gamma": gamma}
    jobs = [
        {
            "maze": name,
            "walk_number": w,
            "steps": tuple(steps),
            "seed": (seed, number, w),
            **settings,
        }
        for number, name in enumerate(mazes)
        for w in range(walks)
    ]
    exact = lab.pmap(
        compare_with_laplacian, [{"maze": name, **settings} for name in mazes]
    )
    return {
        "exact": pd.DataFrame(exact),
        "sampled": pd.concat(lab.pmap(compare_samples, jobs)),
    }


def make_incidence(
    obs: NDArray[np.int64], next_obs: NDArray[np.int64], n_states: int
) -> NDArray[np.float64]:
    """T: one row phi(s') - phi(s) per different transition that changes the state."""
    before, after = np.unique(np.stack([obs, next_obs])[:, obs != next_obs], axis=1)
    return np.eye(n_states)[after] - np.eye(n_states)[before]


def find_options(
    mdp: MDP, n: int, gamma: float, weights: str = "incidence"
) -> OptionSet:
    """Options of the smallest singular values of T: T'T / 2 is the Laplacian of the graph with these weights."""
    sp = eo.spectrum(eo.graph(mdp, weights=weights), operator="combinatorial")
    return eo.solve(mdp, eo.eigenpurposes(sp, skip_zero=False)[: n + 2], gamma)


def compare_with_laplacian(*, maze, n, gamma) -> dict[str, object]:
    """T of all transitions of a maze against its Laplacian, and the options of both."""
    mdp = eo.maze(maze)
    states = np.repeat(np.arange(mdp.n_states), mdp.n_actions)
    T = make_incidence(states, np.asarray(mdp.successors).ravel(), mdp.n_states)
    L = laplacian(eo.graph(mdp), "combinatorial").toarray()
    _, sigma, Vt = np.linalg.svd(T, full_matrices=True)
    values = np.pad(sigma**2 / 2, (0, mdp.n_states - len(sigma)))
    sampled, exact = (
        find_options(mdp, n, gamma),
        find_options(mdp, n, gamma, weights="adjacency"),
    )
    return {
        "domain": maze,
        "states": mdp.n_states,
        "transitions": len(T),
        "undirected": len(np.unique(np.abs(T), axis=0)),
        "lemma_error": np.abs(T.T @ T - 2 * L).max(),
        "residual": np.abs(L @ Vt.T - Vt.T * values).max(),
        "options": len(exact),
        "same_options": (sampled.policy == exact.policy).all(axis=1).sum(),
        "repeated": (np.diff(np.linalg.eigvalsh(L)) < 1e-9).sum(),
    }


def compare_samples(*, maze, walk_number, steps, seed, n, gamma) -> pd.DataFrame:
    """Share of the transitions that a walk has seen, and of the policy entries that are those of the exact options.

    States that were never seen have no number yet: no option is discovered there.
    """
    mdp = eo.maze(maze)
    exact = find_options(mdp, n, gamma).policy[2:]
    n_transitions = (
        np.asarray(mdp.successors) != np.arange(mdp.n_states)[:, None]
    ).sum()
    path = walk(
        MDP(mdp.transition),
        max(steps),
        begin=mdp.start,
        rng=np.random.default_rng(seed),
    )
    rows = []
    for count in steps:
        obs, action, next_obs = (
            path.obs[:count],
            path.action[:count],
            path.next_obs[:count],
        )
        visited, numbers = np.unique(
            np.concatenate([obs, next_obs]), return_inverse=True
        )
        seen = MDP.from_transitions(
            (numbers[:count], action, numbers[count:]), len(visited), mdp.n_actions
        )
        most = min(n, 2 * (len(visited) - 1))
        found = find_options(seen, most, gamma).policy[2:]
        share = len(make_incidence(obs, next_obs, mdp.n_states)) / n_transitions
        same = (found == exact[:most, visited]).sum() / exact.size
        rows.append({"steps": count, "transitions_seen": share, "same_policy": same})
    return pd.DataFrame(rows).assign(domain=maze, walk=walk_number)


def figure(data: Data) -> Figure:
    domains, steps = (
        data["sampled"].groupby("domain", sort=False),
        data["sampled"].steps.unique(),
    )
    picture, axes = make_graphs(len(domains), sharey=True, ylabel="share")
    # Of many numbers every second has a label.
    names = [f"{s / 1000:g}k" if s >= 1000 else str(s) for s in steps]
    ticks = [
        name if i % 2 == 0 or len(steps) <= 6 else "" for i, name in enumerate(names)
    ]
    for ax, (domain, walks) in zip(axes, domains, strict=True):
        shares = walks.pivot(index="walk", columns="steps")
        lines = {
            "eigenoptions": shares.same_policy,
            "transitions seen": shares.transitions_seen,
        }
        settings = {
            "title": domain,
            "xlabel": "steps of a random walk",
            "ylim": (-0.02, 1.04),
        }
        draw_lines(ax, range(len(steps)), lines, ticks=ticks, **settings)
    return add_legend(picture)


def claims(data: Data) -> Claims:
    exact, sampled = data["exact"], data["sampled"]
    yield Claim(
        "lemma-5.1",
        "Lemma 5.1: in the tabular case, if all transitions in the MDP have been sampled once, T'T = 2L.",
        tests=list(exact.lemma_error == 0),
        measured=f"largest difference {exact.lemma_error.max():g} in {len(exact)} domains",
        evidence="Each ordered pair of neighbouring states is one transition; moves into walls add nothing.",
    )
    yield Claim(
        "theorem-5.1",
        "Theorem 5.1: if all transitions have been sampled once, the orthonormal eigenvectors of L are the right "
        "singular vectors of T.",
        tests=list(exact.residual < 1e-9),
        measured=f"largest residual of a singular vector {exact.residual.max():.0e}",
        evidence="L v must equal half the squared singular value times v. (The theorem's text says columns of the "
        "transpose of V; its proof, and this test, take the columns of V.)",
    )
    yield Claim(
        "same-options",
        "If all transitions are sampled once, this algorithm discovers the same options we obtain with the "
        "combinatorial Laplacian.",
        tests=list(exact.same_options == exact.options),
        measured=list_rows("{domain}: {same_options} of {options} options", exact),
        evidence="Policies must be equal in every state. For a repeated eigenvalue (the open room has "
        f"{exact.repeated.max()}) both sides need the same rule to choose a basis.",
    )
    last, whole = (
        sampled.steps.max(),
        sampled[sampled.transitions_seen == 1].same_policy,
    )
    yield Claim(
        "asymptotic",
        "Our sample-based approach asymptotically discovers eigenoptions.",
        section="5",
        tests=[(whole == 1).all() if len(whole) else None],
        measured=f"after {last:,} steps of a random walk {sampled[sampled.steps == last].same_policy.mean():.0%} of "
        f"the policy entries are those of the exact options; all of them in {(whole == 1).sum()} of {len(whole)} "
        "cases in which every transition has been seen",
        evidence="Options of the transitions seen so far must be those of all transitions once all have been seen; not "
        "decided if no walk has seen all.",
    )
    (sparse,) = exact[exact.domain == "i-maze"].itertuples()
    yield Claim(
        "fewer-transitions",
        "In MDPs in which states are sparsely connected, such as the I-Maze, the incidence matrix is preferred since "
        "it has fewer transitions than states.",
        tests=[sparse.undirected < sparse.states, sparse.transitions < sparse.states],
        measured=f"the I-Maze has {sparse.transitions} transitions, {sparse.undirected} without direction, and "
        f"{sparse.states} states",
        evidence="Two tests: fewer unordered pairs than states, and fewer transitions. Lemma 5.1 needs both "
        "directions of a pair.",
    )
