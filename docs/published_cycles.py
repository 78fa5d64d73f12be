"""Published curves of the cycle, and ours: covering eigenoptions (CEO) and their reward-aware variant (RACE).

Tse, Chandrasekar and Machado (NeurIPS 2025) run both cycles on four mazes, with and without states that cost 20 per
step, and publish the maps, the settings and the figures (repository httse9/Reward-Aware-Proto-Representations, Apache
License 2.0). This script runs ours with their settings and prints both: the share of states seen and the sum of rewards
at the end. Their numbers are read from the figures, to about 0.01 and 0.2 thousand.

    python docs/published_cycles.py [--seeds 10] [--domains "Four Rooms"]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from eigenoptions.discovery.methods.covering_eigen import rod_cycle
from eigenoptions.mdp import MDP, maze
from eigenoptions.options.walks import walk

# "l" is a costly state, "s" the start, "*" a wall.
MAPS = {
    "Grid Task": """
***************
*             *
*      llll   *
*      l      *
*      l      *
*      ls     *
*      l      *
*      llll   *
*             *
***************""",
    "Four Rooms": """
*************
*     *     *
*     *     *
*           *
*s    *     *
*     *     *
** ****     *
*  lll*** ***
* llll*     *
* llll*     *
* llll      *
*     *     *
*************""",
    "Grid Room": """
*********************
*s   *    *    *    *
*         *         *
*    *         *    *
*    *    *    *    *
****************** **
*    *    *    *    *
*         *         *
*    *         *    *
*    *    *    *llll*
*** ********* ***l***
*    *    *    *llll*
*    *    *    *llll*
*    *         *    *
*    *    *    *    *
** *************** **
*    *    *    *    *
*    *         *    *
*         *         *
*    *    *    *    *
*********************""",
    "Grid Maze": """
*******************
*         *       *
* ********* ***** *
*           *   * *
* *********** * * *
* *     *   * *   *
* * *** * * * *** *
* * *   * *   *   *
*s* * *** ***** ***
*   *   * *   *   *
* *****l* * * * * *
* *    ll   * * * *
* * ********* * ***
* * *     *   *   *
* *** *** * *******
* *   * * *       *
* * * * * ******* *
*   *   *     *   *
*******************""",
}
# Steps per round, and reward of leaving a state and a costly one.
ROUND, STEP, COSTLY = 100, -1.0, -20.0


@dataclass(frozen=True)
class Case:
    """A map with (True) or without costly states, rounds, and chance, step size and sweeps of CEO and of RACE."""

    map: str
    costly: bool
    rounds: int
    ceo: tuple[float, float, int]
    race: tuple[float, float, int]
    # Share of states seen and thousands of reward at the end: random walk, CEO, RACE. None: not in the figures.
    seen: tuple[float, float, float]
    reward: tuple[float, float, float] | None = None


CASES = [
    Case("Grid Task", False, 50, (0.05, 0.1, 1), (0.05, 0.01, 10), (1.0, 1.0, 1.0)),
    Case("Grid Task", True, 50, (0.05, 0.1, 1), (0.05, 0.1, 1), (1.0, 1.0, 1.0), (-19.8, -15.6, -12.1)),
    Case("Four Rooms", False, 50, (0.1, 0.1, 10), (0.05, 0.1, 1), (0.89, 1.0, 1.0)),
    Case("Four Rooms", True, 50, (0.1, 0.1, 10), (0.1, 0.01, 10), (0.89, 1.0, 1.0), (-12.8, -17.0, -8.8)),
    Case("Grid Room", False, 120, (0.1, 0.1, 10), (0.1, 0.01, 1), (0.20, 0.99, 0.99)),
    Case("Grid Room", True, 120, (0.1, 0.1, 10), (0.1, 0.03, 1), (0.20, 0.99, 0.92), (-12.0, -22.7, -14.8)),
    Case("Grid Maze", False, 120, (0.1, 0.01, 100), (0.1, 0.01, 1), (0.42, 1.0, 1.0)),
    Case("Grid Maze", True, 120, (0.1, 0.01, 100), (0.1, 0.01, 1), (0.42, 1.0, 1.0), (-12.0, -16.6, -14.3)),
]


def domain(case: Case) -> MDP:
    """The maze of a case, with a reward per state and no goal."""
    text = MAPS[case.map].strip("\n")
    mdp = maze(text.replace("*", "#").replace(" ", ".").replace("l", ".").replace("s", "S"))
    assert mdp.coords is not None
    rows = text.split("\n")
    costly = np.array([rows[r][c] == "l" for r, c in mdp.coords.tolist()])
    return replace(mdp, goal=None, reward=np.where(costly & case.costly, COSTLY, STEP))


def run(case: Case, kind: str, seed: int) -> tuple[float, float]:
    """Share of states seen and sum of rewards after all rounds."""
    mdp = domain(case)
    if kind == "walk":
        steps = walk(mdp, case.rounds * ROUND, rng=seed, max_episode_steps=ROUND)
        visited = np.r_[steps.obs, steps.next_obs]
        return len(np.unique(visited)) / mdp.n_states, float(mdp.reward[steps.obs].sum())
    chance, alpha, sweeps = case.ceo if kind == "successor" else case.race
    cycle = rod_cycle(
        mdp,
        option_chance=chance,
        keep=1,
        representation=kind,
        td=(alpha, sweeps),
        rng=seed,
        round_steps=ROUND,
    )
    total = 0.0
    for found in islice(cycle, case.rounds):
        left = np.r_[mdp.start, found.entered[:-1]]
        total += float(mdp.reward[left].sum())
    return float(found.seen.mean()), total


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--domains", default=",".join(MAPS))
    args = parser.parse_args()
    print("| maze | costly states | | random walk | CEO | RACE |\n|---|---|---|---|---|---|")
    for case in (case for case in CASES if case.map in args.domains.split(",")):
        runs = np.array(
            [[run(case, kind, 1 + s) for s in range(args.seeds)] for kind in ("walk", "successor", "default")]
        )
        about = f"| {case.map} | {'yes' if case.costly else 'no'} |"
        both = [
            f"{theirs:.2f} / {ours:.2f}"
            for theirs, ours in zip(case.seen, runs[:, :, 0].mean(1), strict=True)
        ]
        print(about, "seen |", " | ".join(both), "|", flush=True)
        if case.reward:
            ours = runs[:, :, 1].mean(1) / 1000
            error = (
                runs[:, :, 1].std(1, ddof=1) / 1000 / np.sqrt(args.seeds) if args.seeds > 1 else ours * np.nan
            )
            both = [
                f"{t} / {o:.1f} ± {1.96 * e:.1f}" for t, o, e in zip(case.reward, ours, error, strict=True)
            ]
            print(about, "thousands of reward |", " | ".join(both), "|", flush=True)


if __name__ == "__main__":
    main()
