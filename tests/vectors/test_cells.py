"""Options of a table of cells: what `discover` makes of recorded vectors."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.options import TERMINATE, Purpose, eigenpurposes
from eigenoptions.options.execution import PredictedRise
from eigenoptions.plots.paths import RecordedSteps
from eigenoptions.samples import Transitions
from eigenoptions.samples.changes import measure_step, measure_unit
from eigenoptions.samples.collection import run_options
from eigenoptions.samples.features import Fourier, Tiles
from eigenoptions.samples.fitting import fit
from eigenoptions.samples.incidence import feature_spectrum
from eigenoptions.vectors import VectorModel
from eigenoptions.vectors.cells import Cells
from eigenoptions.vectors.imputation import impute_transitions
from eigenoptions.vectors.sizes import PredictionTargets, choose_size
from tests.halls import TurningRobot
from tests.test_machines import supported_core_types

ROOT = Path(__file__).parents[2]


def make_hall_log(n_steps: int = 6000, seed: int = 0) -> Transitions:
    """Steps along one axis through a hall of 6 x 6 with a wall, and a battery."""
    rng = np.random.default_rng(seed)
    moves = 0.5 * np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
    rows = []
    for _ in range(n_steps // 100):
        place = rng.uniform(0, (2.5, 6))
        battery = 1.0
        for _ in range(100):
            action = int(rng.integers(4))
            after = np.clip(place + moves[action], 0, 6)
            if 2.5 < after[0] < 3.5 and after[1] < 4.5:
                after = place
            rows.append((*place, battery, action, *after, battery - 0.01))
            place = after
            battery -= 0.01
    table = np.array(rows)
    return Transitions(
        table[:, :3],
        table[:, 3].astype(int),
        table[:, 4:],
        np.zeros(len(table), dtype=bool),
    )


LOG = make_hall_log()


@pytest.fixture(scope="module")
def options() -> eo.LinearOptionSet:
    """Options of the hall, without the battery."""
    return eo.discover(LOG, 8, n_actions=4, columns=[0, 1])


def test_vectors_become_cells_and_every_method_works_on_them(options):
    assert "cells" in repr(options)
    assert isinstance(options.features, Cells)
    assert options.features.columns == (0, 1)
    covering = eo.discover(LOG, 4, "covering", n_actions=4, columns=[0, 1])
    assert len(covering) == 4


def test_the_first_option_leads_round_the_wall(options):
    """The two ends of the hall are the two ends of the first eigenvector."""
    left = [[0.5, 0.5, 1.0]]
    right = [[5.5, 0.5, 1.0]]
    first = options.potential(left)[:2, 0] - options.potential(right)[:2, 0]
    assert abs(first[0]) > 0.5 * np.ptp(options.directions[0])
    assert first[0] == pytest.approx(-first[1])


def test_a_battery_is_named_with_its_remedy(caplog):
    eo.discover(LOG, 4, n_actions=4)
    assert "columns=[0, 1]" in caplog.text
    assert "drifting" in caplog.text


def test_policies_of_cells_are_those_of_the_solved_table():
    """The rule that chooses actions of observations is that of `solve`."""
    from eigenoptions.samples import check_columns
    from eigenoptions.samples.sampling import read_samples
    from eigenoptions.samples.tuning import tune_on_cells
    from eigenoptions.vectors.from_vectors import act_on_cells, cut_samples

    samples = read_samples(LOG, n_actions=4)
    model = cut_samples(samples, check_columns(LOG, [0, 1]))
    cells, mdp = model.cells, model.mdp
    table = eo.discover(mdp, 8, gamma=0.97)
    tuned = tune_on_cells(table, model.visits)
    options = act_on_cells(table, cells, 0.97, tuned)
    middles = np.column_stack([cells.centers, np.ones(mdp.n_states)])
    np.testing.assert_array_equal(options.actions(middles), table.policy)
    np.testing.assert_allclose(
        options.values(middles).max(axis=2).clip(0), table.value, atol=1e-9
    )


def test_unknown_cells_belong_to_the_nearest_one():
    cells = Cells((0.0,), (1.0,), (1,), {"corners": [[0], [5]]})
    obs = [[9, 0.5], [9, 2.0], [9, 4.0], [9, -70.0], [9, 5.2]]
    assert cells.find_states(obs).tolist() == [0, 0, 1, 0, 1]
    assert cells.measure_distances(obs).tolist() == [0.0, 1.0, 1.0, 70.0, 0.0]
    assert cells(obs).toarray().sum(axis=1).tolist() == [1.0] * 5
    with pytest.raises(ValueError, match="columns"):
        Cells((0.0,), (1.0,), (0, 1), {"corners": [[0]]})
    with pytest.raises(ValueError, match="recorded"):
        eo.discover(LOG, 2, n_actions=4, features="cells")


def test_cells_grow_until_they_have_visits():
    """Where nothing is to be told apart, cells are as large as they may be."""

    def choose(n_steps, n_columns, change):
        rng = np.random.default_rng(0)
        obs = rng.uniform(0, 10, (n_steps, n_columns))
        step = np.full(n_columns, change)
        is_steered = np.ones(n_columns, dtype=bool)
        # Each step goes its own way: no cell predicts it, and small ones do it worst.
        ways = rng.choice([-1.0, 1.0], (n_steps, n_columns))
        label = np.zeros(n_steps, dtype=int)
        outcomes = PredictionTargets(obs, label, ways, 0 * ways, 1.0, n_steps)
        size = choose_size(obs, obs + change, step, is_steered, outcomes)
        return size, len(np.unique(np.floor(obs / size), axis=0))

    size, n_cells = choose(500, 3, 0.1)
    assert size.max() <= 10.1 / 4
    assert size.min() == pytest.approx(size.max(), rel=0.02)
    assert n_cells <= 125
    # Four times one and a half steps.
    size, _ = choose(50_000, 2, 0.2)
    np.testing.assert_allclose(size, 1.2, rtol=1e-6)


def test_small_cells_are_kept_where_they_predict_better():
    """A chessboard of fields, a cell wide, in which actions go opposite ways."""
    rng = np.random.default_rng(0)
    obs = rng.uniform(0, 12, (40_000, 2))
    field = np.floor(obs / 0.3 + 1e-6).sum(axis=1) % 2
    ways = (2 * field - 1)[:, None]
    label = np.zeros(len(obs), dtype=int)
    outcomes = PredictionTargets(obs, label, ways, 0 * ways, 1.0, len(obs))
    step = np.full(2, 0.2)
    size = choose_size(obs, obs + 0.2, step, np.ones(2, dtype=bool), outcomes)
    np.testing.assert_allclose(size, 0.3, rtol=1e-6)


def test_a_column_that_nobody_steers_is_cut_in_few():
    options = eo.discover(LOG, 4, n_actions=4)
    cells = options.features
    assert cells.columns == (0, 1, 2)
    assert len(np.unique(cells.arrays["corners"][:, 2])) <= 3


def test_one_model_serves_options_planner_and_explorer(tmp_path):
    model = VectorModel.of(LOG, columns=[0, 1])
    planner = eo.Planner(LOG, columns=[0, 1])
    options = eo.discover(LOG, 4, n_actions=4, columns=[0, 1])
    np.testing.assert_array_equal(planner.cell_size, options.features.size)
    np.testing.assert_array_equal(model.cells.size, options.features.size)
    assert model.visits.sum() == len(LOG)
    assert model.mdp.n_states == len(model.examples)

    # An example belongs to the cell that it is an example of.
    states = np.arange(model.mdp.n_states)
    np.testing.assert_array_equal(model.find_states(model.examples), states)
    assert [planner.state(obs) for obs in model.examples[:9]] == states[:9].tolist()
    key = model.cells.key(None, model.examples[3])
    assert key == tuple(model.cells.arrays["corners"][3].tolist())

    part = model.restrict(states)
    np.testing.assert_array_equal(part.find_states(LOG.obs), model.find_states(LOG.obs))
    options.save(tmp_path / "skills")
    loaded = eo.load_options(tmp_path / "skills").features
    np.testing.assert_array_equal(loaded.examples, options.features.examples)
    assert loaded.to_dict() == options.features.to_dict()


def test_transitions_are_imputed_from_the_nearest_one_of_each_action():
    points = np.array([[0.0], [0.2], [5.0], [0.9]])
    action = np.array([0, 1, 1, 0])
    imputed = impute_transitions(points, np.zeros(4, dtype=int), action, 3)
    pairs = sorted(zip(imputed.point.tolist(), imputed.step.tolist(), strict=True))
    # Nobody took action 2, and the point at 5 is too far from all others.
    assert pairs == [(0, 1), (1, 0), (3, 1)]


def test_a_few_steps_are_named_as_such(caplog):
    eo.discover(LOG[:50], 2, n_actions=4, columns=[0, 1])
    assert "50 steps" in caplog.text


def test_no_move_of_the_table_leads_through_a_wall():
    """An imputed transition that would lead into it stays."""
    from eigenoptions.samples import check_columns
    from eigenoptions.samples.sampling import read_samples
    from eigenoptions.vectors.from_vectors import cut_samples

    samples = read_samples(LOG, n_actions=4)
    model = cut_samples(samples, check_columns(LOG, [0, 1]))
    cells, mdp = model.cells, model.mdp
    moves = mdp.transition.tocoo()
    x, y = cells.centers.T
    is_below_gap = y < 4.0
    before = moves.row // 4
    crosses = is_below_gap[before] & is_below_gap[moves.col]
    crosses &= (x[before] < 3.0) != (x[moves.col] < 3.0)
    assert not crosses.any()


# Every option ends


def test_exact_values_predict_their_rise():
    """A path over a valley: the potential falls first, and values grow meanwhile."""
    gamma = 0.9
    potential = np.array([0.0, -1.0, -2.0, -1.0, 1.0, 3.0])
    value = np.zeros(6)
    for i in reversed(range(5)):
        value[i] = potential[i + 1] - potential[i] + gamma * value[i + 1]
    assert (value[:5] > 0).all()
    predicted = PredictedRise(gamma)
    assert all(predicted.is_met(f, v) for f, v in zip(potential, value, strict=True))


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
def test_an_option_that_stands_still_ends_soon(gamma):
    predicted = PredictedRise(gamma)
    steps = 0
    while predicted.is_met(0.0, 1.0):
        steps += 1
    assert steps <= 3 + np.log(2) / np.log(1 / gamma)


@pytest.mark.parametrize("features", [None, "fourier"])
@pytest.mark.parametrize("name", ["MountainCar-v0", "Acrobot-v1"])
def test_options_end_well_before_the_episode(name, features):
    if features is not None:
        features = eo.Fitted(features, order=2)
    env = gym.make(name)
    options = eo.discover(name, 4, steps=4000, features=features)
    limit = env.spec.max_episode_steps
    paths = run_options(env, options, runs=3, max_steps=limit)
    lengths = [len(path) - 1 for of_option in paths for path in of_option]
    assert 0 < max(lengths) < limit - 50


# They settle, and repeat


def test_fitted_values_settle_or_a_warning_names_the_argument(caplog):
    purposes = eigenpurposes(feature_spectrum(LOG, Fourier((0, 0, 0), (6, 6, 1))))[:2]
    phi = Fourier((0, 0, 0), (6, 6, 1))
    fit(LOG, purposes, phi, n_actions=4)
    assert "iterations" not in caplog.text
    fit(LOG, purposes, phi, n_actions=4, iterations=2)
    assert "iterations=8" in caplog.text


def test_noise_below_rounding_changes_no_action():
    """Tiles with more features than steps, where a plain iteration is chaotic."""
    rng = np.random.default_rng(0)
    steps = LOG[:1500]
    phi = Tiles((0, 0, 0), (6, 6, 1), tiles=8, tilings=4, size=512)
    purposes = eigenpurposes(feature_spectrum(steps, phi))[:4]
    noisy = []
    for purpose in purposes:
        noise = 1.0 + 1e-13 * rng.standard_normal(512)
        noisy.append(replace(purpose, potential=purpose.potential * noise))
    settings = {"n_actions": 4, "ridge": 1e-3}
    plain = fit(steps, purposes, phi, **settings).actions(steps.obs)
    other = fit(steps, noisy, phi, **settings).actions(steps.obs)
    assert (plain != other).sum() == 0

    moved = replace(steps, obs=steps.obs * (1 + 1e-13))
    before = eo.discover(steps, 4, n_actions=4, columns=[0, 1])
    after = eo.discover(moved, 4, n_actions=4, columns=[0, 1])
    np.testing.assert_array_equal(
        before.actions(steps.obs + 0.03), after.actions(steps.obs + 0.03)
    )


@pytest.mark.parametrize("features", [None, "fourier", "tiles"])
def test_noise_below_rounding_changes_no_action_of_a_turning_robot(features):
    """Turns of 45 degrees lead back to the same headings, on the edges of tiles."""
    rng = np.random.default_rng(0)
    robot = TurningRobot(np.pi / 4)
    obs, action, next_obs = robot.record(rng, 20)

    def add_noise(points):
        return points * (1.0 + 1e-13 * rng.standard_normal(points.shape))

    settings = {"n_actions": 3, "features": features}
    options = eo.discover((obs, action, next_obs), 4, **settings)
    noisy = (add_noise(obs), action, add_noise(next_obs))
    other = eo.discover(noisy, 4, **settings)
    np.testing.assert_array_equal(options.actions(obs), other.actions(obs))
    np.testing.assert_array_equal(options.actions(obs), options.actions(noisy[0]))


def compute_actions() -> dict[str, np.ndarray]:
    """Actions of options of cells, tiles and symmetric features."""
    steps = LOG[:800]
    axis = np.arange(5) + 0.5
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    obs = np.repeat(grid, 4, axis=0)
    action = np.tile(np.arange(4), len(grid))
    moves = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
    after = np.clip(obs + moves[action], 0.5, 4.5)
    square = Transitions(obs, action, after, np.zeros(len(obs), dtype=bool))
    return {
        "cells": eo.discover(steps, 4, n_actions=4).actions(steps.obs),
        "tiles": eo.discover(
            steps, 4, n_actions=4, features=eo.Fitted("tiles", tiles=3, tilings=2)
        ).actions(steps.obs),
        "square": eo.discover(
            square, 4, n_actions=4, features=eo.Fitted("fourier", per_cell=None)
        ).actions(grid),
    }


def test_options_of_vectors_are_the_same_on_every_machine(tmp_path):
    cores = supported_core_types()
    if len(cores) < 2:
        pytest.skip("this CPU has one kind of OpenBLAS kernels")
    expected = compute_actions()
    core = "Haswell" if "Haswell" in cores else cores[-1]
    for name, threads in ((cores[0], "1"), (core, "2")):
        out = tmp_path / f"{name}.npz"
        env = {
            **os.environ,
            "OPENBLAS_CORETYPE": name,
            "OPENBLAS_NUM_THREADS": threads,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        }
        code = (
            "import numpy as np; from tests.vectors.test_cells import compute_actions; "
            f"np.savez({str(out)!r}, **compute_actions())"
        )
        subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=300)
        with np.load(out) as found:
            for kind, actions in expected.items():
                assert (found[kind] == actions).all(), f"{kind} on {name}"


# What travels with them


def test_exploration_travels_with_options_and_their_file(options, tmp_path):
    found = options.exploration
    assert found is not None
    options.save(tmp_path / "skills")
    loaded = eo.load_options(tmp_path / "skills")
    assert loaded.exploration == found
    assert loaded[2:4].exploration == found
    assert loaded.gamma == options.gamma
    np.testing.assert_array_equal(loaded.actions(LOG.obs), options.actions(LOG.obs))

    fitted = eo.discover(LOG, 4, n_actions=4, features="fourier")
    assert fitted.exploration is not None
    assert fitted.exploration.agent_chance is not None


def test_the_wrapper_reads_the_exploration_of_options():
    options = eo.discover("MountainCar-v0", 4, steps=3000)
    exploration = eo.options.tuning.Exploration(0.2, 0.3, agent_chance=0.1)
    chosen = replace(options, exploration=exploration)
    env = eo.OptionsWrapper(gym.make("MountainCar-v0"), chosen)
    # The options that an agent chooses run to their ends.
    assert (env.option_chance, env.stop_chance) == (0.1, 0.0)


def test_check_compares_options_with_an_environment():
    options = eo.discover("MountainCar-v0", 2, steps=3000)
    options.check(gym.make("MountainCar-v0"))
    with pytest.raises(ValueError, match="actions"):
        options.check(gym.make("CartPole-v1"))
    far = replace(
        options.features, low=tuple(np.add(options.features.low, 50.0).tolist())
    )
    with pytest.raises(ValueError, match="another environment"):
        replace(options, features=far).check(gym.make("MountainCar-v0"))
    look = eo.LinearOptionSet([Purpose([1.0])], np.asarray, 3)
    with pytest.raises(ValueError, match="features"):
        look.check(gym.make("MountainCar-v0"))


def test_options_terminate_where_no_cell_is_higher(options):
    actions = options.actions(LOG.obs)
    assert (actions == TERMINATE).any(axis=1).all()
    assert (actions >= 0).any(axis=1).all()


def test_paths_of_recorded_steps_end_where_the_option_does():
    """A line of which both ends are reached, by steps that nobody took in a row."""
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 10, (3_000, 1))
    action = rng.integers(2, size=3_000)
    after = np.clip(place + 0.5 * (2 * action[:, None] - 1), 0, 10)
    noise = rng.normal(size=(3_000, 1))
    before = np.hstack([place, noise])
    after = np.hstack([after, noise])
    steps = eo.Transitions(before, action, after, action < 0)
    options = eo.discover(steps, 2, n_actions=2, columns=[0])

    recorded = RecordedSteps(steps, options.features.columns)
    ends = []
    for option in options:
        start = int(np.argmin(options.potential(before)[len(ends)]))
        path = recorded.follow(option, start, rng)
        assert path.has_ended
        potential = [option.potential(obs) for obs in path.obs]
        assert potential[-1] > potential[0]
        ends.append(path.obs[-1, 0])
    assert min(ends) < 2.0
    assert max(ends) > 8.0

    figure = eo.plots.plot_options(options, steps)
    # Six lines, with a circle and most with a dot.
    assert all(len(ax.lines) >= 12 for ax in figure.axes)
    with pytest.raises(ValueError, match="over"):
        eo.plots.plot_options(options, steps, over=(0, 2))


def test_options_of_own_features_of_frames_are_tuned_where_places_repeat():
    rooms = eo.maze("rooms:2x2")
    walk = eo.collect(eo.MDP(rooms.transition), 8_000, rng=0)
    height, width = rooms.coords.max(axis=0) + 1
    frames = np.zeros((rooms.n_states, height, width), dtype=np.uint8)
    frames[np.arange(rooms.n_states), rooms.coords[:, 0], rooms.coords[:, 1]] = 255

    def flatten(obs):
        return np.asarray(obs).reshape(len(obs), -1) / 255.0

    log = (frames[walk.obs], walk.action, frames[walk.next_obs])
    flat = eo.Fitted(flatten, per_cell=None)
    options = eo.discover(log, 8, n_actions=4, features=flat)
    assert options.exploration is not None
    assert options.exploration.option_chance > 0

    # A noise of its own in each frame: no place is visited twice.
    noise = np.random.default_rng(0).random((2, 8_000, 1, 1))
    log = (log[0] + noise[0], walk.action, log[2] + noise[1])
    hasty = eo.Fitted(flatten, per_cell=None, iterations=3)
    assert eo.discover(log, 8, n_actions=4, features=hasty).exploration is None


# Steps


def test_a_large_step_does_not_depend_on_how_often_nothing_changes():
    """A robot that turns most of the time drives as far as one that always drives."""
    drives = np.linspace(0.1, 0.5, 100)[:, None]
    rests = np.zeros((900, 1))
    assert measure_step(drives) == measure_step(np.concatenate([drives, rests]))
    # A door that nobody moves, and a column that is constant.
    before = np.array([[0.0, 8.0, 3.0], [1.0, 0.0, 3.0]])
    after = before + np.array([0.5, 0.0, 0.0])
    assert measure_unit(before, after).tolist() == [0.5, 2.0, 1.0]
