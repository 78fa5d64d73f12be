"""`Planner` on tables, vectors and continuous actions; `ShapedReward`.

Also the quick part of the OGBench benchmark.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary
from matplotlib.figure import Figure

import eigenoptions as eo
from eigenoptions.mdp import distance
from eigenoptions.vectors.displacement import drop_small_parts
from studies.potentials import COMPARED, compute_commute, compute_hitting
from tests.halls import Hall, TurningRobot, show_radians, show_sine_and_cosine


def log_of(maze: str) -> Any:
    """Every action once in every state of a maze."""
    mdp = eo.maze(maze)
    assert mdp.successors is not None
    states, actions = np.indices(mdp.successors.shape).reshape(2, -1)
    return states, actions, mdp.successors.ravel()


def in_wall(position: Any) -> Any:
    return (np.abs(position[..., 0] - 5) < 1) & (position[..., 1] < 4.5)


def move(position: Any, action: Any) -> Any:
    """A room of 10 x 6 with a wall in the middle, which leaves a gap at the top."""
    following = np.clip(position + 0.2 * action, 0.0, (10.0, 6.0))
    return np.where(in_wall(following)[..., None], position, following)


@pytest.fixture(scope="module")
def room() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    obs = rng.uniform(0, (10, 6), (30_000, 2))
    obs = obs[~in_wall(obs)]
    action = rng.uniform(-1, 1, obs.shape)
    return obs, action, move(obs, action)


def test_shortest_potential_equals_breadth_first_distance() -> None:
    mdp = eo.maze("four-rooms")
    planner = eo.Planner(log_of("four-rooms"), potential="shortest")
    for goal in (0, 50, 103):
        for state in range(0, 104, 9):
            expected = distance(mdp, state, goal)
            assert planner.distance(state, goal) == expected


def test_log_z_equals_dense_inverse() -> None:
    planner = eo.Planner(log_of("four-rooms"), temperature=2.0)
    P = planner.mdp.transition.toarray().reshape(104, 4, 104).mean(axis=1)
    Z = np.linalg.inv(np.exp(0.5) * np.eye(104) - P)
    np.testing.assert_allclose(
        planner.potential(7), np.log(Z[:, 7] / Z[7, 7]), rtol=1e-9, atol=1e-12
    )


def test_compared_potentials_are_hitting_and_commute_times() -> None:
    log = log_of("i-maze")
    hitting = eo.Planner(log, potential=compute_hitting)
    times = eo.hitting_times(hitting.mdp)
    np.testing.assert_allclose(-hitting.potential(5), times[:, 5])

    commute = eo.Planner(log, potential=compute_commute)
    # Actions into walls take time in `times`: the graph has no such loops.
    shorter = eo.graph(commute.mdp).sum() / len(commute.mdp.transition.data)
    both_ways = times[:, 5] + times[5]
    np.testing.assert_allclose(-commute.potential(5), shorter * both_ways)


def test_a_walk_that_is_lost_beyond_the_goal_has_a_mean_time_to_it() -> None:
    log = ([0, 1, 1, 2] * 50, [0] * 200, [1, 2, 2, 2] * 50)
    planner = eo.Planner(log, potential=compute_hitting)
    assert planner.distance(0, 1) == 1.0
    assert planner.distance(2, 1) == np.inf


@pytest.mark.parametrize("name", COMPARED)
def test_greedy_descent_of_potentials_without_minima_arrives(name: str) -> None:
    mdp = eo.maze("four-rooms")
    planner = eo.Planner(log_of("four-rooms"), potential=COMPARED[name], greedy=True)
    assert mdp.successors is not None
    for start in range(104):
        state = start
        for _ in range(200):
            if state == 60 or planner.act(state, 60) == eo.TERMINATE:
                break
            state = int(mdp.successors[state, planner.act(state, 60)])
        # The commute time has minima, where descent stops.
        assert state == 60 or name == "commute"


def test_a_potential_of_ones_own_is_checked_and_kept_from_what_is_unreachable() -> None:
    # Two rooms without a door.
    log = ([0, 1, 3, 4], [0, 1, 0, 1], [1, 0, 4, 3])
    planner = eo.Planner(log, potential=lambda mdp, goal: -np.abs(np.arange(5) - goal))
    assert planner.potential(1).tolist() == [-1.0, 0.0, -np.inf, -np.inf, -np.inf]
    for wrong in (np.zeros(4), np.full(5, np.nan), ["far"] * 5):
        planner = eo.Planner(log, potential=lambda mdp, goal, wrong=wrong: wrong)
        with pytest.raises(ValueError, match="potential"):
            planner.potential(1)


def test_log_z_falls_along_a_corridor_longer_than_floating_point_range() -> None:
    planner = eo.Planner(log_of("S" + "." * 998 + "G"))
    assert (np.diff(planner.potential(999)) > 0).all()


def test_act_on_a_table_takes_shortest_ways_and_terminates_at_the_goal() -> None:
    mdp = eo.maze("four-rooms")
    planner = eo.Planner(log_of("four-rooms"))
    for start in (0, 40, 100):
        way = planner.plan(start, 77)
        assert way[0] == start
        assert way[-1] == 77
        assert len(way) - 1 == distance(mdp, start, 77)
    assert planner.act(77, 77) == eo.TERMINATE


def test_continuous_actions_lead_round_a_wall(room: Any) -> None:
    planner = eo.Planner(room)
    position = np.array([3.0, 1.0])
    goal = np.array([7.0, 1.0])
    highest = 0.0
    for _ in range(300):
        action = planner.act(position, goal)
        assert np.abs(action).max() <= 1.0
        position = move(position, action)
        highest = max(highest, position[1])
    assert highest > 4.5
    np.testing.assert_allclose(position, goal, atol=0.05)
    assert planner.plan([3.0, 1.0], goal)[:, 1].max() > 4.5
    assert planner.distance([3.0, 1.0], goal) > planner.distance([7.0, 4.0], goal)


def test_random_jumps_are_avoided_where_they_may_end_in_a_dead_end() -> None:
    """A door leads to the goal or to an island, by chance; the way round is certain."""
    rng = np.random.default_rng(0)
    obs = rng.uniform(0, (10, 6), (30_000, 2))
    is_door = in_wall(obs) & (obs[:, 1] < 1)
    is_free = ~in_wall(obs) | is_door
    obs = obs[is_free]
    is_door = is_door[is_free]

    # Every action in the door jumps to one of two places.
    action = rng.uniform(-1, 1, obs.shape)
    next_obs = np.clip(obs + 0.2 * action, 0.0, (10.0, 6.0))
    is_blocked = in_wall(next_obs) & (next_obs[:, 1] >= 1)
    next_obs[is_blocked] = obs[is_blocked]
    places = np.array([[9.0, 1.0], [20.0, 20.0]])
    next_obs[is_door] = places[rng.integers(2, size=is_door.sum())]

    # With a small gamma the risk counts less than the long way.
    gamble = eo.Planner((obs, action, next_obs), 1.0, gamma=0.5)
    planner = eo.Planner((obs, action, next_obs))
    assert planner.plan([3.0, 0.5], [9.0, 1.0])[:, 1].max() > 4.5
    assert gamble.plan([3.0, 0.5], [9.0, 1.0])[:, 1].max() < 4.5

    # Actions do not depend on where the origin is, also in the door, where nobody
    # crossed a border.
    shifted = eo.Planner((obs + 64, action, next_obs + 64), 1.0, gamma=0.5)
    assert gamble.centers is not None
    for center in gamble.centers[np.isfinite(gamble.potential([9.0, 1.0]))]:
        np.testing.assert_allclose(
            gamble.act(center, [9.0, 1.0]),
            shifted.act(center + 64, [73.0, 65.0]),
            atol=1e-6,
        )


def teleport(position: Any, action: Any) -> Any:
    """Two rooms of 4 x 4; a small place in a cell of the first leads to the second.

    It lies in the middle of the cell.
    """
    low = np.where(position[..., :1] > 5, (10.0, 0.0), (0.0, 0.0))
    following = np.clip(position + 0.2 * action, low, low + 4.0)
    jumps = np.linalg.norm(position - 2.5, axis=-1, keepdims=True) < 0.3
    return np.where(jumps, (12.0, 2.0), following)


def test_jumps_are_taken_where_others_jumped() -> None:
    rng = np.random.default_rng(0)
    inside = rng.uniform(0, 4, (20_000, 2))
    corners = np.array([[0.0, 0.0], [10.0, 0.0]])
    obs = inside + corners[rng.integers(2, size=20_000)]
    action = rng.uniform(-1, 1, obs.shape)
    planner = eo.Planner((obs, action, teleport(obs, action)), 1.0)
    assert planner.mdp.n_actions == 9
    for start in ((0.5, 0.5), (3.5, 0.5), (0.5, 3.5), (3.5, 3.5)):
        position = np.array(start)
        for _ in range(60):
            position = teleport(position, planner.act(position, [13.0, 3.0]))
        np.testing.assert_allclose(position, [13.0, 3.0], atol=0.05)


@pytest.mark.parametrize("seed", [0, 4, 18, 20])
def test_one_recorded_way_leads_there_and_back(seed: int) -> None:
    """The way goes round corners of cells.

    Straight lines between them would lead through cells that lead back.
    """
    rng = np.random.default_rng(seed)
    action = np.clip(rng.normal([0.8, 0.5], 0.5, (120, 2)), -1, 1)
    action[:2] = [[-1, -1], [1, 1]]
    way = np.cumsum(np.vstack([[50.0, 50.0], 0.2 * action]), axis=0)
    planner = eo.Planner((way[:-1], action, way[1:]), 1.0)
    for position, goal in ((way[0], way[-1]), (way[-1], way[0])):
        for _ in range(200):
            position = position + 0.2 * planner.act(position, goal)
        np.testing.assert_allclose(position, goal, atol=1e-3)


def test_act_without_memory_gets_past_a_wall_and_only_there_varies_its_moves(
    room: Any,
) -> None:
    """Cells are wide here: of all moves from one side of a cell, the best ones fail."""
    planner = eo.Planner(room, 0.76)
    goal = np.array([7.0, 1.0])
    position = np.array([3.0, 1.0])
    for _ in range(300):
        position = move(position, planner.act(position, goal))
    np.testing.assert_allclose(position, goal, atol=0.05)

    # Always the same answer, on request and in free space.
    beside_wall = [3.858, 3.865]
    for place, varied in ((beside_wall, False), ([1.5, 2.0], True)):
        actions = [planner.act(place, goal, varied=varied) for _ in range(50)]
        assert len(np.unique(actions, axis=0)) == 1
    actions = [planner.act(beside_wall, goal) for _ in range(50)]
    assert len(np.unique(actions, axis=0)) > 1


def test_a_step_along_one_axis_is_no_try_of_the_diagonal() -> None:
    expected = np.array([[0.38, -0.00005], [0.3, 0.1], [0.38, 0.05], [0.02, 0.02]])
    dropped = drop_small_parts(expected, np.full(2, 0.36))
    np.testing.assert_array_equal(dropped[0], [0.38, 0.0])
    np.testing.assert_array_equal(dropped[1:], expected[1:])


def test_discrete_actions_on_vectors_lead_to_the_goal() -> None:
    states, actions, following = log_of("four-rooms")
    coords = np.asarray(eo.maze("four-rooms").coords, dtype=float)
    planner = eo.Planner((coords[states], actions, coords[following]), 1.0)
    assert planner.mdp.n_states == 104
    assert planner.mdp.n_actions == 4
    way = planner.plan(coords[0], coords[60])
    np.testing.assert_allclose([way[0], way[-1]], [coords[0], coords[60]])


def test_options_are_ordinary_options(tmp_path: Path) -> None:
    planner = eo.Planner(log_of("four-rooms"))
    options = planner.options(4)
    assert len(set(options.goals)) == 4

    options.save(tmp_path / "options.safetensors")
    loaded = eo.load_options(tmp_path / "options.safetensors")
    assert np.array_equal(loaded.policy, options.policy)

    env = eo.OptionsWrapper(eo.envs.MazeEnv("four-rooms"), options, state=planner.state)
    env.reset(seed=0)
    obs = env.step(4)[0]
    assert obs == options.goals[0]
    assert planner.option(77).goal == 77


class Table(gym.Env[Any, Any]):
    """An MDP with rewards, as an environment; state 0 terminates."""

    def __init__(self, P: Any, R: Any) -> None:
        self.P = P
        self.R = R
        self.observation_space = Discrete(len(P))
        self.action_space = Discrete(P.shape[1])

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.s = int((options or {}).get("state", 1))
        return self.s, {}

    def step(self, action: Any) -> Any:
        reward = self.R[self.s, action]
        self.s = int(self.P[self.s, action].argmax())
        return self.s, reward, self.s == 0, False, {}


def test_shaped_reward_keeps_optimal_policies_of_random_mdps() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        P = np.eye(6)[rng.integers(6, size=(6, 3))]
        R = rng.normal(size=(6, 3))
        f = rng.normal(size=6)
        gamma = 0.9
        env = eo.ShapedReward(Table(P, R), f, gamma)
        shaped = np.zeros((6, 3))
        for state in range(1, 6):
            for action in range(3):
                env.reset(options={"state": state})
                shaped[state, action] = env.step(action)[1]

        # State 0 is terminal.
        plain_values = solve_values(P, R, gamma)[1:]
        shaped_values = solve_values(P, shaped, gamma)[1:]
        best = plain_values.argmax(axis=1)
        assert np.array_equal(shaped_values.argmax(axis=1), best)
        np.testing.assert_allclose(shaped_values, plain_values - f[1:, None], atol=1e-8)


def solve_values(P: Any, R: Any, gamma: float) -> Any:
    """Optimal action values; state 0 is terminal."""
    q = np.zeros(R.shape)
    for _ in range(400):
        value = q.max(axis=1)
        value[0] = 0.0
        q = R + gamma * P @ value
    return q


def test_shaped_reward_takes_functions_and_refuses_infinite_potentials() -> None:
    env = eo.ShapedReward(
        eo.envs.MazeEnv("S.G"), lambda obs: -abs(2.0 - obs), gamma=1.0
    )
    env.reset()
    _, reward, _, _, info = env.step(1)
    assert reward == 1.0
    assert info["unshaped_reward"] == 0.0
    with pytest.raises(ValueError, match="finite"):
        eo.ShapedReward(eo.envs.MazeEnv("S.G"), [-np.inf, 0.0, 0.0], gamma=1.0).reset()
    with pytest.raises(ValueError, match="3 states"):
        eo.ShapedReward(eo.envs.MazeEnv("S.G"), [0.0, 0.0], gamma=1.0)
    switches = Table(np.eye(3)[:, None], np.zeros((3, 1)))
    switches.observation_space = MultiBinary(3)
    with pytest.raises(ValueError, match="function"):
        eo.ShapedReward(switches, np.zeros(3), gamma=1.0)


def test_options_go_around_the_shaped_reward_and_are_refused_inside() -> None:
    """The reward of k steps is gamma**k f(next) - f(state) more."""
    potential = np.arange(6.0) ** 2
    maze = eo.envs.MazeEnv("S....G")
    options = eo.OptionSet(maze.mdp, np.array([[1, 1, 1, 1, -1, -1]]))
    for mode, gamma in (("call-and-return", 0.9), ("step", 0.5)):
        shaped = eo.ShapedReward(maze, potential, gamma)
        env = eo.OptionsWrapper(shaped, options, gamma, mode, option_chance=None)
        env.reset()
        total = 0.0
        discount = 1.0
        duration = 0
        while duration < 4:
            _, reward, _, _, info = env.step(4)
            total += discount * reward
            discount *= info["discount"]
            duration += info["duration"]
        assert total == pytest.approx(gamma**4 * 16.0)

    env = eo.OptionsWrapper(maze, options, option_chance=None)
    with pytest.raises(ValueError, match="inside"):
        eo.ShapedReward(gym.wrappers.TimeLimit(env, 9), potential, gamma=0.9)


@pytest.mark.parametrize("start", [-2, 0, 1])
def test_shaped_reward_counts_states_from_where_their_numbers_begin(start: int) -> None:
    class Shifted(gym.Env[Any, Any]):
        observation_space = Discrete(3, start=start)
        action_space = Discrete(2)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            self.state = 0
            return start, {}

        def step(self, action: Any) -> Any:
            self.state = (self.state + 1) % 3
            return start + self.state, 0.0, False, False, {}

    env = eo.ShapedReward(Shifted(), [0.0, 10.0, 20.0], gamma=1.0)
    env.reset()
    assert [env.step(0)[1] for _ in range(3)] == [10.0, 10.0, -20.0]


def follow(hall: Hall, act: Any, start: Any, goal: Any, limit: int = 400) -> bool:
    """Whether a robot comes within 0.3 m of a goal."""
    position = start
    for _ in range(limit):
        if np.linalg.norm(position - goal) < 0.3:
            return True
        position = hall.move(position, act(position))
    return False


@pytest.mark.parametrize("one_axis", [False, True])
@pytest.mark.parametrize("thickness", [0.6, 1.2, 2.0])
def test_hall_every_goal_is_reached(thickness: float, one_axis: bool) -> None:
    rng = np.random.default_rng(10)
    hall = Hall(thickness)
    planner = eo.Planner(hall.record(rng, 20_000, one_axis))
    starts = hall.draw_free(rng, 20)
    goals = hall.draw_free(rng, 20)
    for start, goal in zip(starts, goals, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = planner.start(goal)
            assert follow(hall, run.act, start, goal)


@pytest.mark.parametrize(("thickness", "seed"), [(0.6, 1), (0.6, 2), (1.2, 3)])
def test_episodes_in_few_data_take_no_blocked_move_again(
    thickness: float, seed: int
) -> None:
    """Cells reach over walls here, so that episodes are stuck and go in circles."""
    rng = np.random.default_rng(seed)
    hall = Hall(thickness)
    planner = eo.Planner(hall.record(rng, 5_000))
    starts = hall.draw_free(rng, 20)
    goals = hall.draw_free(rng, 20)
    n_blocked = 0
    for start, goal in zip(starts, goals, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = planner.start(goal)
            assert follow(hall, run.act, start, goal)
        moves = [(blocked.state, blocked.move) for blocked in run.blocked]
        assert len(set(moves)) == len(moves)
        n_blocked += len(moves)
    assert n_blocked > 0


@pytest.mark.slow
@pytest.mark.parametrize("one_axis", [False, True])
@pytest.mark.parametrize("thickness", [0.6, 1.2, 2.0])
def test_hall_with_more_data_every_goal_is_reached(
    thickness: float, one_axis: bool
) -> None:
    hall = Hall(thickness)
    rng = np.random.default_rng(11)
    few = eo.Planner(hall.record(rng, 20_000, one_axis))
    many = eo.Planner(hall.record(rng, 200_000, one_axis))
    assert few.cell_size is not None
    assert many.cell_size is not None
    # At most the next size: the data may not tell two sizes apart.
    assert many.cell_size.max() <= 1.3 * few.cell_size.max()
    starts = hall.draw_free(rng, 20)
    goals = hall.draw_free(rng, 20)
    for start, goal in zip(starts, goals, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = many.start(goal)
            assert follow(hall, run.act, start, goal)


def test_actions_along_one_axis_are_fitted_and_kept() -> None:
    """Most steps change no more than one coordinate: attack-2, number 4."""
    rng = np.random.default_rng(0)
    obs = rng.uniform(0, 10, (20_000, 2))
    moves = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]], dtype=float)
    action = moves[rng.integers(4, size=20_000)]
    planner = eo.Planner((obs, action, np.clip(obs + 0.2 * action, 0, 10)))
    assert planner.fit is not None
    assert planner.fit.explained > 0.9
    np.testing.assert_allclose(
        planner.act([2.0, 5.5], [9.0, 5.5]), [1.0, 0.0], rtol=0, atol=1e-9
    )

    # Of any length along one axis.
    action = action * rng.uniform(0, 1, (20_000, 1))
    planner = eo.Planner((obs, action, np.clip(obs + 0.2 * action, 0, 10)))
    for start in rng.uniform(1, 9, (20, 2)):
        assert np.count_nonzero(planner.act(start, [9.0, 5.5])) <= 1


def test_actions_held_for_several_steps_are_fitted() -> None:
    rng = np.random.default_rng(0)
    held = np.repeat(rng.uniform(-1, 1, (4_000, 2)), 5, axis=0)
    obs = rng.uniform(0, 10, (20_000, 2))
    planner = eo.Planner((obs, held, np.clip(obs + 0.2 * held, 0, 10)))
    assert planner.fit is not None
    assert planner.fit.explained > 0.9


@pytest.mark.parametrize("show", [show_radians, show_sine_and_cosine])
def test_turning_and_driving_leads_round_a_wall(show: Any) -> None:
    rng = np.random.default_rng(0)
    robot = TurningRobot(np.pi / 2, show)
    planner = eo.Planner(robot.record(rng, 60))
    assert planner.fit is not None
    assert planner.fit.explained > 0.7

    # A heading is part of the state.
    east = np.array([1.0, 1.0, 0.0])
    north = np.array([1.0, 1.0, np.pi / 2])
    assert planner.state(show(east)) != planner.state(show(north))

    goal = np.array([5.0, 1.0, -np.pi / 2])
    pose = east
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = planner.start(show(goal))
        while not run.arrived and run.steps < 200:
            pose = robot.move(pose, run.act(show(pose)))
    assert run.arrived
    assert np.abs(pose - goal)[:2].max() < 1.0


def test_steps_that_lead_past_a_small_cell_arrive_beside_it() -> None:
    """Steps of 0.4 along a line never end in a cell of 0.1 between two of them."""
    rng = np.random.default_rng(0)
    obs = 0.4 * rng.integers(0, 20, (2_000, 1))
    action = rng.integers(2, size=2_000)
    following = np.clip(obs + 0.4 * (2 * action[:, None] - 1), 0.0, 7.6)
    # One place in between, where another robot was seen to stay.
    obs[0] = following[0] = 4.15
    planner = eo.Planner((obs, action, following), 0.1)
    run = planner.start([4.15])
    place = np.array([1.2])
    while not run.arrived and run.steps < 30:
        place = place + (0.0, -0.4, 0.4)[run.act(place) + 1]
    assert run.arrived
    np.testing.assert_allclose(place, 4.0)


def test_column_that_nobody_steers_gets_wide_cells_and_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rng = np.random.default_rng(0)
    battery = np.tile(np.linspace(1, 0, 201), (50, 1))
    position = rng.uniform(0, 5, (50, 2))
    moves = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
    episodes = []
    for start, charge in zip(position, battery, strict=True):
        action = rng.integers(4, size=200)
        path = [start]
        for a in action:
            path.append(np.clip(path[-1] + 0.4 * moves[a], 0, 5))
        obs = np.column_stack([np.array(path), charge])
        episodes.append((obs[:-1], action, obs[1:]))
    log = tuple(np.concatenate(part) for part in zip(*episodes, strict=True))
    planner = eo.Planner(log)
    assert planner.cell_size is not None
    assert planner.cell_size[2] > 0.4
    assert "drifting" in caplog.text
    assert "columns=[0, 1]" in caplog.text

    caplog.clear()
    planner = eo.Planner(log, columns=[0, 1])
    assert planner.centers is not None
    assert planner.centers.shape[1] == 2
    assert caplog.text == ""


def test_poor_fit_is_measured_and_warned_of() -> None:
    rng = np.random.default_rng(0)
    obs = rng.uniform(0, 10, (5_000, 2))
    action = rng.uniform(-1, 1, (5_000, 2))
    with pytest.warns(UserWarning, match=r"planner\.fit"):
        planner = eo.Planner((obs, action, obs + rng.normal(0, 0.2, obs.shape)))
    assert planner.fit is not None
    assert planner.fit.explained < 0.1


def test_episode_notices_what_the_data_do_not_show(room: Any) -> None:
    """A crate stands in the gap's way since the data were recorded."""
    planner = eo.Planner(room)
    goal = np.array([8.0, 5.0])
    run = planner.start(goal)
    position = np.array([2.0, 5.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        while not run.arrived and run.steps < 300:
            following = move(position, run.act(position))
            if np.abs(following - [3.0, 5.0]).max() > 0.4:
                position = following
    assert "stuck" in str(caught[0].message)
    assert run.arrived
    assert run.blocked
    place = np.asarray(run.blocked[0].place)
    assert np.abs(place - [3.0, 5.0]).max() < 0.7

    # The planner itself remembers nothing.
    fresh = planner.start(goal)
    assert fresh.blocked == []
    np.testing.assert_array_equal(
        planner.act([2.0, 5.0], goal), fresh.act(np.array([2.0, 5.0]))
    )


def test_episode_goes_on_after_a_jump(room: Any) -> None:
    run = eo.Planner(room).start([8.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for place in ([1.0, 1.0], [9.0, 5.0], [2.0, 5.0], [6.5, 5.0], [1.0, 5.0]):
            run.act(place)
    assert run.blocked == []


def test_episode_in_a_table_blocks_a_door_that_was_closed() -> None:
    mdp = eo.maze("S....\n.###.\n....G")
    assert mdp.successors is not None
    planner = eo.Planner(log_of("S....\n.###.\n....G"))
    goal = mdp.n_states - 1
    run = planner.start(goal)
    state = 0
    closed = set(planner.plan(0, goal)[3:4].tolist())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        while not run.arrived and run.steps < 60:
            action = run.act(state)
            following = int(mdp.successors[state, action])
            if action >= 0 and following not in closed:
                state = following
    assert "stuck" in str(caught[0].message)
    assert run.arrived
    assert state == goal


def test_act_takes_no_move_that_fails_at_this_very_place() -> None:
    """A thin wall within large cells: straight ahead fails from its side only."""
    hall = Hall(0.6)
    planner = eo.Planner(hall.record(np.random.default_rng(0), 20_000), 1.0)
    position = np.array([2.65, 2.0])
    action = planner.act(position, [5.0, 2.0])
    assert not np.array_equal(hall.move(position, action), position)


def test_simulated_way_leads_through_the_gap(room: Any) -> None:
    planner = eo.Planner(room, 0.3)
    way = planner.simulate([3.0, 1.0], [7.0, 1.0])
    np.testing.assert_array_equal(way[0], [3.0, 1.0])
    assert np.abs(way[-1] - [7.0, 1.0]).max() <= 0.2
    assert way[:, 1].max() > 4.5
    assert not in_wall(way).any()
    assert len(planner.simulate([3.0, 1.0], [7.0, 1.0], max_steps=5)) == 6


def test_plan_is_drawn_over_the_cells_of_the_data(room: Any) -> None:
    planner = eo.Planner(room)
    ax = Figure().add_subplot()
    path = [[3.0, 1.0], [3.0, 5.0], [7.0, 5.0]]
    cells = eo.plots.draw_plan(ax, planner, [3.0, 1.0], [7.0, 1.0], path)
    distances = np.asarray(cells.get_array())
    is_known = np.isfinite(planner.potential([7.0, 1.0]))
    np.testing.assert_allclose(distances, -planner.potential([7.0, 1.0])[is_known])
    simulated, taken = ax.get_lines()[:2]
    way = planner.simulate([3.0, 1.0], [7.0, 1.0])
    np.testing.assert_array_equal(simulated.get_xydata(), way)
    np.testing.assert_array_equal(taken.get_xydata(), path)
    with pytest.raises(ValueError, match="cells"):
        eo.plots.draw_plan(ax, eo.Planner(log_of("i-maze")), 0, 1)


def test_ways_and_landmarks_of_symmetric_tables_take_the_first_of_equals() -> None:
    """A ring and a complete graph: attack-2, number 7."""
    ring = np.arange(12)
    log = (
        np.repeat(ring, 2),
        np.tile([0, 1], 12),
        np.stack([(ring + 1) % 12, (ring - 1) % 12], axis=1).ravel(),
    )
    planner = eo.Planner(log)
    assert planner.plan(0, 6).tolist() == [0, 1, 2, 3, 4, 5, 6]
    states, actions = np.indices((8, 8)).reshape(2, -1)
    complete = eo.Planner((states, actions, actions))
    assert (
        complete.options(2).goals
        == eo.Planner((states, actions, actions)).options(2).goals
    )


class PointRoom(gym.Env[Any, Any]):
    """The room with a wall, where actions are vectors; a reward at the goal."""

    observation_space = Box(0.0, 10.0, (2,), np.float64)
    action_space = Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.position = np.array([2.0, 1.0])
        self.steps = 0
        return self.position, {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(np.asarray(action, dtype=np.float32))
        self.position = move(self.position, action)
        self.steps += 1
        is_there = bool(np.linalg.norm(self.position - [8.0, 1.0]) < 0.5)
        return self.position, float(is_there), is_there, self.steps >= 300, {}


def test_places_run_where_actions_are_vectors(room: Any) -> None:
    planner = eo.Planner(room)
    places = planner.places([[2.0, 5.0], [8.0, 1.0]])
    env = eo.OptionsWrapper(PointRoom(), places)
    assert env.action_space == Discrete(2)
    env.reset(seed=0)
    obs, _, terminated, _, info = env.step(0)
    assert not terminated
    assert np.abs(obs - [2.0, 5.0]).max() < 0.25
    assert info["duration"] > 10
    # It is there already: a random vector takes its place.
    assert info["action_mask"].tolist() == [0, 1]
    assert env.step(0)[4]["unavailable"]
    _, reward, terminated, _, info = env.step(1)
    assert terminated
    assert reward == pytest.approx(0.99 ** (info["duration"] - 1))


def test_directions_are_primitive_actions(room: Any) -> None:
    planner = eo.Planner(room)
    directions = [[1, 0], [0, 1], [-1, 0], [0, -1]]
    env = eo.OptionsWrapper(PointRoom(), planner.places(3), directions=directions)
    assert env.action_space == Discrete(7)
    env.reset(seed=0)
    obs, *_, info = env.step(1)
    np.testing.assert_allclose(obs, [2.0, 1.2])
    assert info["option"] == -1
    with pytest.raises(ValueError, match="directions"):
        eo.OptionsWrapper(PointRoom(), planner.places(3), directions=[[5.0, 0.0]])
    with pytest.raises(ValueError, match="places"):
        eo.OptionsWrapper(PointRoom(), planner.options(3))
    with pytest.raises(ValueError, match="vectors"):
        eo.OptionsWrapper(
            eo.envs.MazeEnv("S.G"), [planner.places(3)[0]], directions=directions
        )


def test_dqn_learns_by_choosing_places(room: Any) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("stable_baselines3")
    from eigenoptions.agents.sb3 import OptionsDQN

    torch.set_num_threads(1)
    planner = eo.Planner(room)
    goals = [[2.0, 5.0], [5.0, 5.5], [8.0, 5.0], [8.0, 1.2], [1.0, 1.0]]
    env = eo.OptionsWrapper(PointRoom(), planner.places(goals), gamma=0.99)
    agent = OptionsDQN(
        "MlpPolicy",
        env,
        gamma=0.99,
        learning_starts=20,
        train_freq=1,
        learning_rate=1e-3,
        target_update_interval=20,
        seed=0,
        device="cpu",
    )
    agent.learn(150)
    obs, _ = env.reset(seed=1)
    is_over = False
    terminated = False
    while not is_over:
        masks = env.action_masks()
        choice, _ = agent.predict(obs, deterministic=True, action_masks=masks)
        obs, _, terminated, truncated, _ = env.step(choice)
        is_over = terminated or truncated
    assert terminated


def test_bad_input_is_refused_with_a_remedy(room: Any) -> None:
    obs, action, next_obs = room
    planner = eo.Planner(room)
    table = eo.Planner(log_of("...#...\n#######\n......."))
    broken = obs.copy()
    broken[3] = np.nan
    for call, word in [
        (lambda: planner.act([1.0, 1.0], [50.0, 50.0]), "cells away"),
        (lambda: planner.act([1.0, np.nan], [5.0, 5.0]), "finite"),
        (lambda: planner.act(obs[0][:1], obs[1]), "2 finite numbers"),
        (lambda: table.act(0, 4), "no way"),
        (lambda: table.plan(0, 4), "no way"),
        (lambda: eo.Planner(([0, 2], [0, 0], [2, 0])).act(0, 1), "not in the data"),
        (lambda: eo.Planner((obs[:1], action[:1], next_obs[:1])), "at least 2"),
        (lambda: eo.Planner((broken, action, next_obs)), "row 3"),
        (lambda: eo.Planner((obs, action[:, :, None], next_obs)), "shape"),
        (lambda: eo.Planner((obs, action[:9], next_obs)), "length"),
        (lambda: eo.Planner((obs, action, next_obs[:, :1])), "next_obs"),
        (lambda: eo.Planner(([0, 1], [[0.5], [0.1]], [1, 0])), "actions"),
        (lambda: eo.Planner((np.tile(obs, 3), action, np.tile(next_obs, 3))), "6"),
        (lambda: eo.Planner(room, -1.0), "cell_size"),
        (lambda: eo.Planner(room, columns=[7]), "column"),
        (lambda: eo.Planner((0 * obs, action, 0 * obs)), "constant"),
        (lambda: planner.start([50.0, 50.0]), "a distance of"),
        (lambda: planner.start([1.0]), "2 finite numbers"),
        (lambda: planner.start([1.0, 1.0], patience=0), "patience"),
        (lambda: eo.Planner(room, potential="euclidean"), "potential"),
        (lambda: eo.Planner(room, potential="commute"), "log-z, shortest"),
        (lambda: table.options(1_000), "n must be"),
        (lambda: eo.Planner((obs, np.arange(len(obs)) + 10**9, next_obs)), "gaps"),
    ]:
        with pytest.raises(ValueError, match=word):
            call()


def test_benchmark_reaches_the_goals_of_the_medium_maze() -> None:
    pytest.importorskip("ogbench")
    from studies.ogbench import measure_data_set

    solved, *_ = measure_data_set("medium", "stitch", steps=10_000, seed=0, episodes=1)
    assert solved["success"] == 100.0


def test_shaping_by_log_z_leads_to_a_distant_goal() -> None:
    from studies.shaping import run_agent

    result = run_agent(
        "rooms:5x5", "Q-learning", "log-z", seed=0, steps=2_000, setting=0.05
    )
    assert result["first_arrival"] < 2_000


def test_too_few_steps_and_a_single_action_are_warned_of(rng, caplog):
    obs = rng.uniform(0, 5, (300, 2))
    ahead = obs + np.array([0.4, 0.0])
    data = (obs, np.zeros(300, dtype=int), ahead)
    with pytest.warns(UserWarning, match="same action 0"):
        eo.Planner(data)
    few = (obs[:20], rng.integers(4, size=20), obs[:20] + 0.4)
    eo.Planner(few)
    assert "20 steps" in caplog.text


def test_steps_that_change_nothing_are_refused(rng):
    obs = rng.uniform(0, 10, (200, 2))
    with pytest.raises(ValueError, match="none of 200 steps changes"):
        eo.Planner((obs, rng.integers(4, size=200), obs))


def test_steps_that_end_at_the_goal_arrive_where_other_episodes_begin() -> None:
    """The goal, 2, is also a start: only steps that end there enter it."""
    log = {
        "obs": [0, 1, 2, 1, 0, 1, 2],
        "action": [1, 1, 0, 0, 1, 1, 1],
        "next_obs": [1, 2, 1, 0, 1, 2, 3],
        "terminated": [False, True, False, False, False, True, False],
    }
    planner = eo.Planner(log)
    assert planner.mdp.n_additional == 1
    assert planner.plan(0, 2).tolist() == [0, 1, 2]
    assert [planner.act(state, 2) for state in (0, 1)] == [1, 1]
    assert [planner.option(2).act(state) for state in (0, 1, 2)] == [1, 1, -1]
    assert planner.start(2).act(0) == planner.places([2])[0].act(0) == 1
    assert planner.distance(0, 2) > planner.distance(1, 2) > 0
    # No way passes where the episode ends.
    assert planner.distance(0, 3) == np.inf
    with pytest.raises(ValueError, match="no way"):
        planner.act(0, 3)
