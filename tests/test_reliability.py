"""No input reaches a kernel unchecked, and no record changes after it was checked (docs/reliability.md)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array

import eigenoptions as eo
from eigenoptions.discovery.hierarchy import mdp_with_options
from eigenoptions.mdp import reachable
from eigenoptions.spectra.representations import (
    default_representation,
    learn_representation,
    successor_representation,
)

DAMAGES = ("off by one", "negative", "decreasing pointers", "long pointers")


def make_damaged(damage: str) -> csr_array:
    """A permutation of four states as csr, with one mistake in its parts."""
    made = csr_array((np.ones(4), np.array([1, 0, 3, 2]), np.arange(5)), shape=(4, 4))
    if damage == "decreasing pointers":
        made.indptr[1:4] = 3, 1, 2
    elif damage == "long pointers":
        made.indptr[-1] = 10**6
    else:
        made.indices[2] = 4 if damage == "off by one" else -1
    return made


ENTRIES = {
    "MDP": eo.MDP,
    "spectrum": eo.spectrum,
    "sparse solver": lambda bad: eo.spectrum(bad, 1),
    "laplacian": eo.laplacian,
    "graph": lambda bad: eo.graph(eo.MDP(np.eye(4)), bad),
    "successor representation": lambda bad: successor_representation(bad, 0.9),
    "default representation": lambda bad: default_representation(bad, [-1.0] * 4, 1.0),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("entry", ENTRIES)
def test_sparse_arrays_with_wrong_indices_are_refused(entry, damage):
    with pytest.raises(ValueError, match="sparse"):
        ENTRIES[entry](make_damaged(damage))


@pytest.mark.parametrize("make", [coo_array, csc_array])
def test_other_formats_are_checked_before_they_are_converted(make):
    bad = make(np.eye(3))
    (bad.coords[0] if make is coo_array else bad.indices)[0] = 10**8
    for entry in (eo.MDP, eo.spectrum):
        with pytest.raises(ValueError, match="sparse"):
            entry(bad)


@pytest.mark.parametrize("number", [1j, np.inf, np.nan, -1.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_numbers_that_are_no_weights_are_refused(number, sparse):
    W = np.array([[0, number], [number, 0]])
    given = csr_array(W) if sparse else W
    for entry in (eo.spectrum, lambda bad: eo.graph(eo.MDP(np.eye(2)), bad), eo.MDP):
        with pytest.raises(ValueError, match=r"must be (real|finite)"):
            entry(given)


@pytest.mark.parametrize("states", [[19], [-20], [10**9], [1.5], ["x"]])
def test_a_search_begins_at_states_that_exist(states):
    with pytest.raises(IndexError):
        reachable(eo.maze("i-maze").transition, states)


UNCLEAR = {
    "run_options, no options": lambda env, mdp: eo.envs.run_options(env, None),
    "run_options, numbers": lambda env, mdp: eo.envs.run_options(env, [1, 2]),
    "run_options, warm_up": lambda env, mdp: eo.envs.run_options(
        env, eo.discover(mdp, 2), warm_up=-1
    ),
    "run_options, rng": lambda env, mdp: eo.envs.run_options(
        env, eo.discover(mdp, 2), rng=-5
    ),
    "Spectrum, text": lambda env, mdp: eo.Spectrum("x", "y"),
    "Spectrum, nothing": lambda env, mdp: eo.Spectrum(None, None),
    "Spectrum, shapes": lambda env, mdp: eo.Spectrum([1.0, 2.0], np.eye(3)),
    "Spectrum, value": lambda env, mdp: eo.Spectrum([0.0, np.nan, 1.0], np.eye(3)),
    "Spectrum, vector": lambda env, mdp: eo.Spectrum(
        [0.0, 1.0], np.array([[1.0, 0.0], [np.inf, 1.0]])
    ),
    "Spectrum, complex": lambda env, mdp: eo.Spectrum([0.0, 1.0], np.eye(2) * 1j),
    "from_env, seed": lambda env, mdp: eo.from_env(env, seed="x"),
    "Numbered, seed": lambda env, mdp: eo.envs.Numbered(env, seed=-1),
    "weights of 1e308": lambda env, mdp: eo.spectrum(
        np.array([[0, 1e308], [1e308, 0]])
    ),
    "options of nothing": lambda env, mdp: mdp_with_options(mdp, 3),
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_what_was_unclear_names_the_limit(name):
    mdp = eo.maze("S..G")
    with pytest.raises((ValueError, TypeError), match=r"must|a part is|got"):
        UNCLEAR[name](eo.envs.MazeEnv(mdp), mdp)


def test_numbers_that_are_no_random_walk_are_refused():
    for P in ([[2.0]], [[-1.0]], [[np.nan]], np.ones((2, 3)), [[1j]]):
        with pytest.raises(ValueError, match="P must"):
            successor_representation(np.array(P), 0.9)
    for before in ([0, 2], [-1, 0], [0.5, 1]):
        with pytest.raises(ValueError, match="must"):
            learn_representation(before, [0, 1], 2)
