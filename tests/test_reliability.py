"""No input reaches a kernel unchecked, and no record changes after it was checked (docs/reliability.md)."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array

import eigenoptions as eo
from eigenoptions.mdp import reachable
from eigenoptions.options.solver import lengths


def _damaged(damage: str) -> csr_array:
    """A permutation of four states as csr, with one mistake in its parts."""
    made = csr_array((np.ones(4), np.array([1, 0, 3, 2]), np.arange(5)), shape=(4, 4))
    if damage == "off by one":
        made.indices[2] = 4
    elif damage == "far out":
        made.indices[2] = 10**8
    elif damage == "negative":
        made.indices[0] = -1
    elif damage == "negative pointer":
        made.indptr[0] = -5
    elif damage == "decreasing pointers":
        made.indptr[1:4] = 3, 1, 2
    elif damage == "long pointers":
        made.indptr[-1] = 10**6
    return made


DAMAGES = ("off by one", "far out", "negative", "negative pointer", "decreasing pointers", "long pointers")
ENTRIES = {
    "MDP": eo.MDP,
    "spectrum": eo.spectrum,
    "sparse solver": lambda bad: eo.spectrum(bad, 1, solver="sparse"),
    "laplacian": eo.laplacian,
    "graph": lambda bad: eo.graph(eo.MDP(np.eye(4)), bad),
    "Gram": lambda bad: eo.Gram().add(bad, csr_array(np.eye(4))),
    "Gram, second": lambda bad: eo.Gram(dedupe=False).add(csr_array(np.eye(4)), bad),
    "features": lambda bad: eo.Gram(features=lambda obs: bad).add(np.zeros((4, 1)), np.ones((4, 1))),
    "reachable": lambda bad: reachable(bad, [0]),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("entry", ENTRIES)
def test_sparse_arrays_with_wrong_indices_are_refused(entry, damage):
    with pytest.raises(ValueError, match=r"not a valid sparse array.*: build it"):
        ENTRIES[entry](_damaged(damage))


@pytest.mark.parametrize("make", [coo_array, csc_array])
def test_other_formats_are_checked_before_they_are_converted(make):
    bad = make(np.eye(3))
    (bad.coords[0] if make is coo_array else bad.indices)[0] = 10**8
    for entry in (eo.MDP, eo.spectrum):
        with pytest.raises(ValueError, match="not a valid sparse array"):
            entry(bad)


def test_a_table_with_one_successor_too_many_is_refused():
    S, A = 5, 2
    successors = np.array([[min(s + 1, S), max(s - 1, 0)] for s in range(S)])
    table = csr_array((np.ones(S * A), successors.ravel(), np.arange(S * A + 1)), shape=(S * A, S))
    with pytest.raises(ValueError, match="indices must be < 5"):
        eo.MDP(table, start=0, goal=4)


@pytest.mark.parametrize("number", [1j, np.inf, np.nan, -1.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_numbers_that_are_no_weights_are_refused(number, sparse):
    W = np.array([[0, number], [number, 0]])
    given = csr_array(W) if sparse else W
    for entry in (eo.spectrum, lambda bad: eo.graph(eo.MDP(np.eye(2)), bad), eo.MDP):
        with pytest.raises(ValueError, match=r"must be (real|finite)"):
            entry(given)


def _records():
    mdp = eo.maze("i-maze")
    options = eo.discover(mdp, 4)
    found = eo.spectrum(eo.graph(mdp), 4)
    rows = eo.LinearOptionSet([[1.0], [-1.0]], eo.features.Raw(), 2, weights=np.ones((2, 2, 1)))
    assert mdp.successors is not None
    learned = eo.q_learning(mdp, options, runs=2, episodes=2)
    return [mdp, options, options[0], found, eo.eigenpurposes(found)[0], learned, rows]


def _arrays(value):
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, tuple):
        return [array for part in value for array in _arrays(part)]
    return [value.data, value.indices, value.indptr] if hasattr(value, "indptr") else []


@pytest.mark.parametrize(
    "copied",
    [lambda x: x, lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy, dataclasses.replace],
    ids=["itself", "pickle", "copy", "deepcopy", "replace"],
)
def test_arrays_of_records_are_read_only(copied):
    for record in _records():
        parts = {name: _arrays(value) for name, value in vars(copied(record)).items()}
        assert any(parts.values())
        for name, arrays in parts.items():
            assert not any(array.flags.writeable for array in arrays), (type(record).__name__, name)


def test_records_do_not_change_with_the_arrays_they_were_made_from():
    policy, value = np.full((1, 19), -1), np.zeros((1, 19))
    coords, table, f = np.zeros((2, 2), dtype=int), np.eye(2), np.zeros(19)
    one, spectrum = np.zeros(2), np.eye(2)
    options, mdp, purpose = eo.OptionSet(policy, 4, value), eo.MDP(table, coords=coords), eo.Purpose(f)
    option, found = eo.Option(policy[0], value[0]), eo.Spectrum(one, spectrum)
    for array in (policy, value, coords, table, f, one, spectrum):
        array[:] = 10**6
    assert options.policy.max() == option.policy.max() == -1
    zeros = (options.value, option.value, mdp.coords, purpose.direction, found.values)
    assert not any(array.any() for array in zeros)
    assert mdp.transition.max() == found.vectors.max() == 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        options.policy.setflags(write=True)


def test_large_arrays_of_a_set_are_not_copied_by_a_slice():
    options = eo.discover(eo.maze("i-maze"), 4)
    assert np.shares_memory(options.policy, options[1:].policy)
    assert np.shares_memory(options.policy, options[0].policy)


@pytest.mark.parametrize(
    "policy", [np.full(19, 10**9), np.full(19, 4), np.full(19, -2), np.zeros(18, int), np.zeros(19)]
)
def test_lengths_refuses_what_is_no_policy(policy):
    with pytest.raises(ValueError, match="policy must"):
        lengths(eo.maze("i-maze"), policy)


@pytest.mark.parametrize("states", [[19], [-1], [10**9]])
def test_a_search_begins_at_states_that_exist(states):
    with pytest.raises(ValueError, match=r"states must be in 0\.\.18"):
        reachable(eo.maze("i-maze").transition, states)
