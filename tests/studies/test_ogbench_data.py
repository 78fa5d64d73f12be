"""`python -m studies ogbench-data`: files that OGBench's own functions read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studies.ogbench import record_data
from studies.ogbench_data import NAMES, main, record_dataset

# Not every Python has it: a package that it brings has no build for 3.13.
ogbench = pytest.importorskip("ogbench")

NAME = "pointmaze-medium-stitch-v0"


@pytest.mark.filterwarnings("ignore")
def test_ogbench_reads_what_was_recorded(tmp_path: Path) -> None:
    main([NAME, "--steps", "400", "--out", str(tmp_path)])
    path = tmp_path / f"{NAME}.npz"
    _, train, validation = ogbench.make_env_and_datasets(NAME, dataset_path=str(path))
    obs, action, next_obs = record_data("medium", "stitch", 400, seed=0)
    np.testing.assert_allclose(train["observations"], obs, rtol=1e-6)
    np.testing.assert_allclose(train["actions"], action, rtol=1e-6)
    np.testing.assert_allclose(train["next_observations"], next_obs, rtol=1e-6)
    # Two episodes of 200 steps, and one to validate.
    assert np.flatnonzero(train["terminals"]).tolist() == [199, 399]
    assert len(validation["observations"]) == 200

    # Tasks with a reward need the positions, too.
    task = "pointmaze-medium-stitch-singletask-task1-v0"
    _, train, _ = ogbench.make_env_and_datasets(task, dataset_path=str(path))
    assert set(np.unique(train["rewards"])) <= {-1.0, 0.0}


def test_progress_counts_episodes() -> None:
    calls: list[tuple[int, int]] = []
    record_dataset(NAME, 450, 0, lambda done, total: calls.append((done, total)))
    assert calls == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["pointmaze-gaint-stitch-v0"], "did you mean"),
        ([NAME, "--steps", "0"], "--steps"),
        ([NAME, "--out", "no-such-folder"], "--out"),
    ],
)
def test_wrong_arguments_are_named(arguments: list[str], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        main(arguments)
    assert len(NAMES) == 8
