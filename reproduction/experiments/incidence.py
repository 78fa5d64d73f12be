"""Section 5.1: options from samples.

The paper proves that singular vectors of sampled transitions are eigenvectors of the
Laplacian; it has no figure. This one shows how soon a random walk finds the options.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import eigenoptions as eo
from eigenoptions import MDP, OptionSet
from eigenoptions._types import FloatArray, IntegerArray
from eigenoptions.samples.walking import walk
from eigenoptions.spectra import laplacian
from reproduction.claims import Finding, claim, list_rows
from reproduction.drawing import add_legend, draw_lines, make_graphs
from reproduction.lab import Data, Job, Jobs, Results, stack_tables
from reproduction.readings import RANDOM_BASES
from reproduction.runs.options import MAZES, SEEDS, draw_basis

SECTION = "5.1"
ORDER = 130
QUICK = {"mazes": ["i-maze"], "steps": [50, 500, 20000], "walks": 2, "n": 4}
STEPS = (100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600)


def list_jobs(
    *,
    mazes: Sequence[str] = MAZES,
    steps: Sequence[int] = STEPS,
    walks: int = 10,
    n: int = 16,
    gamma: float = 0.9,
    seed: int = 2017,
) -> Jobs:
    """T of all transitions, and options after so many steps of a random walk."""
    exact = [
        Job(compare_with_laplacian, {"maze": maze, "n": n, "gamma": gamma})
        for maze in mazes
    ]
    sampled = [
        Job(
            compare_samples,
            {
                "maze": maze,
                "steps": tuple(steps),
                "seed": (seed, number, walk_number),
                "n": n,
                "gamma": gamma,
            },
            {"domain": maze, "walk": walk_number},
        )
        for number, maze in enumerate(mazes)
        for walk_number in range(walks)
    ]
    return {"exact": exact, "sampled": sampled}


def make_incidence(
    obs: IntegerArray, next_obs: IntegerArray, n_states: int
) -> FloatArray:
    """T: one row phi(s') - phi(s) per different transition that changes the state."""
    changes = obs != next_obs
    pairs = np.stack([obs, next_obs])[:, changes]
    before, after = np.unique(pairs, axis=1)
    phi = np.eye(n_states)
    T: FloatArray = phi[after] - phi[before]
    return T


def find_options(
    mdp: MDP,
    n: int,
    gamma: float,
    weights: str = "incidence",
    basis: int | None = None,
) -> OptionSet:
    """Options of the smallest singular values of T, after those of eigenvalue zero.

    T'T / 2 is the Laplacian of the graph with these weights. `basis` is the seed of a
    random basis of its repeated eigenvalues.
    """
    graph = eo.graph(mdp, weights=weights)
    spectrum = eo.spectrum(graph, operator="combinatorial")
    if basis is not None:
        spectrum = draw_basis(spectrum, basis)
    purposes = eo.eigenpurposes(spectrum, skip_zero=False)
    return eo.solve(mdp, purposes[: n + 2], gamma)


def compare_with_laplacian(*, maze: str, n: int, gamma: float) -> dict[str, Any]:
    """T of all transitions of a maze against its Laplacian, and the options of both."""
    mdp = eo.maze(maze)
    states = np.repeat(np.arange(mdp.n_states), mdp.n_actions)
    T = make_incidence(states, np.asarray(mdp.successors).ravel(), mdp.n_states)
    L = laplacian(eo.graph(mdp), "combinatorial").toarray()

    # Each right singular vector must be an eigenvector of L.
    _, sigma, Vt = np.linalg.svd(T, full_matrices=True)
    values = np.pad(sigma**2 / 2, (0, mdp.n_states - len(sigma)))
    V = Vt.T
    residual = L @ V - V * values

    exact = find_options(mdp, n, gamma, weights="adjacency")
    n_same = {}
    for reading, seed in {"same_options": None, **SEEDS}.items():
        sampled = find_options(mdp, n, gamma, basis=seed)
        n_same[reading] = (sampled.policy == exact.policy).all(axis=1).sum()
    return {
        "domain": maze,
        "states": mdp.n_states,
        "transitions": len(T),
        "undirected": len(np.unique(np.abs(T), axis=0)),
        "lemma_error": np.abs(T.T @ T - 2 * L).max(),
        "residual": np.abs(residual).max(),
        "options": len(exact),
        **n_same,
        "repeated": (np.diff(np.linalg.eigvalsh(L)) < 1e-9).sum(),
    }


def compare_samples(
    *, maze: str, steps: Sequence[int], seed: Sequence[int], n: int, gamma: float
) -> pd.DataFrame:
    """What a random walk has seen after so many steps, and how good its options are.

    The columns are the share of the transitions that were seen, and that of the policy
    entries that are those of the exact options. States that were never seen have no
    number yet: no option is discovered there.
    """
    mdp = eo.maze(maze)
    exact = find_options(mdp, n, gamma).policy[2:]
    moves = np.asarray(mdp.successors) != np.arange(mdp.n_states)[:, None]
    # The walk does not end at the goal.
    endless = MDP(mdp.transition)
    rng = np.random.default_rng(seed)
    path = walk(endless, max(steps), begin=mdp.start, rng=rng)

    rows = []
    for n_steps in steps:
        obs = path.obs[:n_steps]
        next_obs = path.next_obs[:n_steps]
        visited, numbers = np.unique(
            np.concatenate([obs, next_obs]), return_inverse=True
        )
        seen = MDP.from_transitions(
            (numbers[:n_steps], path.action[:n_steps], numbers[n_steps:]),
            len(visited),
            mdp.n_actions,
        )

        n_options = min(n, 2 * (len(visited) - 1))
        found = find_options(seen, n_options, gamma).policy[2:]
        n_same = (found == exact[:n_options, visited]).sum()
        n_seen = len(make_incidence(obs, next_obs, mdp.n_states))
        rows.append(
            {
                "steps": n_steps,
                "transitions_seen": n_seen / moves.sum(),
                "same_policy": n_same / exact.size,
            }
        )
    return pd.DataFrame(rows)


def tabulate_results(results: Results) -> Data:
    """One row per maze, and one per walk and number of steps."""
    return {
        "exact": pd.DataFrame([row for _, row in results["exact"]]),
        "sampled": stack_tables(results["sampled"]),
    }


def draw_figure(data: Data) -> Figure:
    """How soon a walk finds the transitions and the options, a graph per domain."""
    domains = data["sampled"].groupby("domain", sort=False)
    steps = data["sampled"].steps.unique()
    figure, axes = make_graphs(len(domains), sharey=True, ylabel="share")

    ticks = [_name_steps(n_steps) for n_steps in steps]
    if len(ticks) > 6:
        # Of many numbers every second has a label.
        ticks[1::2] = [""] * len(ticks[1::2])

    for ax, (domain, walks) in zip(axes, domains, strict=True):
        shares = walks.pivot(index="walk", columns="steps")
        draw_lines(
            ax,
            range(len(steps)),
            {
                "eigenoptions": shares.same_policy,
                "transitions seen": shares.transitions_seen,
            },
            ticks=ticks,
            title=domain,
            xlabel="steps of a random walk",
            ylim=(-0.02, 1.04),
        )
    return add_legend(figure)


@claim(
    "lemma-5.1",
    "Lemma 5.1: in the tabular case, if all transitions in the MDP have been sampled "
    "once, T'T = 2L.",
)
def equal_twice_the_laplacian(data: Data) -> Finding:
    exact = data["exact"]
    return Finding(
        tests=list(exact.lemma_error == 0),
        measured=f"largest difference {exact.lemma_error.max():g} in {len(exact)} "
        "domains",
        evidence="Each ordered pair of neighbouring states is one transition; moves "
        "into walls add nothing.",
    )


@claim(
    "theorem-5.1",
    "Theorem 5.1: if all transitions have been sampled once, the orthonormal "
    "eigenvectors of L are the right singular vectors of T.",
)
def have_eigenvectors_as_singular_vectors(data: Data) -> Finding:
    exact = data["exact"]
    return Finding(
        tests=list(exact.residual < 1e-9),
        measured=f"largest residual of a singular vector {exact.residual.max():.0e}",
        evidence="L v must equal half the squared singular value times v. (The "
        "theorem's text says columns of the transpose of V; its proof, and this test, "
        "take the columns of V.)",
    )


@claim(
    "same-options",
    "If all transitions are sampled once, this algorithm discovers the same options we "
    "obtain with the combinatorial Laplacian.",
)
def discover_same_options(data: Data) -> Finding:
    exact = data["exact"]
    return Finding(
        tests=list(exact.same_options == exact.options),
        readings={
            reading: list(exact[reading] == exact.options) for reading in RANDOM_BASES
        },
        measured=list_rows("{domain}: {same_options} of {options} options", exact),
        evidence="Policies must be equal in every state. For a repeated eigenvalue "
        f"(the open room has {exact.repeated.max()}) both sides need the same rule to "
        "choose a basis: with a random one for T they have other options.",
    )


@claim(
    "asymptotic",
    "Our sample-based approach asymptotically discovers eigenoptions.",
    section="5",
)
def discover_eigenoptions_in_the_limit(data: Data) -> Finding:
    sampled = data["sampled"]
    n_steps = sampled.steps.max()
    at_last = sampled[sampled.steps == n_steps].same_policy.mean()

    # Cases in which the walk has seen every transition.
    complete = sampled[sampled.transitions_seen == 1].same_policy
    is_same = complete == 1
    test = is_same.all() if len(complete) else None
    return Finding(
        tests=[test],
        measured=f"after {n_steps:,} steps of a random walk {at_last:.0%} of the "
        "policy entries are those of the exact options; all of them in "
        f"{is_same.sum()} of {len(complete)} cases in which every transition has been "
        "seen",
        evidence="Options of the transitions seen so far must be those of all "
        "transitions once all have been seen; not decided if no walk has seen all.",
    )


@claim(
    "fewer-transitions",
    "In MDPs in which states are sparsely connected, such as the I-Maze, the incidence "
    "matrix is preferred since it has fewer transitions than states.",
)
def have_fewer_transitions_than_states(data: Data) -> Finding:
    exact = data["exact"]
    (i_maze,) = exact[exact.domain == "i-maze"].itertuples()
    return Finding(
        tests=[i_maze.undirected < i_maze.states, i_maze.transitions < i_maze.states],
        measured=f"the I-Maze has {i_maze.transitions} transitions, "
        f"{i_maze.undirected} without direction, and {i_maze.states} states",
        evidence="Two tests: fewer unordered pairs than states, and fewer transitions. "
        "Lemma 5.1 needs both directions of a pair.",
    )


def _name_steps(n_steps: int) -> str:
    """A number of steps as a short label."""
    if n_steps >= 1000:
        return f"{n_steps / 1000:g}k"
    return str(n_steps)
