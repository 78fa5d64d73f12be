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
    policy = np.array([0, 1, 2, 3, 4, 9, 10, 130, -1, 5])
    moves = np.array(
        [
            [-1, 0],
            [0, 1],
            [1, 0],
            [0, -1],
            [1, 1],
            [2, 0],
            [0, 7],
            [-3, 3],
            [0, 0],
            [0, 0],
        ]
    )
    assert "".join(_text.draw_arrows(policy, moves)) == "↑→↓←↘9++●○"
    assert "".join(_text.draw_arrows(policy, None)) == "012349++●5"
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
        if glyph in shown:
            row = (
                mdp.transition[[state * mdp.n_actions + policy[state]]]
                .toarray()
                .ravel()
            )
            likely = np.flatnonzero(row > row.max() - 1e-9)
            assert shown[glyph] in set(
                map(tuple, (mdp.coords[likely] - mdp.coords[state]).tolist())
            )
        else:
            assert glyph == ("●" if policy[state] < 0 else str(policy[state]))


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
