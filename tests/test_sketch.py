"""Sketches: what a terminal and a notebook show of a grid."""

from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree

import gymnasium as gym
import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions import _text as sketch


def cells(high, wide):
    return np.argwhere(np.ones((high, wide), dtype=bool))


def test_layout_starts_at_the_first_state_wherever_it_is():
    shifted = np.array([[-3, 10], [-3, 11], [-2, 12]])
    assert sketch.layout(shifted).tolist() == [[0, 1, -1], [-1, -1, 2]]
    assert sketch.layout(np.array([[5, 5]], dtype=np.uint8)).tolist() == [[0]]


def test_text_has_a_wall_around():
    assert sketch.text(cells(1, 1), "x") == "███\n█x█\n███"


def test_large_maps_are_drawn_coarser():
    lines = sketch.text(cells(100, 7), ["."] * 700).split("\n")
    assert len(lines) <= sketch.MAX_SIDE + 2
    assert sketch.coarse(np.zeros((48, 48)), 48).shape == (48, 48)
    assert sketch.coarse(np.zeros((49, 2)), 48).shape == (25, 1)


def test_arrows_are_moves_and_not_action_numbers():
    policy = np.array([0, 1, 2, 3, 4, 9, 10, 130, -1, 5])
    moves = np.array([[-1, 0], [0, 1], [1, 0], [0, -1], [1, 1], [2, 0], [0, 7], [-3, 3], [0, 0], [0, 0]])
    assert "".join(sketch.arrows(policy[::-1], moves[::-1])) == "○●++9↘←↓→↑"
    assert "".join(sketch.arrows(policy, None)) == "012349++●5"
    assert sketch.arrows(np.zeros(0, dtype=np.int8), None) == []
    assert sketch.key("↑●") == ""
    assert sketch.key("9○", "maps") == "; ".join([sketch.key("○"), sketch.key("9"), "maps"])


ARROWS = {"↑": (-1, 0), "→": (0, 1), "↓": (1, 0), "←": (0, -1)}


def check_arrow(mdp, state, action, glyph):
    """Compare one glyph with the table, without `MDP.most_likely_successors`."""
    if action < 0:
        assert glyph == "●"
        return
    row = mdp.transition[[state * mdp.n_actions + action]].toarray().ravel()
    likely = np.flatnonzero(row > row.max() - 1e-9)
    moves = {tuple(move) for move in (mdp.coords[likely] - mdp.coords[state]).tolist()}
    if glyph in ARROWS:
        assert ARROWS[glyph] in moves
    elif glyph == "○":
        assert state in likely
    else:
        assert glyph == str(action)
        assert not moves & {*ARROWS.values(), (0, 0)}


@pytest.mark.parametrize(
    ("name", "legend"),
    [
        ("FrozenLake-v1", ""),
        ("FrozenLake-v1:dry", ""),
        ("CliffWalking-v1", ""),
        ("Taxi-v4", "4 pick up, 5 drop off"),
        ("minigrid:MiniGrid-Empty-5x5-v0", "heading"),
        ("minigrid:MiniGrid-FourRooms-v0", "0 turn left, 1 turn right"),
        ("minigrid:MiniGrid-SimpleCrossingS9N1-v0", "heading"),
    ],
)
def test_every_arrow_is_the_move_of_the_table(name, legend, tmp_path):
    """On version 0.1, 10 of 10 arrows of FrozenLake were wrong, and turning left in MiniGrid was an arrow up."""
    pytest.importorskip("minigrid")
    mdp = eo.from_env(gym.make(name.split(":dry")[0], **({"is_slippery": False} if ":dry" in name else {})))
    found = eo.discover(mdp, n_options=4)
    found.save(tmp_path / "skills.safetensors")
    text, page = str(found), found._repr_html_()
    maps = [part.split("\n")[1:] for part in text.split("\n\n")[:4]]
    pictures = re.findall("<svg.*?</svg>", page)
    low = mdp.coords.min(axis=0) - 1
    for i, option in enumerate(eo.load_options(tmp_path / "skills.safetensors")):
        drawn = []
        for state, action in enumerate(option.policy.tolist()):
            row, col = mdp.coords[state] - low
            check_arrow(mdp, state, action, maps[i][row][col])
            drawn.append((row, col, maps[i][row][col]))
        # The notebook shows the same, in reading order, and stops as red cells without a glyph.
        root = ElementTree.fromstring(pictures[i])
        glyphs = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
        assert glyphs == [glyph for *_, glyph in sorted(drawn) if glyph != "●"]
        assert np.array_equal(found.moves(i), eo.load_options(tmp_path / "skills.safetensors").moves(i))
    if legend:
        assert legend in text
        assert legend in page
        assert legend in str(mdp)


def test_files_without_moves_show_arrows_only_where_the_dynamics_are_proved_to_be_those_of_a_maze():
    mdp = eo.maze("four-rooms")
    found = eo.discover(mdp, n_options=2)
    old = dataclasses.replace(found, successors=None)
    assert np.array_equal(old.moves(0), found.moves(0))
    assert str(old) == str(found)
    for strange in (dataclasses.replace(old, state_space=""), dataclasses.replace(old, state_space="0" * 32)):
        assert strange.moves(0) is None
        assert "number of an action" in str(strange)
    far = found.coords.copy()
    far[-1] = 10**9
    assert dataclasses.replace(old, coords=far).moves(0) is None


@pytest.mark.parametrize(
    "wrong", [np.zeros((3, 4), int), np.full((104, 4), 104), np.full((104, 4), -1), np.zeros((104, 4))]
)
def test_successors_that_are_no_states_are_refused(wrong):
    found = eo.discover(eo.maze("four-rooms"), n_options=2)
    with pytest.raises(ValueError, match=r"successors must be states 0\.\.103"):
        dataclasses.replace(found, successors=wrong)


def test_svg_is_well_formed_and_marks_what_it_should():
    page = sketch.svg(cells(2, 2), glyphs="↑→●5", marks={3: "<&"})
    root = ElementTree.fromstring(page)
    fills = [r.get("fill") for r in root.iter("{http://www.w3.org/2000/svg}rect")]
    # The wall behind, and red where it stops.
    assert fills == ["#777", "#fff", "#fff", "#d7263d", "#fff"]
    assert [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")] == ["↑", "→", "<&"]


def test_svg_shades_values_from_blue_to_orange():
    page = sketch.svg(cells(1, 3), values=np.array([-2.0, 0.0, 1.0]))
    fills = [r.get("fill") for r in ElementTree.fromstring(page)][1:]
    assert fills[0] == "#2166ac"
    assert fills[1] == "#ffffff"
    assert fills[2] == "#f2b080"
    assert "nan" not in sketch.svg(cells(1, 2), values=np.zeros(2))
