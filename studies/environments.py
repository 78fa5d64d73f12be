"""What `discover` makes of 63 environments that were drawn at random.

``python -m studies environments [--quick]`` runs ``discover(env)`` on each id of
``studies/environments.txt``, wraps the environment in its options, and notes what
was said. It writes ``studies/environments.csv`` (the same command continues an
interrupted run; delete the file to begin anew), and prints the table of
docs/environments.md. Then it compares how many states `explore` and random actions see
in 4,000 steps of four large environments, into ``studies/environments_seen.csv``.

The ids are some of Gymnasium's, MiniGrid's and BabyAI's. Nothing was tuned on them.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd

import eigenoptions as eo
from eigenoptions.envs.families import find_family

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "environments.csv"
SEEN = FOLDER / "environments_seen.csv"

LARGE = (
    "BabyAI-GoToLocal-v0",
    "BabyAI-KeyCorridorS5R3-v0",
    "MiniGrid-ObstructedMaze-1Q-v1",
    "MiniGrid-UnlockPickup-v0",
)


def main(arguments: Sequence[str]) -> None:
    """Try all environments, and print what became of them."""
    options = make_parser().parse_args(arguments)
    names = (FOLDER / "environments.txt").read_text().split()
    large = LARGE
    layouts = range(4)
    steps = 4000
    if options.quick:
        names = ["CliffWalking-v1", "BabyAI-GoToObjS4-v0"]
        large = LARGE[-1:]
        layouts = range(1)
        steps = 500

    table = try_environments(names, options.out)
    print(count_outcomes(table).to_string())
    seen = compare_seen(large, layouts, steps)
    seen.to_csv(options.seen, index=False)
    print(seen.to_string(index=False))


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command."""
    parser = argparse.ArgumentParser(
        "python -m studies environments", description=__doc__
    )
    parser.add_argument("--quick", action="store_true", help="three small environments")
    parser.add_argument(
        "--out", type=Path, default=RESULTS, help="table of the results"
    )
    parser.add_argument(
        "--seen", type=Path, default=SEEN, help="table of the states that were seen"
    )
    return parser


def try_environments(names: Sequence[str], path: Path) -> pd.DataFrame:
    """Try environments that a table does not hold yet, and add them to it."""
    rows: list[dict[str, Any]] = []
    if path.is_file():
        rows = pd.read_csv(path, keep_default_na=False).to_dict("records")
    done = {row["environment"] for row in rows}
    for name in names:
        if name in done:
            continue
        row = try_environment(name)
        rows.append(row)
        pd.DataFrame(rows).to_csv(path, index=False)
        print(name, row["outcome"], row["states"], row["option_chance"], flush=True)
    return pd.DataFrame(rows)


def try_environment(name: str) -> dict[str, Any]:
    """Discover options of an environment, wrap it, and note what was said."""
    begin = time.process_time()
    row: dict[str, Any] = {
        "environment": name,
        "outcome": "options",
        "states": 0,
        "options": 0,
        "option_chance": "",
    }
    with closing(make(name)) as env, hear_warnings() as said:
        try:
            options = eo.discover(env, rng=0)
            wrapped = eo.OptionsWrapper(env, options)
        except ValueError as error:
            row["outcome"] = "refused"
            said.append(str(error))
        except Exception as error:
            # A crash is a result, too.
            row["outcome"] = "crashed"
            said.append(repr(error))
        else:
            if isinstance(options, eo.OptionSet):
                row["states"] = options.n_states
                recognition = options.mdp.recognition
                if recognition is not None and recognition.is_partial:
                    row["outcome"] = "options of a part"
            row["options"] = len(options)
            row["option_chance"] = str(wrapped.option_chance)
    row["is_silent"] = is_silent(row, said)
    row["said"] = " | ".join(said)
    row["seconds"] = round(time.process_time() - begin, 1)
    return row


def is_silent(row: dict[str, Any], said: Sequence[str]) -> bool:
    """Whether something was left out, and nothing says so."""
    text = " ".join(said)
    if row["outcome"] == "options of a part" and "explore found" not in text:
        return True
    if row["option_chance"] == "0.0" and "option_chance" not in text:
        return True
    return row["outcome"] == "crashed"


def make(name: str) -> gym.Env[Any, Any]:
    """Make an environment of Gymnasium, MiniGrid or BabyAI."""
    is_grid = name.startswith(("MiniGrid", "BabyAI"))
    return gym.make(f"minigrid:{name}" if is_grid else name)


@contextmanager
def hear_warnings() -> Iterator[list[str]]:
    """Collect what the library warns of."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("eigenoptions")
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)


def count_outcomes(table: pd.DataFrame) -> pd.DataFrame:
    """How many environments have each outcome, and of how many options are sampled."""
    is_sampled = ~table.option_chance.astype(str).isin(["0.0", ""])
    counts = table.assign(is_sampled=is_sampled).groupby("outcome")
    return pd.DataFrame(
        {
            "environments": counts.size(),
            "options are sampled": counts.is_sampled.sum(),
            "silent": counts.is_silent.sum(),
        }
    )


def compare_seen(
    names: Sequence[str], layouts: Sequence[int], steps: int
) -> pd.DataFrame:
    """Mean numbers of states that `explore` and random actions see."""
    rows = []
    for name in names:
        explored = [
            len(eo.explore(make(name), steps, seed=layout, rng=layout).seen)
            for layout in layouts
        ]
        random = [count_seen_by_chance(name, steps, layout) for layout in layouts]
        rows.append(
            {
                "environment": name,
                "steps": steps,
                "layouts": len(layouts),
                "explore": np.mean(explored),
                "random": np.mean(random),
                "ratio": round(np.mean(explored) / np.mean(random), 2),
            }
        )
    return pd.DataFrame(rows)


def count_seen_by_chance(name: str, steps: int, layout: int) -> int:
    """Number of states that random actions see in one layout."""
    env = eo.envs.FixedSeed(make(name), layout)
    identify_state = find_family(env).identify_state
    rng = np.random.default_rng(layout)
    n_actions = int(env.action_space.n)  # type: ignore[attr-defined]
    obs, _ = env.reset()
    seen = {identify_state(env.unwrapped, obs)}
    for _ in range(steps):
        action = int(rng.integers(n_actions))
        obs, _, terminated, truncated, _ = env.step(action)
        seen.add(identify_state(env.unwrapped, obs))
        if terminated or truncated:
            env.reset()
    return len(seen)
