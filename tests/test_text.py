"""Maps and short descriptions as text."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions import _text


def test_layout_states_starts_at_the_first_row_and_column():
    shifted = np.array([[-3, 10], [-3, 11], [-2, 12]])
    assert _text.layout_states(shifted).tolist() == [[0, 1, -1], [-1, -1, 2]]
    assert _text.layout_states(np.array([[5, 5]], dtype=np.uint8)).tolist() == [[0]]


def test_draw_map_of_large_coordinates_is_coarser():
    cells = np.argwhere(np.ones((100, 7), dtype=bool))
    lines = _text.draw_map(cells, ["."] * 700).split("\n")
    assert len(lines) <= _text.MAX_SIDE + 2
    far_apart = _text.draw_map(np.array([[0, 0], [60_000, 60_000]]), "ab")
    assert len(far_apart.split("\n")) <= _text.MAX_SIDE + 2


def test_draw_arrows_follow_moves_and_not_action_numbers():
    cases = [
        # Action, its move, the glyph, and the glyph where moves are not known.
        (0, (-1, 0), "↑", "0"),
        (1, (0, 1), "→", "1"),
        (2, (1, 0), "↓", "2"),
        (3, (0, -1), "←", "3"),
        (4, (1, 1), "↘", "4"),
        (9, (2, 0), "9", "9"),
        (10, (0, 7), "+", "+"),
        (130, (-3, 3), "+", "+"),
        (-1, (0, 0), "●", "●"),
        (5, (0, 0), "○", "5"),
    ]
    actions, moves, glyphs, unknown = zip(*cases, strict=True)
    policy = np.array(actions)
    assert _text.draw_arrows(policy, np.array(moves)) == list(glyphs)
    assert _text.draw_arrows(policy, None) == list(unknown)


def test_turns_are_round_arrows():
    headings = np.array([0, 1, 2, 3])
    successors = np.array([[3, 1], [0, 2], [1, 3], [2, 0]])
    for policy, expected in (([0] * 4, "↶↶↶↶"), ([1] * 4, "↷↷↷↷"), ([-1] * 4, "●●●●")):
        actions = np.array(policy)
        turns = _text.find_turns(headings, actions, successors)
        drawn = _text.draw_arrows(actions, np.zeros((4, 2), dtype=int), turns)
        assert "".join(drawn) == expected


@pytest.mark.parametrize(
    "source", ["four-rooms", "rooms:4x4", "Taxi-v4", "minigrid:MiniGrid-FourRooms-v0"]
)
def test_printed_options_have_at_most_forty_lines(source):
    pytest.importorskip("minigrid")
    options = eo.discover(source, 20)
    lines = str(options).splitlines()
    assert len(lines) <= 40
    assert lines[-1] == repr(options)
    assert any(line.startswith("...") for line in lines)


def test_options_without_coordinates_are_listed():
    bare = eo.MDP(eo.maze("i-maze").transition)
    options = eo.discover(bare, 4)
    first, *others = str(options).splitlines()
    assert first.startswith("e2+")
    assert f"mean length {options[0].mean_length:.3g}" in first
    assert others[-1] == repr(options)
    assert len(others) == 5


def test_print_says_that_a_large_map_is_coarser():
    assert "one of 2 rows" in str(eo.discover("open:60x2", 2))
    assert "rows" not in str(eo.discover("open:40x2", 2))


def test_set_side_by_side_fills_rows_and_cuts_what_is_too_long():
    blocks = ["ab\nab"] * 5
    text, n_shown = _text.set_side_by_side(blocks, max_lines=5, max_width=5)
    assert text == "ab ab\nab ab\n\nab ab\nab ab"
    assert n_shown == 4
    text, n_shown = _text.set_side_by_side(["1\n2\n3\n4"], max_lines=3)
    assert text == "1\n2\n..."
    assert _text.set_side_by_side([], max_lines=3) == ("", 0)


def test_explain_glyphs_is_silent_about_arrows_and_ends_with_the_legend():
    assert _text.explain_glyphs("↑●") == ""
    assert _text.explain_glyphs("9○", "maps").endswith("; maps")


@pytest.mark.parametrize(
    "name",
    ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4", "minigrid:MiniGrid-Empty-5x5-v0"],
)
def test_arrows_of_options_lead_to_a_most_likely_state(name):
    pytest.importorskip("minigrid")
    mdp = eo.from_env(gym.make(name))
    policy = eo.discover(mdp, n_options=2).policy[0].astype(int)
    moves = _text.find_moves(mdp.coords, policy, mdp.most_likely_successors)
    shown = {glyph: move for move, glyph in _text.ARROWS.items()} | {"○": (0, 0)}
    for state, glyph in enumerate(_text.draw_arrows(policy, moves)):
        action = policy[state]
        if action < 0:
            assert glyph == "●"
        elif glyph not in shown:
            assert glyph == str(action)
        else:
            row = mdp.transition[[state * mdp.n_actions + action]].toarray().ravel()
            likely = np.flatnonzero(row > row.max() - 1e-9)
            likely_moves = mdp.coords[likely] - mdp.coords[state]
            assert list(shown[glyph]) in likely_moves.tolist()


def test_draw_spark_rises_with_its_curve():
    assert _text.draw_spark(np.linspace(0, 1, 8)) == "▁▂▃▄▅▆▇█"
    assert _text.draw_spark([5.0, 5.0], low=5.0, high=5.0) == "▁▁"
    assert len(_text.draw_spark(range(100), width=10, high=99.0)) == 10


def test_repr_of_transitions_counts_steps_and_ends():
    obs = np.arange(400.0).reshape(100, 4)
    batch = eo.Transitions(
        obs, np.zeros(100, dtype=int), obs + 1, np.arange(100) % 10 == 9
    )
    assert repr(batch).startswith(
        "Transitions(100 steps, 10 ends; obs float64 (100, 4), 0 to 399"
    )
    nothing = eo.Transitions(*(np.zeros(0, int) for _ in range(4)))
    assert "0 steps, 0 ends; obs int64 (0,)" in repr(nothing)
