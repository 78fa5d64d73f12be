"""Pictures: what is drawn is what the arrays say, the same bytes each time, and large mazes stay cheap."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import gymnasium as gym
import matplotlib
import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from scipy.stats import t as student

import eigenoptions as eo
from eigenoptions import plots
from eigenoptions.plots import panels

MDP = eo.maze("four-rooms")
CORRIDOR = np.array([[0, 0], [0, 1], [0, 2]])


def patches(panel: plots.Panel) -> list[PathPatch]:
    return [a for a in plots.figure([panel]).axes[0].get_children() if isinstance(a, PathPatch)]


def polygons(patch: PathPatch, corners: int) -> np.ndarray:
    """Corners of each polygon of a joined path, the closing one left out."""
    return patch.get_path().vertices.reshape(-1, corners + 1, 2)[:, :-1]


def every_figure() -> dict[str, Figure]:
    sp = eo.spectrum(eo.graph(MDP), k=4)
    rng = np.random.default_rng(7)
    return {
        "domains": plots.domains([eo.maze(name) for name in eo.mazes()]),
        "pvfs": plots.pvfs(sp, MDP.coords),
        "surfaces": plots.pvfs(sp, MDP.coords, [1], surface=True),
        "options": plots.options(eo.discover(MDP, 4)),
        "heat": plots.heat(np.arange(104), MDP.coords, "steps"),
        "curves": plots.curves(np.arange(9), {"a": rng.random((5, 9)), "b": rng.random(9)}, log=True),
    }


def digest() -> str:
    text = "".join(plots.svg(fig) for fig in every_figure().values())
    return hashlib.sha256(text.encode()).hexdigest()


def test_arrows_point_where_the_policy_goes():
    cross = np.array([[1, 1], [0, 1], [1, 2], [2, 1], [1, 0]])
    # All toward the middle.
    ground, stops, arrows = patches(plots.policy_panel(cross, [-1, 2, 3, 0, 1]))
    assert stops.get_facecolor()[:3] == pytest.approx(matplotlib.colors.to_rgb(panels.STOP))
    assert polygons(stops, 4).mean(axis=1).tolist() == [[1.0, 1.0]]
    assert len(polygons(ground, 4)) == 4
    shapes = polygons(arrows, len(panels.ARROW))
    tips, tails = shapes[:, 3], shapes[:, [0, -1]].mean(axis=1)
    here = cross[1:, ::-1]
    np.testing.assert_allclose((tips + tails) / 2, here, atol=1e-12)
    np.testing.assert_allclose(tips - tails, 0.72 * ([1, 1] - here), atol=1e-12)


def test_a_panel_has_one_arrow_per_state_and_red_where_it_stops():
    option = eo.discover(MDP, 8)[5]
    ground, stops, arrows = patches(plots.policy_panel(MDP.coords, option.policy))
    n = int(option.termination.sum())
    assert (len(polygons(ground, 4)), len(polygons(stops, 4))) == (104 - n, n)
    assert len(polygons(arrows, len(panels.ARROW))) == 104 - n
    assert sorted(polygons(stops, 4).mean(axis=1)[:, ::-1].tolist()) == sorted(
        MDP.coords[option.termination].astype(float).tolist()
    )


def test_other_actions_are_digits_and_rings():
    ax = plots.figure([plots.policy_panel(CORRIDOR, [5, 1, -1])]).axes[0]
    marks = [c for c in ax.collections if not isinstance(c, PolyCollection)]
    assert [mark.get_offsets().tolist() for mark in marks] == [[[0.0, 0.0]]]
    ax = plots.figure([plots.policy_panel(CORRIDOR, [5, 1, 12], moves=[[0, 0], [0, 1], [3, 3]])]).axes[0]
    marks = [c for c in ax.collections if not isinstance(c, PolyCollection)]
    # The ring of an action that stays is the last one.
    assert [mark.get_offsets().tolist() for mark in marks] == [[[2.0, 0.0]], [[0.0, 0.0]]]


def test_figures_of_options_draw_the_moves_of_the_table():
    """FrozenLake's actions are 0 left, 1 down, 2 right, 3 up; version 0.1 drew the arrows of a maze."""
    lake = eo.from_env(gym.make("FrozenLake-v1", is_slippery=False))
    found = eo.discover(lake, 2)
    arrows = [p for p in plots.options(found).axes[0].get_children() if isinstance(p, PathPatch)][-1]
    shapes = polygons(arrows, len(panels.ARROW))
    tips, tails = shapes[:, 3], shapes[:, [0, -1]].mean(axis=1)
    going = np.flatnonzero(found.policy[0] >= 0)
    to = lake.successors[going, found.policy[0][going]]
    np.testing.assert_allclose((tips + tails) / 2, lake.coords[going, ::-1], atol=1e-12)
    np.testing.assert_allclose(
        tips - tails, 0.72 * (lake.coords[to] - lake.coords[going])[:, ::-1], atol=1e-12
    )


def test_figures_say_what_a_ring_is_and_leave_room_for_it():
    found = eo.discover(eo.from_env("minigrid:MiniGrid-Empty-5x5-v0"), 4)
    made = plots.options(found)
    assert "heading" in made.texts[0].get_text().replace("\n", " ")
    below = made.texts[0].get_window_extent().y1
    assert all(ax.get_window_extent().y0 >= below for ax in made.axes)
    assert not plots.options(eo.discover(MDP, 2)).texts
    with pytest.raises(ValueError, match=r"moves must have shape \(3, 2\)"):
        plots.policy_panel(CORRIDOR, [0, 1, -1], moves=[[0, 1]])


def test_domains_have_their_letters_in_place():
    ax = plots.domains([MDP]).axes[0]
    places = {text.get_text(): text.get_position() for text in ax.texts}
    assert places == {"S": (1, 11), "G": (11, 1)}


def test_heat_map_holds_the_values_and_white_is_zero():
    e = eo.spectrum(eo.graph(MDP), k=2).vectors[:, 1]
    cells = plots.figure([plots.value_panel(MDP.coords, e)]).axes[0].collections[0]
    np.testing.assert_array_equal(cells.get_array(), e)
    assert cells.norm.vmin == -cells.norm.vmax == -np.abs(e).max()
    assert cells.cmap(cells.norm(0.0))[:3] == pytest.approx((1, 1, 1), abs=0.01)


def test_surface_is_whole_where_one_can_walk():
    ax = plots.figure([plots.surface_panel(CORRIDOR, [0.0, 1.0, 3.0])]).axes[0]
    # (3, 4, 3) corners: left, right, right, left.
    quads = ax.collections[0]._faces
    heights = np.asarray(quads)[:, :, 2]
    np.testing.assert_allclose(heights[:, [0, 1]], [[0, 0.5], [0.5, 2], [2, 3]])
    assert (
        len(plots.pvfs(eo.spectrum(eo.graph(MDP), k=2), MDP.coords, [1], surface=True).axes[0].collections)
        == 1
    )


def test_band_is_students_interval():
    runs = np.array([[1.0, 4.0], [3.0, 4.0], [2.0, 7.0]])
    fig = plots.curves([0, 1], {"": runs}, confidence=0.9)
    band = fig.axes[0].collections[0].get_paths()[0].vertices
    low, high = student.interval(0.9, 2, loc=runs.mean(0), scale=runs.std(0, ddof=1) / np.sqrt(3))
    for x in (0, 1):
        at = band[np.isclose(band[:, 0], x), 1]
        np.testing.assert_allclose([at.min(), at.max()], [low[x], high[x]])


def test_band_stays_positive_on_a_log_axis():
    fig = plots.curves([0, 1], {"a": [[1.0, 1.0], [100.0, 1.0]]}, log=True)
    assert fig.axes[0].collections[0].get_paths()[0].vertices[:, 1].min() > 0
    assert fig.axes[0].get_yscale() == "log"


def test_known_bands_threads_and_levels_are_drawn():
    panel = plots.curve_panel(
        [0, 1, 2],
        {"a": [1.0, 2.0, 3.0]},
        bands={"a": ([0.5, 1.0, 2.0], [2.0, 3.0, 4.0])},
        threads={"b": [[1, 1, 1], [2, 2, 2]]},
        levels={"c": 1.5},
        ticks=["0", "2", "all"],
        limits=(0, 5),
    )
    ax = plots.figure([panel]).axes[0]
    assert len(ax.lines) == 4
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "2", "all"]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["b", "c", "a"]
    band = ax.collections[0].get_paths()[0].vertices
    assert sorted({tuple(v) for v in band.tolist()} & {(0.0, 0.5), (1.0, 3.0), (2.0, 4.0)}) == [
        (0.0, 0.5),
        (1.0, 3.0),
        (2.0, 4.0),
    ]
    assert ax.get_ylim() == (0, 5)
    assert plots.figure([plots.curve_panel([0], {"a": [1.0]}, legend=False)]).axes[0].get_legend() is None


def test_columns_have_the_widths_asked_for():
    fig = plots.figure([plots.maze_panel(CORRIDOR), plots.curve_panel([0, 1], {"": [0, 1]})], ratios=(1, 3))
    left, right = (ax.get_position(original=True).width for ax in fig.axes)
    assert right > 2 * left


def test_a_layout_does_not_depend_on_addresses_in_memory():
    drawn = [plots.maze_panel(MDP.coords), plots.curve_panel(range(9), {"a": range(9)}, "A", ylabel="y")]
    clutter, texts = [], set()
    for i in range(6):
        # Moves what is made next.
        clutter.append([bytearray(997 * (i + j)) for j in range(50)])
        texts.add(plots.svg(plots.figure([*drawn, plots.value_panel(MDP.coords, range(104), label="v")])))
    assert len(texts) == 1


def test_one_legend_for_all_panels():
    panel = plots.curve_panel([0, 1], {"a": [0, 1], "b": [1, 0]}, levels={"c": 0.5}, legend=False)
    fig = plots.figure([panel, panel], legend=True)
    assert [t.get_text() for t in fig.legends[0].get_texts()] == ["c", "a", "b"]
    bottom = min(ax.get_position().y0 for ax in fig.axes) * fig.get_figheight() * fig.dpi
    assert fig.legends[0].get_window_extent().y1 < bottom


def test_start_and_goal_stand_out():
    tints = [a.get_facecolor() for a in patches(plots.maze_panel(CORRIDOR, {0: "S", 2: "G"}))]
    for color in panels.MARKS.values():
        assert matplotlib.colors.to_rgba(color) in tints


def test_lines_differ_in_colour_and_dashes():
    ax = plots.curves([0, 1], {name: [0, 1] for name in "abcdefg"}).axes[0]
    assert len({line.get_color() for line in ax.lines}) == 7
    assert len({str(line._dash_pattern) for line in ax.lines}) == 7


def test_titles_name_the_option_and_its_eigenvalue():
    titles = [ax.get_title() for ax in plots.options(eo.discover(MDP, 2)).axes]
    assert titles == ["e2+  λ\u00a0=\u00a00.00701", "e2-  λ\u00a0=\u00a00.00701"]
    plain = eo.solve(MDP, eo.Purpose(np.eye(104)[7], "goal 7"))
    assert plots.options(plain).axes[0].get_title() == "goal 7"


def test_narrow_panels_break_their_titles():
    options = eo.discover(eo.maze("i-maze"), 4)
    assert "\n" in plots.options(options, width=plots.COLUMN).axes[0].get_title()


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_the_same_figure_gives_the_same_bytes(suffix, tmp_path):
    for i in (0, 1):
        plots.save(plots.options(eo.discover(MDP, 2)), tmp_path / f"{i}.{suffix}")
    assert (tmp_path / f"0.{suffix}").read_bytes() == (tmp_path / f"1.{suffix}").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"0.{suffix}", f"1.{suffix}"]


def test_another_process_gives_the_same_svg_without_pyplot():
    code = (
        "import sys\nfrom tests.test_plots import digest\nprint(digest())\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    env = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path), "DISPLAY": ""}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == digest()


def test_global_settings_stay_as_they_were():
    before = dict(matplotlib.rcParams)
    for fig in every_figure().values():
        plots.svg(fig)
    assert dict(matplotlib.rcParams) == before


def test_blocks_average_their_states():
    rng = np.random.default_rng(3)
    cells = np.argwhere(rng.random((90, 70)) < 0.7)
    v = rng.normal(size=len(cells))
    assert len(cells) > panels.DETAIL
    image = plots.figure([plots.value_panel(cells, v)]).axes[0].images[0].get_array()
    # Still one pixel per state.
    assert image.count() == len(cells)
    blocks = panels._Blocks(cells, 30)
    assert (blocks.shape, blocks.step) == ((30, 24), 3)
    place = (cells - cells.min(axis=0)) // 3
    for row, col in place[::97]:
        here = (place == (row, col)).all(axis=1)
        assert blocks.sum()[row, col] == here.sum()
        np.testing.assert_allclose(blocks.sum(v > 0, v)[row, col], v[here & (v > 0)].sum())


def test_a_large_option_that_stops_everywhere_is_red():
    cells = np.argwhere(np.ones((60, 60)))
    assert len(cells) > panels.DETAIL
    drawn = plots.figure([plots.policy_panel(cells, np.full(len(cells), -1))]).axes[0].images[1]
    assert (np.asarray(drawn.get_array())[..., 3] == 1.0).all()


def test_mean_moves_of_a_large_room_agree_with_its_policy():
    cells = np.argwhere(np.ones((100, 100)))
    at, moves, step = panels._mean_moves(
        cells, np.array(eo.mdp.MOVES, float)[np.where(cells[:, 1] < 52, 1, 0)]
    )
    assert step == 4
    left = at[:, 1] < 50
    np.testing.assert_allclose(moves[left], np.tile([0, 1], (left.sum(), 1)))
    np.testing.assert_allclose(moves[~left], np.tile([-1, 0], ((~left).sum(), 1)))


def test_a_million_states_are_drawn_as_a_coarse_image():
    cells = np.argwhere(np.ones((1000, 1000), dtype=bool))
    v = np.cos(np.pi * cells[:, 0] / 999)
    policy = np.where(cells[:, 0] == 0, -1, 0)
    drawn = [plots.maze_panel(cells), plots.policy_panel(cells, policy)]
    fig = plots.figure([*drawn, plots.value_panel(cells, v), plots.surface_panel(cells, v)])
    text = plots.svg(fig)
    assert len(text) < 3e6
    assert max(len(ax.get_children()) for ax in fig.axes) < 40


def test_column_width_by_default_and_page_for_many():
    one = plots.maze_panel(CORRIDOR)
    assert plots.figure([one]).get_figwidth() == plots.figure([one] * 2).get_figwidth() == plots.COLUMN
    assert plots.figure([one] * 3).get_figwidth() == plots.PAGE
    assert len(plots.figure([one] * 20).axes) == 20


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.maze_panel(None), "these states have no coords"),
        (lambda: plots.options(eo.OptionSet(np.array([[0, -1]]), 1)), "these states have no coords"),
        (lambda: plots.maze_panel([1, 2]), r"coords must have shape \(S, 2\), got \(2,\)"),
        (lambda: plots.value_panel(CORRIDOR, [1.0]), r"one number for each of 3 states, got shape \(1,\)"),
        (lambda: plots.policy_panel(CORRIDOR, [1]), r"one action for each of 3 states, got shape \(1,\)"),
        (lambda: plots.figure([]), "nothing to draw"),
        (lambda: plots.figure([plots.maze_panel(CORRIDOR)], columns=0), "columns must be at least 1, got 0"),
        (lambda: plots.curves([1, 2], {"a": [1.0]}), r"'a' must have shape \(n,\) or \(runs, n\) with n = 2"),
        (
            lambda: plots.curves([1], {"a": [1.0]}, confidence=1.0),
            r"confidence must be in \(0, 1\), got 1.0",
        ),
        (lambda: plots.curve_panel([1, 2], {}, ticks=["a"]), "a word for each of 2 places, got 1"),
        (lambda: plots.curve_panel([1], {}, threads={"t": [[1, 2]]}), r"'t' must have shape"),
        (
            lambda: plots.figure([plots.maze_panel(CORRIDOR)], ratios=(1, 2)),
            "ratios must be 1 numbers above 0",
        ),
        (lambda: plots.pvfs(eo.spectrum(eo.graph(MDP), k=2), MDP.coords, [2]), r"numbers in 0..1 for 2"),
        (
            lambda: plots.save(every_figure()["heat"], "picture.gif"),
            r"written as .svg, .pdf, .png, got 'picture.gif'",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_unwritable_path_is_one_line_and_leaves_nothing(tmp_path):
    fig = plots.figure([plots.maze_panel(CORRIDOR)])
    with pytest.raises(
        OSError, match=r"cannot write .*missing/a.svg: No such file or directory; choose a folder"
    ):
        plots.save(fig, tmp_path / "missing" / "a.svg")
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(OSError, match=r"cannot write .*folder.svg: it is a folder"):
        plots.save(fig, tmp_path / "folder.svg")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.svg"]
