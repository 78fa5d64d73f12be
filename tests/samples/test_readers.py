"""Readers do not join episodes: data in the names and habits of other libraries.

Most tests read the same two episodes, 0 1 2 3 and 10 11 12, of which no step leads from
3 to 10.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest

import eigenoptions as eo

RECORDED = Path(__file__).parent / "recorded"

SEEN = [0, 1, 2, 3, 10, 11, 12]
ROWS: dict[str, Any] = {"obs": SEEN, "action": [0] * 7}
STEPS = [(0, 1), (1, 2), (2, 3), (10, 11), (11, 12)]
NEXT = [1, 2, 3, 4, 11, 12, 13]
LAST = [0, 0, 0, 1, 0, 0, 1]
FIRST = [1, 0, 0, 0, 1, 0, 0]
EPISODE = [5, 5, 5, 5, 7, 7, 7]
COUNTER = [0, 1, 2, 3, 0, 1, 2]


def list_steps(data: Any, **how: Any) -> list[tuple[int, int]]:
    """Pairs of states of all steps."""
    found = eo.Transitions.of(data, **how)
    return list(zip(found.obs.tolist(), found.next_obs.tolist(), strict=True))


@pytest.mark.parametrize(
    "ends",
    [
        {"eps_id": EPISODE},
        {"ep": EPISODE},
        {"Episode": EPISODE},
        {"episode_number": EPISODE},
        {"trajectory_id": ["a", "a", "a", "a", "b", "b", "b"]},
        {"t": COUNTER},
        {"step": [7, 8, 9, 10, 0, 1, 2]},
        {"eps_id": [0] * 7, "agent_index": [0, 0, 0, 0, 1, 1, 1]},
        {"is_first": FIRST},
        {"is_last": LAST},
        {"is_first": FIRST, "is_last": LAST, "is_terminal": LAST, "discount": [1] * 7},
        {"terminated": [0] * 7, "done": LAST},
        {"done": LAST},
        {"terminateds": [0] * 7, "truncateds": LAST},
        {"TimeLimit.truncated": LAST},
        {"terminals": [0] * 7, "timeouts": LAST, "infos/goal": [0] * 7},
        {"episode_starts": FIRST, "log_probs": [0.0] * 7, "values": [0.0] * 7},
        {"info": [{}] * 3 + [{"TimeLimit.truncated": True}] + [{}] * 3},
    ],
)
def test_every_mark_of_an_end_keeps_episodes_apart(ends: dict[str, Any]) -> None:
    assert list_steps({**ROWS, **ends}) == STEPS
    assert list_steps(pd.DataFrame({**ROWS, **ends})) == STEPS


@pytest.mark.parametrize("make", [dict, pd.DataFrame])
def test_a_name_that_is_not_known_is_an_error_without_next_observations(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    log = {**ROWS, "run": EPISODE, "battery": [0.5] * 7}
    with pytest.raises(ValueError, match="'run', 'battery'"):
        eo.Transitions.of(make(log))

    # With next observations it is one warning.
    assert len(eo.Transitions.of(make({**log, "next_obs": NEXT}))) == 7
    assert [record.args for record in caplog.records] == [("'run', 'battery'",)]


def test_many_batches_with_a_name_that_is_not_known_are_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = {**ROWS, "next_obs": NEXT, "battery": [0.5] * 7}
    assert len(eo.Transitions.of([log, log, log])) == 21
    assert len(caplog.records) == 1


def test_what_is_no_column_cannot_be_an_end() -> None:
    named = {"observations": [0, 1, 2], "actions": [1, 1], "success": True, "goal": [3]}
    assert list_steps([named]) == [(0, 1), (1, 2)]


def test_rllib_names_keep_next_observations_and_ends() -> None:
    found = eo.Transitions.of(
        {
            "obs": SEEN,
            "new_obs": NEXT,
            "actions": [0] * 7,
            "terminateds": [0] * 6 + [1],
            "truncateds": LAST[:4] + [0] * 3,
            "eps_id": EPISODE,
        }
    )
    assert found.next_obs.tolist() == NEXT
    assert found.terminated.tolist() == [False] * 6 + [True]
    assert found.truncated is not None
    assert found.truncated.tolist() == [False] * 3 + [True] + [False] * 3


@pytest.mark.parametrize("name", ["rllib", "tianshou"])
def test_recorded_data_of_others(name: str) -> None:
    """Four episodes of FrozenLake: one file was written by each library."""
    with np.load(RECORDED / f"{name}.npz") as file:
        data = dict(file)
    found = eo.Transitions.of(data)
    assert found.truncated is not None
    is_end = found.terminated | found.truncated
    assert is_end.sum() == 4
    assert found.terminated.any()
    assert found.reward is not None
    # Within an episode each step begins where the one before ended.
    follows = found.next_obs[:-1] == found.obs[1:]
    assert follows[~is_end[:-1]].all()

    # Without next observations the same steps are found, but for the last of each.
    del data["new_obs" if name == "rllib" else "obs_next"]
    paired = eo.Transitions.of({k: v for k, v in data.items() if k != "done"})
    np.testing.assert_array_equal(paired.obs, found.obs[~is_end])
    np.testing.assert_array_equal(paired.next_obs, found.next_obs[~is_end])


class Batch:
    """As Tianshou's: keys, and parts as entries and attributes."""

    def __init__(self, **parts: Any) -> None:
        self.__dict__.update(parts)

    def keys(self) -> Any:
        return self.__dict__.keys()

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]

    def __len__(self) -> int:
        return len(self.__dict__["obs"])


def test_batches_of_tianshou_are_read() -> None:
    batch = Batch(
        obs=np.array(SEEN),
        act=np.zeros(7),
        rew=np.zeros(7),
        terminated=np.zeros(7, dtype=bool),
        truncated=np.array(LAST),
        done=np.array(LAST),
        obs_next=np.array(NEXT),
        info=Batch(),
        policy=Batch(),
    )
    found = eo.Transitions.of(batch)
    assert found.next_obs.tolist() == NEXT
    assert not found.terminated.any()
    assert found.truncated is not None
    assert found.truncated.tolist() == [bool(end) for end in LAST]


def test_containers_of_tianshou_and_rllib_are_read() -> None:
    data = pytest.importorskip("tianshou.data")
    samples = pytest.importorskip("ray.rllib.policy.sample_batch")
    buffer = data.ReplayBuffer(10)
    parts: dict[str, list[Any]] = {
        "obs": SEEN,
        "act": [0] * 7,
        "rew": [0.0] * 7,
        "terminated": [False] * 7,
        "truncated": [bool(end) for end in LAST],
        "obs_next": NEXT,
    }
    for row in range(7):
        buffer.add(data.Batch({name: part[row] for name, part in parts.items()}))
    assert list_steps(buffer.sample(0)[0]) == list(zip(SEEN, NEXT, strict=True))

    batch = samples.SampleBatch(
        {"obs": SEEN, "new_obs": NEXT, "actions": [0] * 7, "truncateds": LAST}
    )
    assert list_steps(batch) == list(zip(SEEN, NEXT, strict=True))


def test_a_minari_data_set_is_read(tmp_path: Any, monkeypatch: Any) -> None:
    minari = pytest.importorskip("minari")
    from minari.data_collector import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = gym.make("FrozenLake-v1", max_episode_steps=6)
    env.action_space.seed(0)
    steps = []
    buffers = []
    for seed in range(5):
        obs, _ = env.reset(seed=seed)
        buffer = EpisodeBuffer(seed, seed, None, [obs], [], [], [], [], {})
        has_ended = False
        while not has_ended:
            action = env.action_space.sample()
            after, reward, terminated, truncated, _ = env.step(action)
            steps.append((obs, action, reward, after, terminated))
            obs = after
            has_ended = terminated or truncated
            buffer.observations.append(obs)
            buffer.actions.append(action)
            buffer.rewards.append(reward)
            buffer.terminations.append(terminated)
            buffer.truncations.append(truncated)
        buffers.append(buffer)
    minari.create_dataset_from_buffers(
        "lake/walk-v0",
        buffers,
        env=env,
        algorithm_name="random",
        author="tests",
        author_email="tests",
        code_permalink="tests",
        description="tests",
        eval_env=env,
    )
    dataset = minari.load_dataset("lake/walk-v0")
    found = eo.Transitions.of(dataset)
    expected = eo.Transitions.of(steps)
    for name in ("obs", "action", "next_obs", "terminated", "reward"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.truncated is not None
    assert (found.terminated | found.truncated).sum() == 5
    assert eo.discover(dataset, n_options=2).mdp.n_states == 16


def test_terminal_observations_of_rlds_end_the_step_that_leads_there() -> None:
    found = eo.Transitions.of({**ROWS, "is_first": FIRST, "is_terminal": LAST})
    assert found.terminated.tolist() == [False, False, True, False, True]
    assert found.truncated is not None
    assert not found.truncated.any()
    episode = {"observation": [0, 1, 2], "action": [0, 0], "is_terminal": [0, 0, 1]}
    assert eo.Transitions.of(episode).terminated.tolist() == [False, True]
    with pytest.raises(ValueError, match="is_terminal"):
        eo.Transitions.of({**ROWS, "next_obs": NEXT, "is_terminal": LAST})


def test_done_is_terminated_or_truncated() -> None:
    data = {**ROWS, "next_obs": NEXT, "done": LAST}
    cut = eo.Transitions.of({**data, "truncated": LAST})
    assert not cut.terminated.any()
    half = eo.Transitions.of({**data, "terminated": [0] * 6 + [1]})
    assert np.flatnonzero(half.terminated).tolist() == [6]
    assert half.truncated is not None
    assert np.flatnonzero(half.truncated).tolist() == [3]
    infos = [{}] * 3 + [{"TimeLimit.truncated": True}] + [{}] * 3
    old_gym = eo.Transitions.of({**data, "info": infos})
    assert np.flatnonzero(old_gym.terminated).tolist() == [6]


@pytest.mark.parametrize("extra", [{}, {"logprobs": [0.0] * 7, "values": [0.0] * 7}])
def test_dones_of_rows_may_be_those_of_cleanrl(extra: dict[str, Any]) -> None:
    storage = {**ROWS, "rewards": [0.0] * 7, **extra}
    with pytest.raises(ValueError, match="is_last or is_first"):
        eo.Transitions.of({**storage, "dones": np.array(FIRST)})
    assert list_steps({**storage, "is_first": np.array(FIRST)}) == STEPS


def test_steps_may_say_an_end_only_where_there_is_one() -> None:
    steps: list[dict[str, Any]] = [{"obs": state, "action": 0} for state in SEEN]
    steps[3]["done"] = True
    assert list_steps(steps) == STEPS
    del steps[3]["done"]
    # RecordEpisodeStatistics says what an episode was worth when it is over.
    steps[3]["episode"] = {"r": 1.0, "l": 4, "t": 0.1}
    assert list_steps(steps) == STEPS
    steps[2]["reward"] = 1.0
    with pytest.raises(ValueError, match="step 0 has no 'reward'"):
        eo.Transitions.of(steps)


def test_levels_of_an_index_are_columns() -> None:
    frame = pd.DataFrame({**ROWS, "episode": EPISODE, "t": COUNTER})
    assert list_steps(frame.set_index(["episode", "t"])) == STEPS
    assert list_steps(frame.drop(columns="t").set_index("episode")) == STEPS
    wide = frame.rename(columns={"obs": "obs_x"}).set_index(["episode", "t"])
    found = eo.Transitions.of(wide)
    assert found.obs.ravel().tolist() == [before for before, _ in STEPS]
    with pytest.raises(ValueError, match="reset_index"):
        eo.Transitions.of(pd.DataFrame(ROWS).set_index([EPISODE, COUNTER]))


def test_gaps_in_an_index_are_not_bridged(caplog: pytest.LogCaptureFixture) -> None:
    frame = pd.DataFrame({"obs_x": np.arange(10), "action": 0})
    kept = frame[frame["obs_x"] != 4]
    found = eo.Transitions.of(kept)
    assert 3 not in found.obs
    assert "gaps in 1 place" in caplog.text
    named = {"obs": kept[["obs_x"]], "action": kept["action"]}
    assert list_steps(named) == list_steps(kept)
    # Two frames, one below the other.
    both = pd.concat([frame, frame])
    assert len(eo.Transitions.of(both)) == 18


def test_shuffled_rows_are_refused() -> None:
    frame = pd.DataFrame({**ROWS, "episode": EPISODE})
    shuffled = frame.sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match="sort_index"):
        eo.Transitions.of(shuffled)
    assert list_steps(shuffled.sort_index()) == STEPS
    with pytest.raises(ValueError, match="sort the rows"):
        eo.Transitions.of(shuffled.reset_index(drop=True))
    with pytest.raises(ValueError, match="reset_index"):
        eo.Transitions.of(frame.set_index(pd.date_range("2020-01-01", periods=7)))


def test_a_missing_next_column_is_an_error() -> None:
    columns = ["obs_x", "obs_y", "obs_time", "next_obs_x", "next_obs_y"]
    frame = pd.DataFrame(np.zeros((5, 5)), columns=columns).assign(action=0)
    with pytest.raises(ValueError, match="'next_obs_time' is missing"):
        eo.Transitions.of(frame)
    with pytest.raises(ValueError, match="'next_obs_y' has no"):
        eo.Transitions.of(frame[["obs_x", "next_obs_x", "next_obs_y", "action"]])
    tianshou = frame.rename(columns=lambda name: name.replace("next_obs", "obs_next"))
    found = eo.Transitions.of(tianshou.drop(columns="obs_time"))
    assert found.names == ("x", "y")


def test_columns_with_one_name_are_refused() -> None:
    frame = pd.DataFrame(np.zeros((5, 3)), columns=["obs_x", "obs_x", "action"])
    with pytest.raises(ValueError, match="obs_x"):
        eo.Transitions.of(frame)


def test_the_question_for_columns_names_all_candidates_and_no_others() -> None:
    frame = pd.DataFrame({"run": [0], "x": [0.0], "y": [0.0], "t": [0], "reward": [0]})
    with pytest.raises(ValueError, match=r"columns run, x, y are.*frame\[\.\.\.\]"):
        eo.Transitions.of(frame)
    with pytest.raises(ValueError, match="no column can be"):
        eo.Transitions.of(frame[["t", "reward"]])


@pytest.mark.parametrize(
    "wrong",
    [
        {"terminated": LAST},
        {"episode": EPISODE},
        {"t": COUNTER},
        {"is_first": FIRST},
        {"is_last": [0, 0, 0, 1, 0, 0, 1, 1]},
    ],
)
def test_one_more_observation_is_one_episode(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="one episode"):
        eo.Transitions.of({"obs": [*SEEN, 13], "action": [0] * 7, **wrong})


def test_an_object_that_says_how_it_ended() -> None:
    episode = SimpleNamespace(
        observations=[0, 1, 2], actions=[0, 0], is_terminated=True, is_truncated=False
    )
    found = eo.Transitions.of([episode])
    assert found.terminated.tolist() == [False, True]


# Rows in which something is missing.


def make_log(**changes: Any) -> dict[str, Any]:
    """Ten rows of one episode of vectors."""
    rows = np.arange(10.0)
    return {"obs": np.stack([rows, rows**2], axis=1), "action": [0, 1] * 5, **changes}


def test_a_missing_number_names_a_remedy_that_does_not_join_rows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = make_log()
    log["obs"][4, 1] = np.nan
    with pytest.raises(ValueError, match=r'row 4, column 1.*missing="drop"'):
        eo.Transitions.of(log)
    found = eo.Transitions.of(log, missing="drop")
    assert found.obs[:, 0].tolist() == [0, 1, 2, 5, 6, 7, 8]
    assert found.next_obs[:, 0].tolist() == [1, 2, 3, 6, 7, 8, 9]
    assert "2 of 9 steps" in caplog.text
    # The trajectory is cut there.
    assert found.truncated is not None
    assert np.flatnonzero(found.truncated).tolist() == [2, 6]
    assert eo.check_columns(found).n_trajectories == 2
    eo.Planner(found)
    assert "7 steps" in caplog.text


@pytest.mark.parametrize(
    "broken",
    [
        make_log(action=[0, 1, 0, np.nan, 0, 1, 0, 1, 0, 1]),
        make_log(reward=[0, 1, 0, np.inf, 0, 1, 0, 1, 0, 1]),
        {"obs": [*"abc", None, *"efghij"], "action": [0, 1] * 5},
        {"obs": pd.array([0, 1, 2, None, *range(4, 10)]), "action": [0, 1] * 5},
    ],
)
def test_steps_with_anything_missing_are_left_out(broken: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="row 3"):
        eo.Transitions.of(broken)
    n_left = len(eo.Transitions.of(broken, missing="drop"))
    assert n_left == (8 if "reward" in broken or np.nan in broken["action"] else 7)


def test_missing_numbers_in_states_leave_integers() -> None:
    frame = pd.DataFrame({"obs": [0.0, 1.0, np.nan, 3.0, 4.0, 5.0], "action": 0})
    assert list_steps(frame, missing="drop") == [(0, 1), (3, 4), (4, 5)]
    # Given transitions, and every other container, can be cleaned as well.
    ends = np.zeros(2, dtype=bool)
    made = eo.Transitions(np.array([[0.0], [np.nan]]), ends, np.ones((2, 1)), ends)
    assert len(eo.Transitions.of(made, missing="drop")) == 1
    with pytest.raises(ValueError, match="missing"):
        eo.Transitions.of(made, missing="skip")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (([1e20, 2e20], [0, 1], [2e20, 1e20]), "row 0"),
        (([0, 1], [0, 2e19], [1, 0]), "row 1"),
        (([0, 1], np.array([0, 2**63], dtype=np.uint64), [1, 0]), "row 1"),
        ((np.array([0, 2**63], dtype=np.uint64), [0, 1], [1, 0]), "row 1"),
        ((np.ma.array([0, 1], mask=[0, 1]), [0, 1], [1, 0]), "masked in row 1"),
        (([0, 1], [0, 1], [1, 0], ["False", "True"]), "'False'"),
        (([0, 1], [0, 1], [1, 0], np.array(["False", "True"], object)), "'False'"),
    ],
)
def test_what_is_no_number_of_a_state_raises(data: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        eo.Transitions.of(data)


def test_ends_in_words_are_refused_where_transitions_are_made() -> None:
    with pytest.raises(ValueError, match="True or False"):
        eo.Transitions(
            np.arange(2), np.arange(2), np.arange(2), np.array(["False"] * 2)
        )


def test_tensors_of_bfloat16_are_read() -> None:
    torch = pytest.importorskip("torch")
    obs = torch.arange(6, dtype=torch.bfloat16).reshape(3, 2) / 2
    found = eo.Transitions.of((obs, [0, 1, 0], obs + 1))
    assert found.obs.tolist() == [[0, 0.5], [1, 1.5], [2, 2.5]]


def test_empty_episodes_are_left_out() -> None:
    steps = [(0, 0, 1), (1, 0, 2)]
    assert list_steps([[], steps, []]) == [(0, 1), (1, 2)]
    episodes = [{"observations": [5], "actions": []}, {**ROWS, "is_last": LAST}]
    assert list_steps(episodes) == STEPS
    with pytest.raises(ValueError, match="empty"):
        eo.Transitions.of([[], []])


def test_rewards_that_are_left_out_are_told(caplog: pytest.LogCaptureFixture) -> None:
    rewards = [0, 0, 0, 1.0, 0, 0, 0]
    eo.Transitions.of({**ROWS, "is_last": LAST, "reward": rewards})
    assert "1 of 2 last rows" in caplog.text
