"""Record OGBench's PointMaze data: ``python -m studies ogbench-data NAME``.

NAME is ``pointmaze-giant-navigate-v0`` or one of the other seven. The files have the
form of those that OGBench downloads, and hold steps by the rule of its
``generate_locomaze.py``, drawn anew: the same distribution, not the same numbers. Its
own functions read them::

    ogbench.make_env_and_datasets(NAME, dataset_path="NAME.npz")

It needs the package ogbench. A million steps take some minutes.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress, TaskID

from eigenoptions._types import FloatArray
from eigenoptions._validation import check_choice, check_int
from eigenoptions.options.files import write_atomically
from studies.ogbench import KINDS, MAZES, Episode, count_episodes, record_episodes

NAMES = [f"pointmaze-{maze}-{kind}-v0" for maze in MAZES for kind in KINDS]


def main(arguments: Sequence[str]) -> None:
    """Record the training and the validation data, and write two files."""
    options = make_parser().parse_args(arguments)
    name = check_choice("NAME", options.name, NAMES)
    n_steps = check_int("--steps", options.steps, 1)
    seed = check_int("--seed", options.seed, 0)
    if not options.out.is_dir():
        raise ValueError(f"--out must be a folder that exists, got {options.out}")

    # The validation data are a tenth, by another seed.
    parts = {"": (n_steps, 2 * seed), "-val": (max(1, n_steps // 10), 2 * seed + 1)}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for suffix, (part_steps, part_seed) in parts.items():
            task = progress.add_task(f"{name}{suffix}", total=None)

            dataset = record_dataset(
                name, part_steps, part_seed, partial(show_done, progress, task)
            )
            path = options.out / f"{name}{suffix}.npz"
            write_dataset(path, dataset)
            progress.console.print(f"wrote {path}: {len(dataset['actions']):,} rows")


def show_done(progress: Progress, task: TaskID, done: int, total: int) -> None:
    """Show how many episodes are recorded."""
    progress.update(task, completed=done, total=total)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command."""
    parser = argparse.ArgumentParser(
        "python -m studies ogbench-data",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help=f"one of {', '.join(NAMES)}")
    parser.add_argument(
        "--steps",
        type=int,
        default=1_000_000,
        metavar="N",
        help="steps of the training data (default: 1000000, as published)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of all that is drawn"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="folder (default: this one)",
    )
    return parser


def record_dataset(
    name: str,
    n_steps: int,
    seed: int,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> dict[str, FloatArray]:
    """Return the arrays of a file: a row per observation, the last of each episode too.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    n_steps : int
        Number of steps, in whole episodes.
    seed : int
        Seed of all that is drawn.
    progress : callable
        Called with the number of episodes that are done, and of all.
    """
    _, maze, kind, _ = name.split("-")
    n_episodes = count_episodes(maze, kind, n_steps)
    parts = []
    for episode in record_episodes(maze, kind, n_steps, seed):
        parts.append(_make_rows(episode))
        progress(len(parts), n_episodes)
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _make_rows(episode: Episode) -> dict[str, FloatArray]:
    """Return an episode with its last observation, from which no action is recorded."""
    n_steps = len(episode.obs)
    last_obs = episode.next_obs[-1:]
    terminals = np.zeros(n_steps + 1)
    terminals[-1] = 1.0
    columns = {
        "observations": np.concatenate([episode.obs, last_obs]),
        "actions": np.concatenate([episode.action, np.zeros((1, 2))]),
        "terminals": terminals,
        "qpos": np.concatenate([episode.qpos, last_obs]),
        "qvel": np.concatenate([episode.qvel, np.zeros((1, 2))]),
    }
    return {key: column.astype(np.float32) for key, column in columns.items()}


def write_dataset(path: Path, dataset: dict[str, FloatArray]) -> None:
    """Write the arrays of a file, completely or not at all."""
    file = io.BytesIO()
    np.savez_compressed(file, **dataset)
    write_atomically(path, file.getvalue())
