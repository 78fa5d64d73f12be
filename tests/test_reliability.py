"""No input reaches a kernel unchecked, no record changes (docs/reliability.md)."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array

import eigenoptions as eo
from eigenoptions._validation import Record
from eigenoptions.discovery.hierarchy import mdp_with_options
from eigenoptions.mdp import reachable
from eigenoptions.samples.collection import run_options
from eigenoptions.samples.features import Raw
from eigenoptions.samples.linear import LinearOptionSet
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
    "run_options, no options": lambda env, mdp: run_options(env, None),
    "run_options, numbers": lambda env, mdp: run_options(env, [1, 2]),
    "run_options, warm_up": lambda env, mdp: run_options(
        env, eo.discover(mdp, 2), warm_up=-1
    ),
    "run_options, rng": lambda env, mdp: run_options(env, eo.discover(mdp, 2), rng=-5),
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


def list_arrays(record):
    """Every array that a record holds, also in its parts."""
    for value in vars(record).values():
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, csr_array):
            yield from (value.data, value.indices, value.indptr)
        elif isinstance(value, Record):
            yield from list_arrays(value)
        elif isinstance(value, tuple):
            for part in value:
                yield from list_arrays(part)


def make_records():
    """One record of each kind that holds arrays."""
    options = eo.discover("i-maze", 2)
    learned = LinearOptionSet(
        [eo.Purpose([1.0])], Raw(), 2, weights=[[[0.0], [1.0]]], threshold=[0.5]
    )
    return {
        "MDP": options.mdp,
        "OptionSet": options,
        "Option": options[0],
        "Purpose": options.purposes[0],
        "LinearOptionSet": learned,
        "Spectrum": eo.spectrum(eo.graph(options.mdp), 3),
        "Transitions": eo.Transitions.of(([0, 1], [0, 1], [1, 0])),
        "LearningRecord": eo.q_learning(options.mdp, runs=1, episodes=2),
    }


RECORDS = make_records()


@pytest.mark.parametrize("kind", RECORDS)
@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda record: pickle.loads(pickle.dumps(record))],
)
def test_copies_of_records_cannot_be_written_to(kind, duplicate):
    record = RECORDS[kind]
    twin = duplicate(record)
    assert type(twin) is type(record)
    assert repr(twin) == repr(record)
    arrays = list(list_arrays(twin))
    assert arrays
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)


def test_a_record_does_not_share_memory_that_its_owner_can_reopen(four_rooms):
    policy = np.zeros((1, 104), dtype=np.int64)
    potential = np.zeros(104)
    for array in (policy, potential):
        array.setflags(write=False)
    options = eo.OptionSet(four_rooms, policy, purposes=[eo.Purpose(potential)])
    for array in (policy, potential):
        array.setflags(write=True)
        array[...] = 100
    assert options.policy.max() == 0
    assert options.purposes[0].potential.max() == 0


def test_a_changed_pickle_is_checked_again():
    options = RECORDS["OptionSet"]
    make, (kind, values) = options.__reduce__()
    with pytest.raises(ValueError, match="policy"):
        make(kind, {**values, "policy": np.full_like(options.policy, 100)})
    make, (kind, values) = options[0].__reduce__()
    with pytest.raises(ValueError, match="policy"):
        make(kind, {**values, "policy": np.full_like(options[0].policy, 100)})


def test_deep_copies_share_arrays_and_nothing_that_can_change():
    options = RECORDS["OptionSet"]
    twin = copy.deepcopy(options)
    assert twin.policy is options.policy
    assert twin.mdp.transition.data is options.mdp.transition.data
    twin.provenance["note"] = 1
    assert "note" not in options.provenance


def test_small_integer_and_float_types_are_converted_once(i_maze):
    options = eo.discover(i_maze, 2)
    counts = {"runs": np.int8(20), "episodes": np.int8(10), "max_steps": np.int8(50)}
    chances = {"option_chance": np.float16(0.3), "stop_chance": np.float32(0.1)}
    record = eo.q_learning(i_maze, options, **counts, **chances)
    assert record.returns.shape == (20, 10)
    kinds = {name: type(record.settings[name]) for name in chances}
    assert kinds == {"option_chance": float, "stop_chance": float}
    env = eo.OptionsWrapper(eo.envs.MazeEnv(i_maze), options, **chances)
    for number in (env.option_chance, env.stop_chance, env.action_space.option_chance):
        assert type(number) is float
