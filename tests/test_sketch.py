"""Sketches: what a terminal and a notebook show of a grid."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from eigenoptions import _sketch as sketch


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


def test_arrows_for_any_number_of_actions():
    assert "".join(sketch.arrows(np.array([0, 1, 2, 3, 4, 9, 10, 130, -1]))) == "↑→↓←49++●"
    assert sketch.arrows(np.zeros(0, dtype=np.int8)) == []


def test_svg_is_well_formed_and_marks_what_it_should():
    page = sketch.svg(cells(2, 2), policy=np.array([0, 1, -1, 5]), marks={3: "<&"})
    root = ElementTree.fromstring(page)
    fills = [r.get("fill") for r in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert fills == ["#777", "#fff", "#fff", "#d7263d", "#fff"]  # the wall behind, and red where it stops
    assert [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")] == ["↑", "→", "<&"]


def test_svg_shades_values_from_blue_to_orange():
    page = sketch.svg(cells(1, 3), values=np.array([-2.0, 0.0, 1.0]))
    fills = [r.get("fill") for r in ElementTree.fromstring(page)][1:]
    assert fills[0] == "#2166ac"
    assert fills[1] == "#ffffff"
    assert fills[2] == "#f2b080"
    assert "nan" not in sketch.svg(cells(1, 2), values=np.zeros(2))
