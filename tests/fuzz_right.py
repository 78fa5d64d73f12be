"""Results of random right input against slow twins."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from tests import reference
from tests.fuzz_given import Given

import eigenoptions as eo
from eigenoptions.features import OneHot
from eigenoptions.mdp import reachable
from eigenoptions.options.solver import lengths, tolerance
from eigenoptions.spectra.representations import learned_successor, successor_representation


def close(found: Any, expected: Any, rtol: float = 1e-8) -> None:
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-10)


def sure(check: Callable[[Given], None]) -> Callable[[Given], None]:
    """A wrong result, or an error, on right input is never a refusal."""

    @wraps(check)
    def checked(x: Given) -> None:
        try:
            check(x)
        except (ValueError, TypeError) as error:
            raise AssertionError(f"right input was refused: {error}") from error

    return checked


def right_graph(x: Given) -> None:
    S, A = x.mdp.n_states, x.mdp.n_actions
    moves = x.mdp.transition.toarray().reshape(S, A, S).max(axis=1) > 0
    expected = (moves | moves.T) & ~np.eye(S, dtype=bool)
    np.testing.assert_array_equal(eo.graph(x.mdp).toarray(), expected)
    close(eo.laplacian(eo.graph(x.mdp)).toarray(), reference.dense_laplacian(eo.graph(x.mdp), "normalized"))


def right_spectrum(x: Given) -> None:
    W = eo.graph(x.mdp)
    for operator in ("normalized", "combinatorial"):
        L = reference.dense_laplacian(W, operator)
        found = eo.spectrum(W, operator=operator)
        close(found.values, np.linalg.eigvalsh(L))
        close(L @ found.vectors, found.vectors * found.values)


def right_options(x: Given) -> None:
    f = np.round(x.rng.standard_normal(x.mdp.n_states), 2)
    found = eo.solve(x.mdp, eo.Purpose(f), gamma=0.9)
    expected, value = reference.planned(x.mdp.successors, f, 0.9, tolerance(np.abs(f).max(), 0.0))
    np.testing.assert_array_equal(found.policy[0], expected)
    close(found.value[0], value)
    walks = [reference.walk(x.mdp.successors, expected, s) for s in range(x.mdp.n_states)]
    np.testing.assert_array_equal(lengths(x.mdp, expected), [steps for steps, _ in walks])


def right_times(x: Given) -> None:
    chance = (None, 0.05, 0.5)[x.seed % 3]
    slow = reference.hitting_times(x.mdp, x.skills.policy, chance)
    close(eo.hitting_times(x.mdp, x.skills, option_chance=chance), slow)
    n = x.mdp.n_states
    close(eo.diffusion_time(x.mdp, x.skills, option_chance=chance), slow.sum() / (n * (n - 1)))
    close(eo.diffusion_curve(x.mdp, x.skills, option_chance=chance)[-1], slow.sum() / (n * (n - 1)))


def right_representations(x: Given) -> None:
    n, gamma = x.mdp.n_states, 0.9
    P = x.mdp.transition.toarray().reshape(n, -1, n).mean(axis=1)
    close(successor_representation(csr_array(P), gamma), np.linalg.inv(np.eye(n) - gamma * P))
    before, after = x.rng.integers(n, size=(2, 12))
    psi = np.zeros((n, n))
    for s, t in zip(before, after, strict=True):
        psi[s] += 0.3 * (np.eye(n)[s] + gamma * psi[t] - psi[s])
    close(learned_successor(before, after, n, gamma=gamma, alpha=0.3), psi)


def right_gram(x: Given) -> None:
    before, after = (csr_array(np.round(x.rng.random((6, 3)))) for _ in range(2))
    gram = eo.Gram()
    gram.add(before, after)
    T = reference.incidence(before.toarray().tolist(), after.toarray().tolist())
    T = np.array(T, dtype=float).reshape(-1, 3)
    found = gram.spectrum()
    rebuilt = (found.vectors * (2 * found.values)) @ found.vectors.T
    np.testing.assert_allclose(rebuilt, T.T @ T, atol=1e-8)


def right_files(x: Given) -> None:
    path = x.folder / "right.safetensors"
    x.skills.save(path)
    np.testing.assert_array_equal(eo.load_options(path).policy, x.skills.policy)


def right_learning(x: Given) -> None:
    twice = [eo.q_learning(x.mdp, x.skills, runs=2, episodes=4, max_steps=20, rng=x.seed) for _ in range(2)]
    np.testing.assert_array_equal(twice[0].q, twice[1].q)
    assert set(np.unique(twice[0].returns)) <= {0.0, 1.0}


def right_samples(x: Given) -> None:
    seen = eo.collect(x.mdp, 25, rng=x.seed)
    np.testing.assert_array_equal(x.mdp.successors[seen.obs, seen.action], seen.next_obs)
    exact = eo.from_env(eo.envs.MazeEnv(x.mdp))
    assert reachable(exact.transition, [0]).sum() <= exact.n_states
    np.testing.assert_array_equal(
        OneHot(x.mdp.n_states)(seen.obs).toarray(), np.eye(x.mdp.n_states)[seen.obs]
    )


RIGHT = [
    sure(check)
    for check in (
        right_graph,
        right_spectrum,
        right_options,
        right_times,
        right_representations,
        right_gram,
        right_files,
        right_learning,
        right_samples,
    )
]
