"""Purposes, options and sets of them: what they hold, how they are picked, joined, checked and shown."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eigenoptions as eo
from eigenoptions import files
from eigenoptions.options import Option, OptionSet, Purpose
from tests.graphs import path, together
from tests.test_mdp import refused


@pytest.fixture(scope="module")
def options() -> OptionSet:
    return eo.discover(eo.maze("four-rooms"), n_options=6)


def same(a, b):
    arrays = ("policy", "value", "eigenvalues", "mean_length")
    return (
        all(getattr(a, k).tobytes() == getattr(b, k).tobytes() for k in arrays)
        and a.policy.dtype == b.policy.dtype
        and (a.labels, a.n_actions, a.state_space) == (b.labels, b.n_actions, b.state_space)
    )


# Eigenpurposes ----------------------------------------------------------------------------------------------


def test_mean_lengths_follow_from_the_successors_when_they_are_asked_for():
    corridor, right = eo.maze("S...G"), np.array([[1, 1, 1, 1, -1], [1, 1, 3, -1, -1]])
    made = OptionSet(right, 4, successors=corridor.successors)
    assert made.mean_length.tolist() == [2.5, np.inf]
    assert made.mean_length is made.mean_length
    with pytest.raises(ValueError, match="read-only"):
        made.mean_length[0] = 0.0
    # A copy and a part of a set that was not asked.
    made = OptionSet(right, 4, successors=corridor.successors)
    assert copy.deepcopy(made).mean_length.tolist() == [2.5, np.inf]
    assert made[1:].mean_length.tolist() == [np.inf]
    # Given lengths are kept, and without successors they are not known.
    assert OptionSet(right, 4, mean_length=[1, 2], successors=corridor.successors).mean_length.tolist() == [
        1,
        2,
    ]
    assert np.isnan(OptionSet(right, 4).mean_length).all()


def test_eigenpurposes_come_in_order_plus_before_minus(four_rooms):
    sp = eo.spectrum(eo.graph(four_rooms), k=4)
    purposes = eo.eigenpurposes(sp)
    assert [p.label for p in purposes] == ["e2+", "e2-", "e3+", "e3-", "e4+", "e4-"]
    for i, p in enumerate(purposes):
        sign = 1 if i % 2 == 0 else -1
        np.testing.assert_array_equal(p.direction, sign * sp.vectors[:, 1 + i // 2])
        assert p.eigenvalue == sp.values[1 + i // 2]
    assert [p.label for p in eo.eigenpurposes(sp, both_signs=False)] == ["e2+", "e3+", "e4+"]
    assert [p.label for p in eo.eigenpurposes(sp, skip_zero=False)][:3] == ["e1+", "e1-", "e2+"]


def test_eigenpurposes_skip_every_zero():
    sp = eo.spectrum(together(path(3), path(3), path(1)))
    assert [p.label for p in eo.eigenpurposes(sp, both_signs=False)] == ["e4+", "e5+", "e6+", "e7+"]
    assert eo.eigenpurposes(eo.spectrum(together(path(3), path(3)), k=2)) == []


def test_a_purpose_keeps_numbers_and_masks():
    p = Purpose([1, 2], initiation=[0, 1])
    assert p.direction.dtype == np.float64
    assert p.initiation.dtype == bool
    with pytest.raises(ValueError, match="could not convert"):
        Purpose(["a", "b"])
    with pytest.raises(FrozenInstanceError):
        p.label = "x"


# One option -------------------------------------------------------------------------------------------------


def test_an_option_acts_starts_and_stops(options):
    option = options[0]
    assert isinstance(option, Option)
    for s in range(104):
        action = option.act(s)
        assert isinstance(action, int)
        assert action == options.policy[0, s]
        assert option.initiation[s] == (action != eo.TERMINATE)
        assert option.termination[s] == (action == eo.TERMINATE)
    assert eo.TERMINATE == -1
    assert (option.label, option.eigenvalue) == ("e2+", options.eigenvalues[0])
    assert option.mean_length == options.mean_length[0]
    np.testing.assert_array_equal(option.value, options.value[0])


def test_labels_come_from_index_sign_and_goal(options):
    assert [Purpose([1.0], index=3, sign=s).label for s in (1, -1)] == ["e3+", "e3-"]
    assert Purpose([1.0], goal=7).label == "goal 7"
    assert Purpose([1.0], "mine", index=3, sign=1).label == "mine"
    assert Purpose([1.0]).label == ""
    with pytest.raises(ValueError, match="sign must be 1, -1 or None, got 2"):
        Purpose([1.0], sign=2)
    assert (options.indices, options.signs) == ((2, 2, 3, 3, 4, 4), (1, -1) * 3)
    assert options.goals == (None,) * 6
    goals = eo.discover(eo.maze("i-maze"), 3, "random")
    assert goals.labels == tuple(f"goal {g}" for g in goals.goals)
    joined = eo.discover(eo.maze("i-maze"), 2) + goals
    assert joined.indices == (2, 2, None, None, None)
    assert joined[1:3].goals == (None, goals.goals[0])
    assert (joined[1].index, joined[1].sign, joined[3].goal) == (2, -1, goals.goals[1])


def test_options_are_found_by_label(options):
    assert options["e3-"].label == "e3-"
    np.testing.assert_array_equal(options["e3-"].policy, options.policy[3])
    with pytest.raises(KeyError, match=r"no option has the label 'e9\+'"):
        options["e9+"]


def test_records_are_read_only_and_short(options):
    for array in (options.policy, options.value, options.eigenvalues, options.mean_length, options[0].policy):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        Purpose([1.0, 2.0]).direction[0] = 3.0
    mine = np.array([[0, -1]])
    OptionSet(mine, 1)
    mine[0, 0] = 0  # one's own array stays writable
    assert repr(options[0]).startswith("Option(e2+: may start in 103 of 104 states, mean length ")


def test_files_keep_where_options_came_from_and_old_files_load(options, tmp_path):
    options.save(tmp_path / "new")
    again = eo.load_options(tmp_path / "new", only=[1, 2])
    assert (again.indices, again.signs, again.goals) == ((2, 3), (-1, 1), (None, None))
    header, arrays = files.read(tmp_path / "new", "options", 1)
    old = {k: v for k, v in header.items() if k not in ("rows", "indices", "signs", "goals")}
    rows = {name: arrays[name] for name in ("policy", "value")}
    files.write(tmp_path / "old", {**old, "kind": "options", "format": 1}, rows)
    loaded = eo.load_options(tmp_path / "old")
    assert loaded.labels == options.labels
    assert (loaded.indices, loaded.signs, loaded.goals) == (options.indices, options.signs, (None,) * 6)


# Sets -------------------------------------------------------------------------------------------------------


def test_a_set_is_a_sequence(options):
    assert len(options) == 6
    assert [o.label for o in options] == ["e2+", "e2-", "e3+", "e3-", "e4+", "e4-"]
    assert next(reversed(options)).label == "e4-"
    assert options[-1].label == options[5].label == options[np.int8(5)].label == "e4-"
    for wrong in (6, -7, np.int64(6)):
        with pytest.raises(IndexError):
            options[wrong]
    np.testing.assert_array_equal(options.initiation, options.policy >= 0)
    np.testing.assert_array_equal(options.termination, options.policy == -1)
    for row, stops in zip(options.policy, options.stops, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(row == -1), stops)


@given(st.data())
def test_picking_is_picking_rows(options, data):
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
    for form in (index, index if kind == "slice" else np.asarray(index, dtype=None if len(index) else int)):
        picked = options[form]
        assert isinstance(picked, OptionSet)
        assert len(picked) == len(numbers)
        assert picked.labels == tuple(options.labels[i] for i in numbers)
        np.testing.assert_array_equal(picked.policy, options.policy[numbers])
        np.testing.assert_array_equal(picked.value, options.value[numbers])
        np.testing.assert_array_equal(picked.eigenvalues, options.eigenvalues[numbers])
        assert picked.provenance == options.provenance
        assert picked.state_space == options.state_space
        assert picked.n_states == 104


def test_picking_what_is_not_there(options):
    for wrong in ([6], [True, False], np.array([0, -7])):
        with pytest.raises(IndexError):
            options[wrong]


def test_joining(options):
    assert same(options[:2] + options[2:], options)
    none = options[[]]
    assert same(none + options, options)
    assert same(options + none, options)
    twice = options + options
    assert len(twice) == 12
    assert twice.provenance == options.provenance
    other = eo.discover(eo.maze("four-rooms"), 2, "random")
    joined = options[:1] + other
    assert joined.labels == ("e2+", *other.labels)
    assert joined.provenance == {"joined": [options.provenance, other.provenance]}
    joined.check(eo.maze("four-rooms"))


def test_joining_what_does_not_belong_together(options, i_maze):
    other = eo.discover(i_maze, 2)
    refused(ValueError, lambda: options + other, "different state spaces", "discover both on one MDP")
    for wrong in (1, None, "e2+"):
        with pytest.raises(TypeError):
            options + wrong


def test_check_knows_its_state_space(options, four_rooms, open_room):
    options.check(four_rooms)
    options.check(four_rooms.with_task(start=1, goal=2))
    refused(ValueError, lambda: options.check(open_room), "another state space", "104 states", "100")
    changed = four_rooms.successors.copy()
    changed[0] = changed[1]
    other = eo.MDP(np.eye(104)[changed])
    refused(
        ValueError,
        lambda: options.check(other),
        "same size, but other dynamics",
        "discover options on this MDP",
    )
    OptionSet(options.policy, 4).check(other)  # of unknown origin: only the size counts
    refused(ValueError, lambda: OptionSet(options.policy, 5).check(other), "5 actions", "104 and 4")


def test_a_set_made_by_hand_has_names_and_numbers():
    made = OptionSet([[0, -1], [1, 1]], np.int64(2))
    assert made.labels == ("option 1", "option 2")
    assert made.value.tolist() == [[0, 0], [0, 0]]
    assert np.isnan(made.eigenvalues).all()
    assert np.isnan(made.mean_length).all()
    assert type(made.n_actions) is int
    assert made.state_space == ""
    given_lists = OptionSet([[0]], 1, value=[[2]], labels=["x"], eigenvalues=[1], mean_length=[3])
    assert given_lists[0].value.tolist() == [2.0]
    assert given_lists.labels == ("x",)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"policy": [[0.0, 1.0]]}, ["policy must be whole numbers of shape (n, S)", "float64"]),
        ({"policy": [0, 1]}, ["shape (n, S)", "(2,)"]),
        ({"policy": [[0, 4]]}, ["actions 0..3 or -1", "0..4"]),
        ({"policy": [[-2, 1]]}, ["actions 0..3 or -1", "-2..1"]),
        ({"n_actions": 0}, ["n_actions must be a whole number from 1, got 0"]),
        ({"n_actions": 2.0}, ["n_actions must be a whole number from 1, got 2.0"]),
        ({"value": np.zeros((1, 3))}, ["value must have shape (1, 2) for 1 options, got (1, 3)"]),
        ({"labels": ("a", "b")}, ["labels must have one entry for each of 1 options, got 2"]),
        ({"eigenvalues": np.zeros(2)}, ["eigenvalues must have shape (1,)", "(2,)"]),
        ({"mean_length": np.zeros((1, 1))}, ["mean_length must have shape (1,)", "(1, 1)"]),
    ],
)
def test_sets_that_are_refused(given, words):
    refused(ValueError, lambda: OptionSet(**{"policy": [[0, -1]], "n_actions": 4, **given}), *words)


# Showing itself ---------------------------------------------------------------------------------------------


def test_a_set_shows_itself(options):
    assert repr(options) == "OptionSet(6 options on 104 states: e2+, e2-, e3+, e3-, e4+, e4-)"
    assert repr(options[:1]) == "OptionSet(1 option on 104 states: e2+)"
    many = options + options
    assert repr(many).endswith("e4-, ...)")
    text = str(options)
    assert text.count("●") == options.termination.sum()
    assert text.startswith("e2+\n█████████████\n")
    assert text.endswith(repr(options))
    page = many._repr_html_()
    assert page.count("<svg") == 12
    assert page.count("#d7263d") == many.termination.sum()
    assert "mean length" in page


def test_a_set_without_coordinates_or_options_shows_itself(slippery, four_rooms):
    bare = eo.discover(slippery, 2)
    assert str(bare) == repr(bare) == "OptionSet(2 options on 3 states: e2+, e2-)"
    assert "<svg" not in bare._repr_html_()
    empty = eo.solve(four_rooms, [])
    assert repr(empty) == "OptionSet(0 options on 104 states: )"
    assert str(empty) == repr(empty)
    assert "<svg" not in empty._repr_html_()


def test_labels_are_no_markup():
    made = OptionSet([[0, -1]], 4, labels=("<script>alert(1)</script>",), coords=np.array([[0, 0], [0, 1]]))
    for page in (made._repr_html_(), OptionSet([[0]], 1, labels=("<script>",))._repr_html_()):
        assert "<script" not in page
        assert "&lt;script" in page


def test_options_are_counted_from_either_end():
    options = eo.discover(eo.maze("S..G"), 4)
    n = len(options)
    assert [options[i].label for i in range(-n, n)] == 2 * list(options.labels)
    for outside in (-n - 1, n):
        with pytest.raises(IndexError):
            options[outside]


def test_settings_of_eigenpurposes_are_named():
    with pytest.raises(TypeError, match="positional"):
        eo.eigenpurposes(eo.spectrum(eo.graph(eo.maze("S..G"))), True)


@pytest.mark.parametrize(("name", "wrong"), [("indices", 1.5), ("signs", "+"), ("goals", -2), ("labels", 3)])
def test_origins_of_options_are_numbers_and_labels_text(name, wrong):
    with pytest.raises(ValueError, match=f"{name} must be"):
        eo.OptionSet(np.zeros((1, 4), dtype=int), 2, **{name: (wrong,)})
