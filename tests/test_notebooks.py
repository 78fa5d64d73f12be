"""What a notebook shows of each record: figures of `plots` as images, or text."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from base64 import b64decode
from dataclasses import replace
from importlib import machinery
from io import BytesIO
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

import eigenoptions as eo
from eigenoptions import _progress
from eigenoptions.envs.families.observation import OBSERVATION
from eigenoptions.plots.observed import spread_observations
from eigenoptions.samples.features import Fourier, Raw

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
ROOMS = eo.maze("four-rooms")


def read_image(record: object) -> Image.Image | None:
    """The image that a notebook shows, or None where it shows text."""
    html = record._repr_html_()  # type: ignore[attr-defined]
    images = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    if not images:
        assert html.startswith("<pre>")
        return None
    (data,) = images
    return Image.open(BytesIO(b64decode(data)))


def test_only_the_first_options_are_drawn_and_the_others_counted():
    options = eo.discover(ROOMS, 16)
    assert "... 8 more options: options[8:]" in options._repr_html_()
    assert "more option" not in options[:8]._repr_html_()
    assert read_image(options).size == read_image(options[:8]).size
    # Four in a row.
    assert read_image(options).width == 4 * read_image(options[0]).width
    assert options[0]._repr_html_().count("OptionSet") == 0


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


def test_graphs_large_maps_and_what_was_found_are_pictures():
    ring = eo.from_graph([(i, (i + 1) % 6) for i in range(6)])
    angle = np.arange(6) * np.pi / 3
    placed = replace(ring, positions=np.stack([np.cos(angle), np.sin(angle)], axis=1))
    large = eo.discover("open:60x60", 2)
    spectrum = eo.spectrum(eo.graph(ROOMS), k=5)
    found = eo.explore(ROOMS, 150)
    for record in (ROOMS, placed, eo.discover(placed, 2), large, spectrum, found):
        assert read_image(record) is not None
    # One value has no second function that places the states.
    alone = eo.spectrum(eo.graph(ROOMS), k=1)
    assert read_image(alone).width < read_image(spectrum).width


def test_minigrid_has_maps_for_each_state_of_a_few_objects():
    pytest.importorskip("minigrid")
    # A door that is open or closed, between two rooms.
    mdp = eo.from_env("minigrid:MiniGrid-MultiRoom-N2-S4-v0")
    assert mdp.coords is not None
    assert len(np.unique(mdp.coords, axis=0)) == mdp.n_states
    assert "per state of the objects" in mdp._repr_html_()
    assert "per state of the objects" in str(eo.discover(mdp, 2))

    # A step forward leads to the next cell of the same map.
    after = mdp.successors[:, 2]
    is_moved = after != np.arange(mdp.n_states)
    steps = np.abs(mdp.coords[after] - mdp.coords)[is_moved]
    assert (steps.sum(axis=1) == 1).all()


def test_found_without_coordinates_is_text():
    pytest.importorskip("minigrid")
    env = gym.make("minigrid:MiniGrid-Empty-5x5-v0")
    found = eo.explore(env, 100, key=lambda env, obs: f"at {env.agent_pos}")
    assert read_image(found) is None
    assert f"{len(found.seen)} states" in found._repr_html_()


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
    assert read_image(options).width > read_image(options[0]).width
    figure = eo.plots.plot_options(options)
    text = " ".join(figure.get_supxlabel().split())
    assert "column 0 to the right" in text
    assert "means over the other columns" in text

    # Cells that differ in the third column share a point.
    cells = options.features
    drawn = figure.axes[0].collections[0]
    points = np.asarray(drawn.get_offsets())
    assert len(points) < cells.n_features
    shared = (cells.centers[:, :2] == points[0]).all(axis=1)
    mean = options.directions[0, shared].mean()
    np.testing.assert_allclose(drawn.get_array()[0], mean)

    raw = eo.discover((position, action, after), 2, n_actions=4, features="fourier")
    assert read_image(raw) is None
    with pytest.raises(ValueError, match="observations"):
        eo.plots.plot_options(raw)


def test_options_of_two_bounded_numbers_are_maps(rng):
    position = rng.uniform(0, 4, (4_000, 2))
    action = rng.integers(4, size=4_000)
    moves = np.array([[0, 0.5], [0.5, 0], [0, -0.5], [-0.5, 0]])
    after = np.clip(position + moves[action], 0, 4)
    settings = {"n_actions": 4, "features": "fourier"}
    options = eo.discover((position, action, after), 2, **settings)
    assert read_image(options) is not None

    figure = eo.plots.plot_options(options)
    points = figure.axes[0].collections[0].get_offsets()
    assert np.allclose(points, spread_observations(options.features))

    assert spread_observations(Fourier((0, 0), (1, 1), columns=(0, 2))) is None
    assert spread_observations(Fourier((0,), (1,))) is None
    assert spread_observations(Raw()) is None


def test_a_planner_shows_its_cells(rng):
    position = rng.uniform(0, 4, (4_000, 2))
    action = rng.uniform(-1, 1, (4_000, 2))
    data = (position, action, np.clip(position + 0.3 * action, 0, 4))
    planner = eo.Planner(data, cell_size=0.5)
    assert read_image(planner) is not None
    assert str(planner.fit) in planner._repr_html_()
    log = eo.collect(eo.envs.MazeEnv("S..G"), 200, rng=0)
    assert read_image(eo.Planner(log)) is None


def test_states_without_coordinates_are_text():
    bare = eo.MDP(ROOMS.transition)
    assert str(bare) == repr(bare)
    assert read_image(bare) is None
    assert read_image(eo.discover(bare, 2)) is None
    # Too far apart for a picture.
    corridor = eo.MDP.from_successors([[0, 1], [0, 1]])
    far = replace(corridor, coords=np.array([[0, 0], [60_000, 60_000]]))
    assert read_image(far) is None


def test_pictures_have_a_light_card_on_dark_pages():
    """Unless a style says otherwise, their background is opaque and white."""
    for record in (ROOMS, eo.discover("open:60x60", 2)):
        image = read_image(record).convert("RGBA")
        assert image.getpixel((0, 0)) == (255, 255, 255, 255)


def test_labels_cannot_command_the_page():
    hostile = eo.Purpose(None, "<script>alert(1)</script>\x1b[31m")
    options = eo.OptionSet(eo.maze("S..G"), [[1] * 4], purposes=[hostile])
    bare = eo.OptionSet(eo.MDP(np.eye(4)[:, None]), [[0] * 4], purposes=[hostile])
    for record in (options, options[0], bare, bare[0]):
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


def test_text_needs_no_matplotlib():
    code = """
import sys, eigenoptions as eo
from eigenoptions.cli import main
print(eo.discover("four-rooms", 2))
print(eo.maze("four-rooms"))
for line in ("demo", "discover i-maze -n 2", "mazes", "diffusion i-maze -n 2"):
    assert main(line.split()) == 0
print("matplotlib" in sys.modules)
eo.maze("four-rooms")._repr_html_()
print("matplotlib" in sys.modules, "matplotlib.pyplot" in sys.modules)
"""
    done = subprocess.check_output([sys.executable, "-c", code], text=True)
    lines = done.splitlines()
    assert lines[-2:] == ["False", "True False"]
