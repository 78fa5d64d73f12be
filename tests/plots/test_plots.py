"""What is drawn on axes is what the arrays say; figures of every kind are written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import matplotlib
import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver
from PIL import Image
from scipy.spatial.distance import cdist
from scipy.stats import t as student

import eigenoptions as eo
from eigenoptions import plots
from eigenoptions._colors import PRINTED_WALL, RED
from eigenoptions.plots.nodes import place_states
from eigenoptions.samples.features.states import StateMap

ROOMS = eo.maze("four-rooms")
CORRIDOR = np.array([[0, 0], [0, 1], [0, 2]])


@pytest.fixture
def ax() -> Any:
    return Figure().add_subplot()


def get_arrows(ax: Any) -> dict[tuple[float, float], tuple[float, float]]:
    """Direction (row, column) of the arrow at each (row, column)."""
    (quiver,) = (artist for artist in ax.collections if isinstance(artist, Quiver))
    arrows = {}
    for (x, y), right, down in zip(quiver.XY, quiver.U, quiver.V, strict=True):
        length = np.hypot(right, down)
        direction = (round(down / length, 2), round(right / length, 2))
        arrows[(float(y), float(x))] = direction
    return arrows


def get_pixel(ax: Any, row: int, column: int) -> tuple[float, ...]:
    """Colour of a cell of the image, which has one ring of wall."""
    image = ax.images[0]
    left, _, _, top = image.get_extent()
    return tuple(np.asarray(image.get_array())[int(row - top), int(column - left)])


def test_draw_policy_arrows_point_where_the_policy_goes(ax):
    cross = np.array([[1, 1], [0, 1], [1, 2], [2, 1], [1, 0]])
    plots.draw_policy(ax, cross, [-1, 2, 3, 0, 1])
    assert get_arrows(ax) == {
        (0, 1): (1, 0),
        (1, 2): (0, -1),
        (2, 1): (-1, 0),
        (1, 0): (0, 1),
    }
    assert get_pixel(ax, 1, 1) == to_rgb(RED)
    assert get_pixel(ax, 0, 1) == to_rgb("white")
    assert get_pixel(ax, 0, 0) == to_rgb(PRINTED_WALL)


def test_states_without_a_place_are_drawn_by_their_distances():
    """Up to a turn, a room without coords gets its own shape."""
    room = eo.maze("...\n...\n...")
    options = eo.discover(replace(room, coords=None), 2)
    figure = plots.plot_options(options)
    ax = figure.axes[0]
    nodes = [artist for artist in ax.collections if isinstance(artist, PathCollection)]
    (places,) = (np.asarray(artist.get_offsets()) for artist in nodes)
    steps = cdist(room.coords, room.coords, "cityblock")
    drawn = cdist(places, places)
    # Steps are along rows and columns, the picture has straight lines.
    assert np.corrcoef(steps.ravel(), drawn.ravel())[0, 1] > 0.95

    red = [to_rgb(color) == to_rgb(RED) for color in nodes[0].get_facecolors()]
    assert red == options[0].termination.tolist()


def test_parts_that_are_not_connected_are_drawn_beside_each_other():
    two = place_states(eo.MDP.from_successors([[1], [0], [3], [2]]))
    assert cdist(two.positions[:2], two.positions[2:]).min() > 1


def test_many_states_are_placed_by_some_of_them():
    line = np.arange(2000)
    chain = np.column_stack([np.maximum(line - 1, 0), np.minimum(line + 1, 1999)])
    along = place_states(eo.MDP.from_successors(chain)).positions[:, 0]
    np.testing.assert_allclose(np.abs(np.diff(along)), 1, atol=1e-6)


def test_draw_policy_of_a_table_uses_its_moves(ax):
    """FrozenLake's actions are left, down, right, up."""
    lake = eo.from_env(gym.make("FrozenLake-v1", is_slippery=False))
    policy = eo.discover(lake, 2).policy[0]
    plots.draw_policy(ax, lake, policy)
    expected = {}
    for state in np.flatnonzero(policy >= 0):
        cell = lake.coords[state]
        move = lake.coords[lake.successors[state, policy[state]]] - cell
        if move.any():
            expected[tuple(cell)] = tuple(move)
    assert get_arrows(ax) == expected


def test_draw_policy_marks_actions_that_stay_or_jump(ax):
    jump = np.array([[0, 2], [1, 1], [2, 2]])
    mdp = eo.MDP.from_successors(jump, coords=CORRIDOR)
    plots.draw_policy(ax, mdp, [1, 1, -1])
    (digit,) = ax.texts
    assert digit.get_text() == "1"
    assert digit.get_position() == (0, 0)
    assert ax.lines[0].get_xydata().tolist() == [[1.0, 0.0]]


def test_draw_policy_bends_arrows_where_the_agent_turns(ax):
    pytest.importorskip("minigrid")
    options = eo.discover("minigrid:MiniGrid-Empty-5x5-v0", 2)
    mdp = options.mdp
    plots.draw_policy(ax, mdp, options.policy[0])
    # Lines between cells, and arrows upon them.
    _, bent = (
        artist for artist in ax.collections if isinstance(artist, LineCollection)
    )
    is_turn = np.isin(options.policy[0], [0, 1])
    # A shaft and a head for each.
    assert len(bent.get_segments()) == 2 * is_turn.sum()
    assert len(get_arrows(ax)) == (options.policy[0] == 2).sum()
    assert not ax.texts


def test_options_of_a_large_maze_are_heat_maps_with_rings(ax):
    options = eo.discover("open:60x60", 1)
    plots.draw_options([ax], options)
    shown = ax.images[0].get_array().compressed()
    np.testing.assert_array_equal(shown, options.purposes[0].potential)
    rings = options.mdp.coords[options[0].termination][:, ::-1]
    assert ax.lines[0].get_xydata().tolist() == rings.tolist()
    goal = eo.discover("open:60x60", 1, "random")
    plots.draw_options([ax], goal)
    np.testing.assert_array_equal(ax.images[1].get_array().compressed(), goal.value[0])


def test_draw_maze_marks_start_and_goal(ax):
    plots.draw_maze(ax, ROOMS)
    assert {text.get_text(): text.get_position() for text in ax.texts} == {
        "S": (1, 11),
        "G": (11, 1),
    }
    white = (np.asarray(ax.images[0].get_array()) == 1.0).all(axis=2)
    assert white.sum() == ROOMS.n_states


def test_draw_values_places_every_number_and_centres_zero(ax):
    vector = eo.spectrum(eo.graph(ROOMS), k=2).vectors[:, 1]
    image = plots.draw_values(ax, ROOMS, vector, colorbar="value")
    grid = image.get_array()
    np.testing.assert_array_equal(grid[tuple(ROOMS.coords.T)], vector)
    assert grid.mask.sum() == grid.size - ROOMS.n_states
    assert image.get_clim() == (-np.abs(vector).max(), np.abs(vector).max())
    assert ax.child_axes[0].get_ylabel() == "value"


def test_draw_values_unsigned_uses_limits_and_hides_nan(ax):
    image = plots.draw_values(ax, CORRIDOR, [1.0, np.nan, 3.0], signed=False)
    assert image.get_clim() == (1.0, 3.0)
    assert image.get_array().count() == 2
    wide = plots.draw_values(ax, CORRIDOR, [1, 2, 3], signed=False, limits=(0, 9))
    assert wide.get_clim() == (0, 9)


@pytest.mark.parametrize("cmap", ["magma", colormaps["magma"]])
def test_cmap_replaces_the_colours_of_every_heat_map(ax, cmap):
    large = eo.discover("open:60x60", 1)
    spectrum = eo.spectrum(eo.graph(ROOMS), k=2)
    plots.draw_values(ax, CORRIDOR, [1.0, 2.0, 3.0], cmap=cmap)
    plots.draw_landscape(ax, lambda obs: obs[:, 0], [0, 0], [1, 1], cmap=cmap)
    plots.draw_options(ax, large, cmap=cmap)
    images = [
        *ax.images,
        plots.plot_options(large, cmap=cmap).axes[0].images[0],
        plots.plot_eigenvectors(ROOMS, spectrum, cmap=cmap).axes[0].images[0],
    ]
    assert [image.get_cmap().name for image in images] == ["magma"] * 5


def test_draw_landscape_is_the_potential_with_paths(ax):
    plots.draw_landscape(
        ax, lambda obs: obs[:, 0] + 10, [0, -1], [4, 1], paths=[[[0, 0], [3, 0.5]]]
    )
    heights = np.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(heights[:, [0, -1]], np.tile([-2.0, 2.0], (101, 1)))
    assert ax.lines[1].get_xydata().tolist() == [[3.0, 0.5]]
    assert ax.get_xlim() == (0, 4)
    assert ax.get_ylim() == (-1, 1)


def test_draw_curves_of_runs_has_mean_and_student_band(ax, rng):
    runs = rng.random((5, 9))
    plots.draw_curves(ax, range(9), {"a": runs, "b": rng.random(9)})
    np.testing.assert_allclose(ax.lines[0].get_ydata(), runs.mean(axis=0))
    half = student.interval(0.95, 4)[1] * runs.std(axis=0, ddof=1) / np.sqrt(5)
    (band,) = ax.collections
    corners = band.get_paths()[0].vertices
    for x, mean in enumerate(runs.mean(axis=0)):
        heights = corners[corners[:, 0] == x, 1]
        np.testing.assert_allclose(heights.min(), mean - half[x])
        np.testing.assert_allclose(heights.max(), mean + half[x])
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.lines}) == 2


def test_draw_curves_takes_bands_and_colors(ax):
    plots.draw_curves(
        ax,
        [0, 1],
        {"a": [1, 2]},
        bands={"a": ([0, 1], [2, 3])},
        colors={"a": "#123456"},
    )
    assert ax.lines[0].get_color() == "#123456"
    assert ax.collections[0].get_paths()[0].vertices[:, 1].max() == 3


def test_plot_options_has_a_titled_map_per_option():
    figure = plots.plot_options(eo.discover(ROOMS, 6))
    titles = [ax.get_title()[:3] for ax in figure.axes if ax.axison]
    assert titles == ["e2+", "e2-", "e3+", "e3-", "e4+", "e4-"]
    assert figure._repr_png_().startswith(b"\x89PNG")

    goals = plots.plot_options(eo.discover(ROOMS, 2, "random"))
    assert goals.axes[0].get_title().startswith("goal")


def test_plot_options_explains_rings_digits_and_headings():
    options = eo.discover("minigrid:MiniGrid-Empty-5x5-v0", 2)
    text = " ".join(plots.plot_options(options).get_supxlabel().split())
    assert "bent arrows" in text
    assert "heading" in text
    taxi = plots.plot_options(eo.discover("Taxi-v4", 2))
    assert "digit" in taxi.get_supxlabel()
    assert plots.plot_options(eo.discover(ROOMS, 2)).get_supxlabel() == ""


def test_plot_eigenvectors_skips_eigenvalue_zero():
    spectrum = eo.spectrum(eo.graph(ROOMS), k=4)
    figure = plots.plot_eigenvectors(ROOMS, spectrum)
    titles = [ax.get_title()[:2] for ax in figure.axes]
    assert titles == ["e2", "e3", "e4"]


def test_plot_diffusion_draws_curves_and_primitive_actions():
    curves = {"long": [100.0, 50.0, 20.0], "short": [100.0, 80.0]}
    ax = plots.plot_diffusion(curves).axes[0]
    labels = [line.get_label() for line in ax.lines]
    assert labels == ["long", "short", "primitive actions"]
    assert ax.lines[2].get_ydata()[0] == 100.0
    assert ax.lines[1].get_ydata().tolist() == [100.0, 80.0]
    assert len(plots.plot_diffusion([3.0, 2.0]).axes[0].lines) == 2


def test_plot_learning_draws_means_with_bands():
    record = eo.q_learning(eo.maze("S..G"), runs=4, episodes=6, rng=0)
    ax = plots.plot_learning({"a": record, "b": record}).axes[0]
    np.testing.assert_allclose(ax.lines[1].get_ydata(), record.returns.mean(axis=0))
    assert len(ax.collections) == 2
    assert plots.plot_learning(record).axes[0].get_ylabel() == "return"


def test_first_visits_show_where_actions_are_untried_and_rewards():
    found = eo.explore(ROOMS, 4_000, until="reward")
    rings, dots = plots.plot_first_visits(found).axes[0].lines
    is_frontier = found.untried.any(axis=1) & (found.first_visit >= 0)
    assert rings.get_xydata().tolist() == found.mdp.coords[is_frontier, ::-1].tolist()
    assert dots.get_xydata().tolist() == found.mdp.coords[found.rewarded, ::-1].tolist()


def test_options_of_clusters_are_points():
    places = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])

    class Placed(StateMap):
        n_features = 3

        def find_states(self, obs: Any) -> Any:
            return np.asarray(obs)[:, 0].astype(int)

    features = Placed()
    features.places = places
    weights = np.array([[[1.0, 1.0, 0.0]]])
    purpose = eo.Purpose(np.array([-1.0, 0.5, 1.0]))
    options = eo.LinearOptionSet([purpose], features, 1, weights)
    figure = plots.plot_options(options)
    points, rings = figure.axes[0].collections
    assert np.asarray(points.get_offsets()).tolist() == places.tolist()
    assert points.get_array().tolist() == [-1.0, 0.5, 1.0]
    assert np.asarray(rings.get_offsets()).tolist() == places[2:].tolist()
    assert "cluster" in figure.get_supxlabel()


def test_fonts_and_sizes_are_those_of_the_user():
    record = eo.q_learning(eo.maze("S..G"), runs=2, episodes=3, rng=0)
    options = eo.discover(ROOMS, 2)
    own = {"font.family": "serif", "axes.titlesize": 24, "figure.figsize": (9, 2)}
    with matplotlib.rc_context(own):
        large = plots.plot_options(options)
        learning = plots.plot_learning(record)
    title = large.axes[0].title
    assert (title.get_fontfamily(), title.get_fontsize()) == (["serif"], 24)
    # Maps are as wide as their titles need.
    assert large.get_figwidth() > plots.plot_options(options).get_figwidth()
    assert learning.get_size_inches().tolist() == [9, 2]


def test_figures_are_drawn_on_given_axes_or_in_a_given_size():
    options = eo.discover(ROOMS, 2)
    spectrum = eo.spectrum(eo.graph(ROOMS), k=3)
    found = eo.explore(ROOMS, 50)
    record = eo.q_learning(eo.maze("S..G"), runs=2, episodes=3, rng=0)
    for plot in (
        lambda **how: plots.plot_options(options[:1], **how),
        lambda **how: plots.plot_diffusion([3.0, 2.0], **how),
        lambda **how: plots.plot_learning(record, **how),
        lambda **how: plots.plot_first_visits(found, **how),
    ):
        ax = Figure().add_subplot()
        assert plot(figsize=(4, 3)).get_size_inches().tolist() == [4, 3]
        assert plot(ax=ax) is ax.figure
        with pytest.raises(ValueError, match="figsize"):
            plot(ax=ax, figsize=(4, 3))

    axes = Figure().subplots(1, 3)
    assert plots.plot_options(options, ax=axes) is axes[0].figure
    assert plots.plot_eigenvectors(ROOMS, spectrum, ax=axes) is axes[0].figure
    assert [axis.axison for axis in axes] == [True, True, False]
    with pytest.raises(ValueError, match="ax "):
        plots.plot_options(options, ax=axes[:1])


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_save_figure_writes_the_same_file_twice(tmp_path: Path, suffix: str):
    files = [tmp_path / f"{i}.{suffix}" for i in (0, 1)]
    for path in files:
        plots.save_figure(plots.plot_options(eo.discover("i-maze", 2)), path, dpi=50)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_save_clip_keeps_frames_and_speed(tmp_path: Path, rng):
    frames = rng.integers(0, 255, (4, 8, 6, 3), dtype=np.uint8)
    plots.save_clip(frames, tmp_path / "clip.gif", fps=10)
    with Image.open(tmp_path / "clip.gif") as clip:
        assert clip.n_frames == 4
        assert clip.size == (6, 8)
        assert clip.info["duration"] == 100


@pytest.mark.parametrize(
    ("call", "error", "word"),
    [
        (
            lambda ax: plots.draw_values(ax, eo.MDP(ROOMS.transition), np.zeros(104)),
            ValueError,
            "coords",
        ),
        (lambda ax: plots.draw_values(ax, CORRIDOR, [1, 2]), ValueError, "values"),
        (lambda ax: plots.draw_policy(ax, CORRIDOR, [1, 2]), ValueError, "policy"),
        (
            lambda ax: plots.draw_maze(ax, [[0, 0], [10**9, 10**9]]),
            ValueError,
            "coords",
        ),
        (
            lambda ax: plots.draw_options([ax], eo.discover("i-maze", 2)),
            ValueError,
            "axes",
        ),
        (
            lambda ax: plots.draw_curves(ax, [1, 2], {"a": [1.0]}),
            ValueError,
            "curve 'a'",
        ),
        (lambda ax: plots.plot_options(3), TypeError, "options"),
        (lambda ax: plots.plot_learning({"a": 3}), TypeError, "record"),
        (
            lambda ax: plots.plot_eigenvectors(
                ROOMS, eo.spectrum(eo.graph(ROOMS), k=1)
            ),
            ValueError,
            "nothing",
        ),
        (lambda ax: plots.save_figure(ax.figure, "a.gif"), ValueError, "svg"),
        (lambda ax: plots.save_figure(ax.figure, "missing/a.svg"), OSError, "missing"),
        (
            lambda ax: plots.save_clip(np.zeros((2, 3, 4, 3)), "a.gif"),
            ValueError,
            "uint8",
        ),
    ],
)
def test_plots_refuse_what_cannot_be_drawn(
    ax, call, error, word, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=word):
        call(ax)
    assert not list(tmp_path.iterdir())
