"""What a notebook shows of each record: SVG that is read here as XML."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from importlib import machinery
from pathlib import Path
from xml.etree import ElementTree

import gymnasium as gym
import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions import _progress, _svg
from eigenoptions._colors import RED
from eigenoptions.envs.families.observation import OBSERVATION
from eigenoptions.options.pictures import show_feature_options, spread_observations
from eigenoptions.samples.features import Fourier, Raw

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
ROOMS = eo.maze("four-rooms")
SVG = "{http://www.w3.org/2000/svg}"


class TagCounter(HTMLParser):
    """Checks that all tags are closed, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass


def read_pictures(record: object) -> list[ElementTree.Element]:
    """The SVG elements of what a notebook shows."""
    html = record._repr_html_()  # type: ignore[attr-defined]
    counter = TagCounter()
    counter.feed(html)
    assert counter.open == []
    found = re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)
    return [ElementTree.fromstring(text) for text in found]


def find_dots(picture: ElementTree.Element) -> set[tuple[int, int]]:
    """Rows and columns of the red dots, with one ring of walls around the map."""
    dots = set()
    for path in picture.iter(f"{SVG}path"):
        if path.get("stroke") == RED:
            for x, y in re.findall(r"M([\d.]+) ([\d.]+)h0", path.get("d", "")):
                dots.add((int(float(y)), int(float(x))))
    return dots


def test_a_maze_is_drawn_with_its_start_and_goal():
    (picture,) = read_pictures(ROOMS)
    assert picture.get("viewBox") == "0 0 13 13"
    letters = {text.text: text for text in picture.iter(f"{SVG}text")}
    assert set(letters) == {"S", "G"}
    assert (letters["S"].get("x"), letters["S"].get("y")) == ("1.5", "11.5")


def test_options_are_maps_with_a_dot_where_each_ends():
    options = eo.discover(ROOMS, 4)
    pictures = read_pictures(options)
    assert len(pictures) == 4
    for picture, option in zip(pictures, options, strict=True):
        ends = ROOMS.coords[option.termination]
        assert find_dots(picture) == {tuple(end) for end in ends.tolist()}
    (alone,) = read_pictures(options["e3+"])
    assert find_dots(alone) == find_dots(pictures[2])


def test_arrows_point_where_the_option_goes():
    options = eo.discover("S..", 2)
    (picture,) = read_pictures(options["e2+"])
    (arrows,) = (
        path for path in picture.iter(f"{SVG}path") if path.get("stroke-width") == ".1"
    )
    # Each arrow is a line and its head. This option goes to the left.
    lines = re.findall(r"M([\d.]+) ([\d.]+)l([-\d.]+) ([-\d.]+)m", arrows.get("d", ""))
    assert len(lines) == 2
    for x, y, right, down in np.array(lines, dtype=float):
        assert (int(x), int(y)) in {(2, 1), (3, 1)}
        assert right < 0
        assert down == 0


def test_only_the_first_options_are_drawn_and_the_others_counted():
    options = eo.discover(ROOMS, 16)
    assert len(read_pictures(options)) == 8
    assert "... 8 more options: options[8:]" in options._repr_html_()
    assert "more option" not in options[:8]._repr_html_()


def test_minigrid_has_a_map_for_each_heading_with_bent_arrows():
    pytest.importorskip("minigrid")
    options = eo.discover("minigrid:MiniGrid-Empty-5x5-v0", 4)
    np.testing.assert_array_equal(
        options.mdp.headings, [key[-1] for key in options.mdp.states]
    )
    pictures = read_pictures(options[0])
    titles = [picture.find(f"{SVG}title").text for picture in pictures]
    assert titles == [f"e2+ facing {name}" for name in ("right", "down", "left", "up")]
    n_dots = sum(len(find_dots(picture)) for picture in pictures)
    assert n_dots == options[0].termination.sum()
    # No action is a digit: turns are arrows.
    assert not any(list(picture.iter(f"{SVG}text")) for picture in pictures)
    # Four maps of two options.
    assert len(read_pictures(options)) == 8


def test_headings_are_kept_in_files_and_checked(tmp_path):
    pytest.importorskip("minigrid")
    options = eo.discover("minigrid:MiniGrid-Empty-5x5-v0", 2)
    options.save(tmp_path / "skills.safetensors")
    loaded = eo.load_options(tmp_path / "skills.safetensors")
    np.testing.assert_array_equal(loaded.mdp.headings, options.mdp.headings)
    found = eo.explore("minigrid:MiniGrid-Empty-5x5-v0", 200)
    assert found.mdp.headings.tolist() == [key[-1] for key in found.states]
    for wrong in (np.full(104, 4), np.zeros(3, dtype=int), np.zeros(104)):
        with pytest.raises(ValueError, match="headings"):
            replace(ROOMS, headings=wrong)


def test_large_maps_are_colours_and_graphs_are_edges():
    large = eo.discover("open:60x60", 2)
    (picture, _) = read_pictures(large)
    colors = {path.get("fill") for path in picture.iter(f"{SVG}path")}
    assert {_svg.SCREEN_BLUE, _svg.SCREEN_ORANGE} <= colors

    ring = eo.from_graph([(i, (i + 1) % 6) for i in range(6)])
    angle = np.arange(6) * np.pi / 3
    placed = replace(ring, positions=np.stack([np.cos(angle), np.sin(angle)], axis=1))
    (picture,) = read_pictures(placed)
    edges = picture.find(f"{SVG}path").get("d")
    assert edges.count("L") == 6
    options = eo.discover(placed, 2)
    (picture, _) = read_pictures(options)
    assert picture.find(f"{SVG}path").get("d") == edges
    (picture,) = read_pictures(options[0])
    red = [path for path in picture.iter(f"{SVG}path") if path.get("stroke") == RED]
    assert red[0].get("d").count("M") == options[0].termination.sum()


def test_a_spectrum_shows_its_eigenvalues_and_places_the_states():
    spectrum = eo.spectrum(eo.graph(ROOMS), k=5)
    values, states = read_pictures(spectrum)
    assert "".join(values.itertext()) == "eigenvalues 0 to 0.094"
    drawn = [path.get("d", "") for path in states.iter(f"{SVG}path")]
    assert sum(path.count("h0") for path in drawn) == 104
    assert len(read_pictures(eo.spectrum(eo.graph(ROOMS), k=1))) == 1


def test_found_shows_what_was_seen_and_where_actions_are_untried():
    found = eo.explore(ROOMS, 150)
    (picture,) = read_pictures(found)
    filled = [
        path.get("d", "")
        for path in picture.iter(f"{SVG}path")
        if path.get("fill") == _svg.SCREEN_BLUE
    ]
    widths = [int(width) for path in filled for width in re.findall(r"h(\d+)v", path)]
    assert sum(widths) == len(found.seen)
    rings = [path.get("d", "") for path in picture.iter(f"{SVG}path")]
    n_frontier = found.untried.any(axis=1).sum()
    assert sum(path.count("a.17 .17") for path in rings) == 2 * n_frontier

    rewarded = eo.explore(ROOMS, 4_000, until="reward")
    (picture,) = read_pictures(rewarded)
    assert len(find_dots(picture)) == 1


def test_minigrid_has_maps_for_each_state_of_a_few_objects():
    pytest.importorskip("minigrid")
    # A door that is open or closed, between two rooms.
    mdp = eo.from_env("minigrid:MiniGrid-MultiRoom-N2-S4-v0")
    assert mdp.coords is not None
    assert len(np.unique(mdp.coords, axis=0)) == mdp.n_states
    assert len(read_pictures(mdp)) == 4
    assert "per state of the objects" in mdp._repr_html_()
    assert "per state of the objects" in str(eo.discover(mdp, 2))

    # A step forward leads to the next cell of the same map.
    after = mdp.successors[:, 2]
    is_moved = after != np.arange(mdp.n_states)
    steps = np.abs(mdp.coords[after] - mdp.coords)[is_moved]
    assert (steps.sum(axis=1) == 1).all()


def test_found_without_coordinates_is_a_table_of_counts():
    pytest.importorskip("minigrid")
    env = gym.make("minigrid:MiniGrid-Empty-5x5-v0")
    found = eo.explore(env, 100, key=lambda env, obs: f"at {env.agent_pos}")
    assert read_pictures(found) == []
    assert f">{len(found.seen)}</td>" in found._repr_html_()


class Errand(gym.Env):
    """A room of 3 x 4 cells, a switch in its corner, and observations of some form."""

    action_space = gym.spaces.Discrete(4)

    def __init__(self, form="array", jump=1):
        self.form = form
        self.jump = jump
        box = gym.spaces.Box(0, 7, (2,), np.int64)
        self.observation_space = gym.spaces.Box(0, 7, (3,), np.int64)
        if form == "dict":
            self.observation_space = gym.spaces.Dict(
                {"at": box, "on": gym.spaces.Discrete(2)}
            )
        elif form == "float":
            self.observation_space = gym.spaces.Box(0, 7, (3,), np.float32)

    def observe(self):
        if self.form == "dict":
            return {"at": np.array(self.state[:2]), "on": self.state[2]}
        return np.array(self.state, dtype=self.observation_space.dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = (0, 0, 0)
        return self.observe(), {}

    def step(self, action):
        down, right = [(-1, 0), (0, 1), (1, 0), (0, -1)][action]
        row = min(max(self.state[0] + down, 0), 2)
        if self.jump > 1:
            row = (self.state[0] + self.jump * down) % 7
        column = min(max(self.state[1] + right, 0), 3)
        is_on = int(self.state[2] or (row, column) == (2, 3))
        self.state = (row, column, is_on)
        return self.observe(), 0.0, False, False, {}


@pytest.mark.parametrize("form", ["array", "dict"])
def test_states_of_an_own_environment_stand_on_one_map_per_flag(form):
    options = eo.discover(Errand(form), 2)
    coords = options.mdp.coords
    assert len(np.unique(coords, axis=0)) == options.mdp.n_states == 23
    assert coords.max(axis=0).tolist() == [2, 8]
    assert "number 1 to the right; one map per value" in options.mdp.legend
    assert "↓" in str(options)

    found = eo.explore(Errand(form), 400)
    assert len(np.unique(found.mdp.coords, axis=0)) == 23


def test_numbers_are_no_places_where_moves_jump_or_values_are_few():
    assert eo.from_env(Errand(jump=2)).coords is None
    assert observation_places([(0, 0, 1), (1, 0, 1), (0, 1, 1)]) is None
    # A digest, two texts that differ, and numbers that are no integers.
    assert observation_places(["a1", "b2"]) is None
    assert (
        observation_places(
            [(i, j, name) for i in range(3) for j in range(3) for name in ("on", "off")]
        )
        is None
    )
    assert observation_places([(0.5, i) for i in range(4)]) is None
    # Most of a map would be empty.
    assert observation_places([(1000 * i, 1000 * i) for i in range(9)]) is None


def observation_places(keys):
    coords, legend = OBSERVATION.place_states(keys)
    assert (coords is None) == (legend == "")
    return coords


def test_sampled_observations_that_repeat_are_named(caplog):
    eo.discover(Errand("float"), 2, steps=2_000)
    (warning,) = [r.getMessage() for r in caplog.records if "key=" in r.getMessage()]
    assert re.search(r"only 2\d different", warning)
    caplog.clear()
    eo.discover("MountainCar-v0", 2, steps=2_000)
    assert "different" not in caplog.text

    options = eo.discover(Errand("float"), 2, key="observation", steps=2_000)
    assert options.mdp.n_states == 23
    assert options.mdp.coords is not None


def test_options_of_cells_are_maps_of_two_columns(rng):
    position = rng.uniform(0, 4, (4_000, 3))
    action = rng.integers(4, size=4_000)
    moves = np.array([[0, 0.5, 0], [0.5, 0, 0], [0, -0.5, 0], [-0.5, 0, 0.5]])
    after = np.clip(position + moves[action], 0, 4)
    options = eo.discover((position, action, after), 2, n_actions=4)
    pictures = read_pictures(options)
    assert len(pictures) == 2
    html = options._repr_html_()
    assert "column 0 to the right" in html
    assert "means over the other column" in html
    assert len(read_pictures(options[0])) == 1
    # The figure shows the cells, too, unless it gets observations.
    figure = eo.plots.plot_options(options)
    points = figure.axes[0].collections[0].get_offsets()
    assert len(points) == options.features.n_features

    raw = eo.discover((position, action, after), 2, n_actions=4, features="fourier")
    assert read_pictures(raw) == []
    assert "plot_options" in raw._repr_html_()
    with pytest.raises(ValueError, match="observations"):
        eo.plots.plot_options(raw)


def test_options_of_two_bounded_numbers_are_maps(rng):
    position = rng.uniform(0, 4, (4_000, 2))
    action = rng.integers(4, size=4_000)
    moves = np.array([[0, 0.5], [0.5, 0], [0, -0.5], [-0.5, 0]])
    after = np.clip(position + moves[action], 0, 4)
    settings = {"n_actions": 4, "features": "fourier"}
    options = eo.discover((position, action, after), 2, **settings)
    assert len(read_pictures(options)) == 2
    assert len(read_pictures(options[0])) == 1

    # The first number grows to the right, the second one up.
    spread = spread_observations(options.features)
    column, row = np.argsort(spread.obs, axis=0)[-1]
    assert spread.coords[column, 1] == spread.coords[:, 1].max()
    assert spread.coords[row, 0] == spread.coords[:, 0].min()
    figure = eo.plots.plot_options(options)
    points = figure.axes[0].collections[0].get_offsets()
    assert np.allclose(points, spread.obs)

    assert spread_observations(Fourier((0, 0), (1, 1), columns=(0, 2))) is None
    assert spread_observations(Fourier((0,), (1,))) is None
    assert spread_observations(Raw()) is None


def test_options_of_clusters_are_points():
    class Placed:
        places = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])

    page = show_feature_options(
        "title",
        eo.discover("S..", 2),
        Placed(),
        np.array([[-1.0, 0.5, 1.0], [1.0, -0.5, -1.0]]),
        np.array([[0, 0, -1], [-1, 0, 0]]),
    )
    assert page.count("<svg") == 2
    assert page.count(RED) == 2


def test_a_planner_shows_its_cells(rng):
    position = rng.uniform(0, 4, (4_000, 2))
    action = rng.uniform(-1, 1, (4_000, 2))
    data = (position, action, np.clip(position + 0.3 * action, 0, 4))
    planner = eo.Planner(data, cell_size=0.5)
    (picture,) = read_pictures(planner)
    cells = [path.get("d", "") for path in picture.iter(f"{SVG}path")]
    assert sum(path.count("h1v1M") + path.endswith("h1v1") for path in cells) == (
        planner.mdp.n_states
    )
    log = eo.collect(eo.envs.MazeEnv("S..G"), 200, rng=0)
    assert "<table" in eo.Planner(log)._repr_html_()


def test_states_without_coordinates_are_a_table():
    bare = eo.MDP(ROOMS.transition)
    assert str(bare) == repr(bare)
    assert read_pictures(bare) == []
    assert "coordinates" in bare._repr_html_()
    options = eo.discover(bare, 2)
    assert read_pictures(options) == []
    assert options._repr_html_().count("<tr>") == 3


def test_pictures_suit_light_and_dark_pages():
    """Lines and walls have the colour of the text, and nothing is white or black."""
    pages = [ROOMS, eo.discover(ROOMS, 2), eo.discover("open:60x60", 2)]
    for record in pages:
        html = record._repr_html_().lower()
        assert "currentcolor" in html
        assert not re.search(r"white|black|#fff|#000|<style|<script", html)


def test_labels_cannot_command_the_page():
    hostile = eo.Purpose(None, "<script>alert(1)</script>\x1b[31m")
    options = eo.OptionSet(eo.maze("S..G"), [[1] * 4], purposes=[hostile])
    for record in (options, options[0]):
        html = record._repr_html_()
        assert "<script" not in html
        assert "\x1b" not in html
    named = replace(ROOMS, name="<b>", legend="<i>")
    assert not {"<b>", "<i>"} & set(re.findall(r"<\w+>", named._repr_html_()))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_holds_no_outputs_and_hints_that_work_from_a_clone(path):
    """The pages show what the code does now, since it runs when they are built."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    sources = ""
    for cell in notebook["cells"]:
        assert not cell.get("outputs")
        sources += "".join(cell["source"])
    # Nobody has uploaded the package.
    assert not re.search(r"pip install '?eigenoptions", sources)


@pytest.mark.parametrize("name", ["idea", "own_agent"])
def test_options_last_in_a_cell_are_a_picture(name):
    """As getting-started.md promises."""
    (path,) = (path for path in NOTEBOOKS if path.stem == name)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells]
    assert any(source.endswith("\noptions") for source in sources)


def test_the_gallery_begins_with_four_rooms_and_lists_examples_that_exist():
    conf = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    (listed,) = re.findall(r"EXAMPLES = \[(.*?)\]", conf, flags=re.DOTALL)
    names = re.findall(r'"(\w+)"', listed)
    assert names[0] == "four_rooms"
    assert len(names) == len(set(names))
    assert set(names) <= {path.stem for path in (ROOT / "examples").glob("*.py")}


def test_a_notebook_shows_a_bar_only_where_it_can_be_drawn(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    for spec, expected in (
        (None, False),
        (machinery.ModuleSpec("ipywidgets", None), True),
    ):
        monkeypatch.setattr(_progress, "find_spec", lambda name, spec=spec: spec)
        assert _progress._has_spectators() is expected


def test_pictures_need_no_matplotlib():
    code = """
import sys, eigenoptions as eo
eo.discover("four-rooms", 2)._repr_html_()
eo.maze("four-rooms")._repr_html_()
print("matplotlib" in sys.modules, "numba" in sys.modules)
"""
    done = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert done.split() == ["False", "False"]
