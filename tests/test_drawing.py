"""Maps for the terminal: every state has its place and colour, and large mazes show means instead of samples."""

from __future__ import annotations

import numpy as np
import pytest

from eigenoptions import _text as sketch
from eigenoptions.cli import drawing


def cells(high, wide):
    return np.argwhere(np.ones((high, wide), dtype=bool))


def test_a_cell_has_the_colour_of_its_level():
    coords, level = cells(1, 3), np.array([-1.0, 0.0, 1.0])
    line = drawing.cell_map(coords, "→→●", level, colour=True, wide=True)[1]
    assert line.plain == "██→ → ● ██"
    styles = [str(span.style) for span in line.spans]
    assert styles[1:4] == ["#101010 on #2166ac", "#101010 on #ffffff", "bold #ffffff on #d7263d"]
    plain = drawing.cell_map(coords, "→→●", level)[1]
    assert (plain.plain, [s for s in plain.spans if s.style]) == ("█→→●█", [])


def test_a_trail_ends_at_the_agent():
    line = drawing.cell_map(cells(1, 3), "→→●", trail=[0, 1], colour=True)[1]
    assert line.plain == f"█→{drawing.AGENT}●█"
    assert [drawing.TRAIL_COLOR in str(span.style) for span in line.spans] == [
        False,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("shape", [(60, 60), (61, 97), (7, 200), (200, 7)])
def test_a_block_has_the_mean_of_its_states(shape, rng):
    coords = cells(*shape)[rng.random(shape[0] * shape[1]) < 0.8]
    level = rng.uniform(0, 1, len(coords))
    stops = np.zeros(len(coords), dtype=bool)
    stops[3] = True
    lines = drawing.block_map(coords, level, stops, 30, colour=True)
    step = -(-(int(coords[:, 1].max()) - int(coords[:, 1].min()) + 1) // 30)
    place = (coords - coords.min(axis=0)) // step
    assert max(line.cell_len for line in lines) == place[:, 1].max() + 1 <= 30
    for y in range(int(place[:, 0].max()) + 1):
        for x in range(int(place[:, 1].max()) + 1):
            here = (place == (y, x)).all(axis=1)
            expected = drawing.WALL_COLOR
            if here.any():
                expected = sketch.STOP_COLOR if stops[here].any() else sketch.shade(float(level[here].mean()))
            assert str(lines[y // 2].spans[x].style).split(" on ")[y % 2] == expected


def test_plain_blocks_are_twice_as_high_as_wide_and_rise_with_the_level():
    coords = cells(40, 40)
    lines = drawing.block_map(coords, coords[:, 1] / 39.0, np.zeros(1600, dtype=bool), 20)
    assert {line.plain for line in lines} == {"·····-----+++++#####"}
    assert len(lines) == 10
    flat = drawing.block_map(coords, np.zeros(1600), np.ones(1600, dtype=bool), 20)
    assert {line.plain for line in flat} == {"●" * 20}


def test_bars_have_the_length_of_their_share():
    assert [len(drawing.bar_line(share, 40)) for share in (1.0, 0.5, 0.25)] == [40, 20, 10]
    assert drawing.bar_line(0.0, 40) == "▏"
