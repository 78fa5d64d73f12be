"""Purposes, options and sets of them: what they hold, and what one does with them.

They are selected, joined, followed, checked and shown.
"""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eigenoptions as eo
from eigenoptions.options import OptionSet, Purpose
from tests.graphs import path, together
from tests.tables import make_options, make_slippery, same


@pytest.fixture(scope="module")
def options() -> OptionSet:
    return eo.discover(eo.maze("four-rooms"), n_options=6)


def list_labels(purposes: list[Purpose]) -> str:
    return " ".join(purpose.label for purpose in purposes)


# Purposes


def test_eigenpurposes_come_in_order_of_eigenvalue_plus_before_minus(four_rooms):
    sp = eo.spectrum(eo.graph(four_rooms), k=4)
    purposes = eo.eigenpurposes(sp)
    assert list_labels(purposes) == "e2+ e2- e3+ e3- e4+ e4-"
    for column in (1, 2, 3):
        plus, minus = purposes[2 * column - 2 : 2 * column]
        np.testing.assert_array_equal(plus.potential, sp.vectors[:, column])
        np.testing.assert_array_equal(minus.potential, -sp.vectors[:, column])
        assert plus.eigenvalue == minus.eigenvalue == sp.values[column]
        assert not plus.exact
        assert not minus.exact

    assert list_labels(eo.eigenpurposes(sp, both_signs=False)) == "e2+ e3+ e4+"
    with_zero = eo.eigenpurposes(sp, skip_zero=False)
    assert list_labels(with_zero).startswith("e1+ e1- e2+")


def test_eigenpurposes_of_many_components_skip_every_zero():
    sp = eo.spectrum(together(path(3), path(3), path(1)))
    assert list_labels(eo.eigenpurposes(sp, both_signs=False)) == "e4+ e5+ e6+ e7+"
    assert eo.eigenpurposes(eo.spectrum(together(path(3), path(3)), k=2)) == []
    with pytest.raises(TypeError, match="Spectrum"):
        eo.eigenpurposes(sp.vectors)


def test_purpose_label_follows_from_its_origin():
    assert [Purpose([1.0], index=3, sign=s).label for s in (1, -1)] == ["e3+", "e3-"]
    assert Purpose([1.0], goal=7).label == "goal 7"
    assert Purpose([1.0], "mine", index=3, sign=1).label == "mine"
    assert Purpose([1.0]).label == ""


@pytest.mark.parametrize("integer", [int, np.int8, np.uint16, np.int64])
def test_purpose_takes_every_kind_of_integer(integer):
    p = Purpose(
        np.arange(3), integer(4), index=integer(2), sign=integer(1), goal=integer(1)
    )
    assert p.label == "4"
    assert p.index == 2
    assert p.sign == 1
    assert p.goal == 1
    assert all(type(x) is int for x in (p.index, p.sign, p.goal))


@pytest.mark.parametrize(
    ("fields", "word"),
    [({"sign": 2}, "sign"), ({"index": 1.5}, "index"), ({"goal": "a"}, "goal")],
)
def test_purpose_with_a_wrong_origin_is_refused(fields, word):
    with pytest.raises(ValueError, match=word):
        Purpose([1.0], **fields)


def test_records_are_read_only(options):
    purpose = Purpose([1, 2], initiation=[0, 1])
    assert purpose.initiation.dtype == bool
    for array in (
        options.policy,
        options.value,
        options.mean_length,
        options[0].policy,
        purpose.potential,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(FrozenInstanceError):
        purpose.label = "x"

    # The caller's array stays writable.
    own = np.array([[0, -1]])
    make_options(own, 1)
    own[0, 0] = 0


# One option


def test_option_acts_starts_and_terminates_as_its_policy_says(options):
    option = options[0]
    assert [option.act(s) for s in range(104)] == options.policy[0].tolist()
    np.testing.assert_array_equal(option.initiation, options.policy[0] != eo.TERMINATE)
    np.testing.assert_array_equal(option.termination, ~option.initiation)
    assert option.label == "e2+"
    assert option.index == 2
    assert option.sign == 1
    assert option.goal is None
    assert option.eigenvalue == options.eigenvalues[0]
    assert option.mean_length == options.mean_length[0]
    with pytest.raises(IndexError, match="104"):
        option.act(104)


def test_mean_length_counts_the_steps_of_all_starts(corridor):
    policies = np.array([[1, 1, 1, 1, 1, 1, -1], [1, 1, 3, -1, -1, -1, -1]])
    options = OptionSet(corridor, policies)
    assert options.mean_length.tolist() == [3.5, np.inf]
    assert copy.deepcopy(options)[1:].mean_length.tolist() == [np.inf]
    assert OptionSet(corridor, np.full((1, 7), -1)).mean_length.tolist() == [0.0]


# Sets


def test_set_is_a_sequence_by_number_and_label(options):
    assert options.labels == ("e2+", "e2-", "e3+", "e3-", "e4+", "e4-")
    assert tuple(option.label for option in options) == options.labels
    for last in (options[-1], options[np.int8(5)], next(reversed(options))):
        assert last.label == "e4-"
    np.testing.assert_array_equal(options["e3-"].policy, options.policy[3])
    for wrong in (6, -7, [6], [True, False], np.array([0, -7])):
        with pytest.raises(IndexError):
            options[wrong]
    with pytest.raises(KeyError, match=r"e9\+"):
        options["e9+"]
    assert options.initiation.sum() + options.termination.sum() == 6 * 104


@given(st.data())
def test_selection_of_a_set_selects_rows(options, data):
    n = len(options)
    kind = data.draw(st.sampled_from(["slice", "numbers", "mask"]))
    if kind == "slice":
        index = data.draw(st.slices(n))
        numbers = list(range(n))[index]
    elif kind == "numbers":
        index = data.draw(st.lists(st.integers(-n, n - 1)))
        numbers = [i % n for i in index]
    else:
        index = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
        numbers = np.flatnonzero(index).tolist()
    chosen = options[index]
    assert chosen.labels == tuple(options.labels[i] for i in numbers)
    np.testing.assert_array_equal(chosen.policy, options.policy[numbers])
    np.testing.assert_array_equal(chosen.value, options.value[numbers])
    np.testing.assert_array_equal(chosen.eigenvalues, options.eigenvalues[numbers])
    assert chosen.provenance == options.provenance
    assert chosen.mdp is options.mdp


def test_sum_of_sets_has_the_options_of_both(options):
    assert same(options[:2] + options[2:], options)
    assert same(options[[]] + options, options)
    assert same(options + options[[]], options)
    goals = eo.discover(eo.maze("four-rooms"), 3, "random")
    joined = options[:2] + goals
    assert joined.labels == ("e2+", "e2-", *(f"goal {g}" for g in goals.goals))
    assert joined.indices == (2, 2, None, None, None)
    assert joined[1:3].goals == (None, goals.goals[0])
    assert joined.provenance == {"joined": [options.provenance, goals.provenance]}


def test_sum_with_a_set_of_an_estimated_table_keeps_the_exact_table(options):
    estimated = make_options(np.full((1, 104), -1), 4)
    assert (estimated + estimated[:]).mdp.is_estimated
    assert (estimated + options).mdp is options.mdp
    assert (options + estimated).mdp is options.mdp


def test_sum_of_sets_that_do_not_fit_is_refused(options, i_maze):
    with pytest.raises(ValueError, match="another state space"):
        options + eo.discover(i_maze, 2)

    # Two estimated tables of one size whose actions lead elsewhere.
    wide = eo.discover(eo.collect(eo.maze("open:2x6"), 500, rng=0), 2)
    square = eo.discover(eo.collect(eo.maze("open:3x4"), 500, rng=0), 2)
    with pytest.raises(ValueError, match="different environments"):
        wide + square

    with pytest.raises(TypeError):
        options + 1


def test_set_made_by_hand_has_labels_and_values(corridor):
    options = OptionSet(corridor, [[0, -1, 1, 1, 1, 1, 1]] * 2)
    assert options.labels == ("option 1", "option 2")
    assert not options.value.any()
    assert np.isnan(options.eigenvalues).all()
    assert options.n_states == 7
    assert options.n_actions == 4
    assert options[1:].labels == ("option 2",)


@pytest.mark.parametrize(
    ("fields", "error", "word"),
    [
        ({"policy": [[0.0] * 7]}, ValueError, "policy"),
        ({"policy": [0] * 7}, ValueError, "policy"),
        ({"policy": [[0] * 6]}, ValueError, "policy"),
        ({"policy": [[4] * 7]}, ValueError, "actions"),
        ({"policy": [[-2] * 7]}, ValueError, "actions"),
        ({"value": np.zeros((1, 3))}, ValueError, "value"),
        ({"purposes": [Purpose([1.0])] * 2}, ValueError, "purposes"),
        ({"purposes": ["e2+"]}, TypeError, "Purpose"),
        ({"provenance": [1]}, TypeError, "provenance"),
        ({"mdp": np.eye(7)}, TypeError, "MDP"),
    ],
)
def test_set_with_wrong_fields_is_refused(corridor, fields, error, word):
    with pytest.raises(error, match=word):
        OptionSet(**{"mdp": corridor, "policy": [[0] * 7], **fields})


def test_check_compares_the_dynamics(options, four_rooms, open_room):
    options.check(four_rooms)
    options.check(four_rooms.with_task(start=1, goal=2))
    changed = four_rooms.successors.copy()
    changed[0] = changed[1]
    other = eo.MDP.from_successors(changed)
    for wrong in (open_room, other):
        with pytest.raises(ValueError, match="another state space"):
            options.check(wrong)
    estimated = replace(options, mdp=replace(four_rooms, is_estimated=True))
    estimated.check(other)
    with pytest.raises(ValueError, match="another state space"):
        estimated.check(open_room)


# Following


def test_follow_ends_where_the_option_terminates(options, four_rooms):
    for i, option in enumerate(options):
        for start in (0, 50, 103):
            states = options.follow(i, start)
            assert states[0] == start
            assert option.termination[states[-1]]
            assert option.initiation[states[:-1]].all()
            moves = four_rooms.successors[states[:-1], option.policy[states[:-1]]]
            np.testing.assert_array_equal(moves, states[1:])
    np.testing.assert_array_equal(options.follow("e2-", 7), options.follow(1, 7))


def test_follow_draws_stochastic_outcomes_from_its_generator(four_rooms):
    options = eo.discover(make_slippery(four_rooms), 2)
    paths = [options.follow(0, 50, rng=seed).tolist() for seed in (0, 0, 1)]
    assert paths[0] == paths[1] != paths[2]

    generator = np.random.default_rng(0)
    steps = [len(options.follow(0, 50, generator)) - 1 for _ in range(400)]
    expected = eo.mdp.chains.compute_lengths(options.mdp, options.policy[0])[50]
    assert abs(np.mean(steps) - expected) < 4 * np.std(steps) / 20


def test_follow_of_an_endless_option_is_interrupted(corridor):
    circle = OptionSet(corridor, [[1, 3, 1, 1, 1, 1, 1]])
    assert circle.follow(0, 0, max_steps=5).tolist() == [0, 1, 0, 1, 0, 1]


# Showing itself


def test_text_of_a_set_shows_maps(options, four_rooms, slippery):
    assert (
        repr(options)
        == "OptionSet(6 options on 104 states: e2+, e2-, e3+, e3-, e4+, e4-)"
    )
    assert repr(options[:1]) == "OptionSet(1 option on 104 states: e2+)"
    assert repr(options + options).endswith("e4-, ...)")
    text = str(options)
    assert text.count("●") == options.termination.sum()
    assert text.startswith("e2+           e2-")
    assert text.splitlines()[1].startswith("█████████████ █████████████ ")
    assert text.endswith(repr(options))
    assert repr(options[0]).startswith(
        "Option(e2+: may start in 103 of 104 states, mean length "
    )
    without_coords = eo.discover(slippery, 2)
    *rows, last = str(without_coords).splitlines()
    assert [row.split()[0] for row in rows if row] == list(without_coords.labels)
    assert last == repr(without_coords)
    empty = eo.solve(four_rooms, [])
    assert str(empty) == repr(empty) == "OptionSet(0 options on 104 states: )"


def test_text_of_a_set_has_no_control_characters(corridor):
    options = OptionSet(corridor, [[1] * 7], purposes=[Purpose(None, "\x1b[31mred\a")])
    printed = (
        repr(options) + str(options) + repr(options[0]) + repr(options.purposes[0])
    )
    assert "[31m" in printed
    assert not set(printed) & {"\x1b", "\a"}


def test_pickled_set_is_the_same(options):
    assert same(pickle.loads(pickle.dumps(options)), options)


def test_an_observation_that_was_never_seen_is_refused() -> None:
    steps = [((0, 0), 0, (0, 1)), ((0, 1), 0, (0, 0))]
    options = eo.discover(eo.MDP.from_transitions(steps), 1)
    assert options[0].act(np.array([0, 1])) == options[0].act(1)
    for new in (np.array([8, 8]), {"place": 8}):
        with pytest.raises(ValueError, match="never seen"):
            options[0].act(new)
        with pytest.raises(ValueError, match="never seen"):
            options.choices(new)
