"""Agents with and without options, at equal primitive steps: the data, the jobs and the numbers of the arena of agents.

A run is one agent on one task with one way to explore and one seed. Settings of agents and of ways to explore were
chosen on seeds from 100 on; the seeds reported begin at 0.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenoptions.discovery import discover
from eigenoptions.discovery.exploration import cycle
from eigenoptions.mdp import MDP, maze
from eigenoptions.mdp.maps import rooms_map
from reproduction.arena.training import AGENTS, EPSILON_GREEDY, make_task, missing, single_file_hash, train
from reproduction.experiment import Claim, Results, Settings, verdict
from reproduction.limits import CONFIDENCE
from reproduction.tables import Row, column, groups

# Name of a way to explore, and what it is.
EXPLORATIONS = {
    "plain": "random actions (PPO: its own policy)",
    "options": "eigenoptions of the known table, seldom",
    "found": "eigenoptions found by exploring the task without its reward (cycle); these steps count",
    "counts": "a bonus beta / sqrt(n) for entering a state n times",
    "repeats": "random actions repeated for a random number of steps: epsilon-z-greedy (Dabney et al., 2021)",
}
# Columns of what is compared.
RUN = ("task", "agent", "exploration")
# Number of evaluations of the greedy policy in a run.
CHECKPOINTS = 10


def _rooms(side: int, size: int) -> dict[str, Any]:
    """A tiling of rooms: start in the first corner, goal in the middle of the last room."""
    text = rooms_map(side, side, size=size)
    mdp = maze(text)
    assert mdp.coords is not None
    middle = np.abs(mdp.coords - (mdp.coords.max(axis=0) - size // 2)).sum(axis=1).argmin()
    return {"maze": text, "start": 0, "goal": int(middle)}


# Ways to explore of the agents that run on a task by default; agents that are named run in all ways on every task. The
# slower ones have fewer, so that all runs of a size are made in two hours on two cores.
EVERY_WAY = tuple(EXPLORATIONS)
# Without options there is nothing to mask: MaskablePPO would be PPO.
POLICY_GRADIENT = {"PPO": ("plain", "options"), "MaskablePPO": ("options",)}
# Where no table is known.
FEATURES = {"PPO": ("plain", "found"), "PyTorch DQN": ("plain", "found", "counts", "repeats")}
# Tasks: where, the time limit, primitive steps of a run, the discount, options and their chance, steps of discovery,
# and the agents. What a run costs is in docs/agents.md. Eight options are too few for MiniGrid's four rooms: the goal
# is not where they end, and at a chance of 0.05 they delay it (29,273 steps; 8,147 without; exact).
TASKS: dict[str, dict[str, Any]] = {
    "four-rooms": {
        "maze": "four-rooms", "limit": 500, "steps": 8000, "gamma": 0.95, "n_options": 8, "discovery": 400,
        "agents": {
            "DQN": ("plain", "options", "counts", "repeats"), **POLICY_GRADIENT,
            "PyTorch DQN": EVERY_WAY, "Q-learning": EVERY_WAY,
        },
    },
    "rooms-5x5": {
        **_rooms(5, 5), "limit": 1000, "steps": 15_000, "gamma": 0.97, "n_options": 8, "discovery": 3000,
        "agents": {
            "DQN": ("plain", "options"), **POLICY_GRADIENT, "PyTorch DQN": EVERY_WAY, "Q-learning": EVERY_WAY,
        },
    },
    "rooms-10x10": {
        **_rooms(10, 4), "limit": 2000, "steps": 50_000, "gamma": 0.98, "n_options": 8, "discovery": 8000,
        "agents": {"Q-learning": EVERY_WAY},
    },
    "MultiRoom": {
        "env": "minigrid:MiniGrid-MultiRoom-N4-S5-v1", "limit": 500, "steps": 15_000, "gamma": 0.97, "n_options": 8,
        "discovery": 4000, "agents": {"Q-learning": EVERY_WAY},
    },
    "KeyCorridor": {
        "env": "minigrid:MiniGrid-KeyCorridorS3R2-v0", "limit": 500, "steps": 15_000, "gamma": 0.97, "n_options": 8,
        "discovery": 4000, "agents": {"Q-learning": EVERY_WAY},
    },
    "MiniGrid-FourRooms": {
        "env": "minigrid:MiniGrid-FourRooms-v0", "limit": 500, "steps": 15_000, "gamma": 0.97, "n_options": 32,
        "discovery": 4000, "agents": {"Q-learning": EVERY_WAY},
    },
    "MountainCar": {
        "env": "MountainCar-v0", "steps": 30_000, "gamma": 0.99, "n_options": 8, "discovery": 10_000, "episodes": 3,
        "agents": FEATURES,
    },
    "Acrobot": {
        "env": "Acrobot-v1", "steps": 30_000, "gamma": 0.99, "n_options": 8, "discovery": 10_000, "episodes": 3,
        "agents": FEATURES,
    },
}  # fmt: skip
# Options that act on features end after this many steps without a new highest potential.
PATIENCE = 8

FULL: Settings = {
    "tasks": list(TASKS),
    # Per agent, its ways to explore.
    "agents": {agent: list(EXPLORATIONS) for agent in AGENTS},
    "seeds": [0, 10],
    "share": 1.0,
    # Whether agents run on tasks, and in ways, that the tasks do not list: those that were asked for by name do.
    "every_task": False,
}
SETTINGS: dict[str, Settings] = {
    "default": FULL,
    # Minutes, to check that everything works: too few seeds to compare anything.
    "quick": {
        **FULL,
        "tasks": ["four-rooms", "rooms-5x5", "MultiRoom", "MountainCar"],
        "seeds": [0, 2],
        "share": 0.25,
    },
}

# Per agent, what it is given in every run; per way to explore, what it adds. Chosen on seeds 100 to 102.
AGENT_SETTINGS: dict[str, dict[str, Any]] = {"Q-learning": {"explore_share": 0.5}}
COUNT_BETA = 0.01


def _numbered(task: Mapping[str, Any]) -> bool:
    return "maze" in task or task["env"].startswith("minigrid:")


def applies(task: Mapping[str, Any], agent: str, exploration: str) -> bool:
    """Whether a run exists: a table needs numbered states, known options need a table, repeats need random actions.

    >>> applies(TASKS["MountainCar"], "Q-learning", "plain"), applies(TASKS["four-rooms"], "PPO", "repeats")
    (False, False)
    """
    if not _numbered(task) and (agent == "Q-learning" or exploration == "options"):
        return False
    return exploration != "repeats" or agent in EPSILON_GREEDY


def jobs(settings: Settings) -> list[dict[str, Any]]:
    """One job per run."""
    return [
        {"task": task, "agent": agent, "exploration": exploration, "seed": seed, "share": settings["share"]}
        # Part of a job's key in a store, since the agent's file is no part of the library.
        | ({"source": single_file_hash()} if agent == "PyTorch DQN" else {})
        for task in settings["tasks"]
        for agent, explorations in settings["agents"].items()
        for exploration in explorations
        if settings["every_task"] or exploration in TASKS[task]["agents"].get(agent, ())
        if applies(TASKS[task], agent, exploration)
        for seed in range(*settings["seeds"])
    ]


def play(job: Mapping[str, Any]) -> dict[str, Any]:
    """One run: discovery where it is asked for, then training; see `envs.training.train`. With its CPU seconds."""
    begun = time.process_time()
    task, exploration = TASKS[job["task"]], job["exploration"]
    steps = int(task["steps"] * job["share"])
    how: dict[str, Any] = {
        "steps": steps,
        "checkpoints": [steps * i // CHECKPOINTS for i in range(1, CHECKPOINTS + 1)],
        "episodes": task.get("episodes", 1),
        "settings": dict(AGENT_SETTINGS.get(job["agent"], {})),
    }
    options: Any = None
    if exploration == "repeats":
        how["repeats"] = True
    elif exploration == "counts":
        how["beta"] = COUNT_BETA
        how["settings"] |= _counting(job["agent"], task)
    elif exploration == "options":
        options = known_options(job["task"])
    elif exploration == "found":
        how["taken"] = int(task["discovery"] * job["share"])
        options = found_options(task, how["taken"], job["seed"])
    result = train(job["agent"], task, how, options, job["seed"])
    return {**result, "checkpoints": how["checkpoints"], "seconds": time.process_time() - begun}


def _counting(agent: str, task: Mapping[str, Any]) -> dict[str, Any]:
    """With a bonus the values explore, so that random actions may be rare; a table begins with optimistic values."""
    if agent == "Q-learning":
        return {"explore_share": 0.02, "initial_value": COUNT_BETA / (1 - task["gamma"])}
    return {"explore_share": 0.1} if agent in EPSILON_GREEDY else {}


@lru_cache(maxsize=8)
def known_options(name: str) -> Any:
    """Options of the table of a task, which is read or explored beforehand: no steps of the agent."""
    task = TASKS[name]
    mdp: MDP = maze(task["maze"]) if "maze" in task else make_task(task).get_wrapper_attr("mdp")
    return discover(mdp, task["n_options"])


def found_options(task: Mapping[str, Any], steps: int, seed: int) -> Any:
    """Options of the last of four rounds of `cycle` in the task, whose reward is not used."""
    env = make_task(task)
    rounds = 4
    if "maze" in task:
        mdp = env.unwrapped.mdp
        env = MDP(mdp.transition, coords=mdp.coords, start=mdp.start)
        how: dict[str, Any] = {"max_episode_steps": task["limit"]}
    else:
        how = {}
    *_, last = cycle(env, n_options=task["n_options"], steps=steps // rounds, rounds=rounds, rng=seed, **how)
    found: Any = last.options
    return found if hasattr(found, "policy") else found.with_termination(patience=PATIENCE)


def tabulated(work: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> Results:
    """Results of the runs `found` by the jobs `work`: the tables ``runs``, ``curves`` and ``summary``."""
    runs, marks = [], []
    for job, result in zip(work, found, strict=True):
        key = {name: job[name] for name in (*RUN, "seed")}
        budget = result["checkpoints"][-1]
        runs.append(
            {
                **key,
                "first_goal": result["first_goal"] if result["first_goal"] > 0 else budget,
                "reached": int(result["first_goal"] > 0),
                "greedy": result["success"][-1],
                "greedy_steps": result["greedy_steps"],
                "mean_success": float(np.mean(result["success"])),
                "budget": budget,
                "seconds": result["seconds"],
            }
        )
        marks += [
            {**key, "steps": step, "success": share}
            for step, share in zip(result["checkpoints"], result["success"], strict=True)
        ]
    return {"runs": runs, "curves": _curves(marks), "summary": summary(runs)}


def summary(runs: list[Row]) -> list[Row]:
    """One row per task, agent and way to explore: median first goal, successful runs, with intervals; mean CPU seconds.

    The interval of the median is exact (order statistics), that of the share is Wilson's; a run without a goal counts
    with its budget.
    """
    from scipy.stats import quantile_test

    rows = []
    for key, mine in groups(runs, *RUN).items():
        first = column(mine, "first_goal")
        low, high = quantile_test(first, p=0.5).confidence_interval(CONFIDENCE)
        wins, share_low, share_high = _successes(column(mine, "greedy"))
        rows.append(
            {
                **dict(zip(RUN, key, strict=True)),
                "runs": len(mine),
                "first_goal": float(np.median(first)),
                "first_goal_low": float(low) if np.isfinite(low) else float(first.min()),
                "first_goal_high": float(high) if np.isfinite(high) else float(first.max()),
                "reached": int(column(mine, "reached").sum()),
                "greedy": wins,
                "greedy_low": share_low,
                "greedy_high": share_high,
                "budget": mine[0]["budget"],
                "seconds": float(column(mine, "seconds").mean()),
            }
        )
    return rows


def _curves(marks: list[Row]) -> list[Row]:
    """Mean success of the greedy policy over seeds at each checkpoint, with Wilson's interval."""
    rows = []
    names = (*RUN, "steps")
    for key, mine in groups(marks, *names).items():
        wins, low, high = _successes(column(mine, "success"))
        row = {"mean": wins / len(mine), "low": max(0.0, low), "high": min(1.0, high)}
        rows.append({**dict(zip(names, key, strict=True)), **row})
    return rows


def _successes(shares: NDArray[np.float64]) -> tuple[int, float, float]:
    """Number of runs that mostly reach the goal, and Wilson's interval of their share."""
    from scipy.stats import binomtest

    wins = int((shares > 0.5).sum())
    interval = binomtest(wins, len(shares)).proportion_ci(CONFIDENCE, method="wilson")
    return wins, float(interval.low), float(interval.high)


def claims(results: Results) -> list[Claim]:
    """The questions of the arena that the runs at hand can answer, with their verdicts."""
    found: list[Claim] = []
    for rows in groups(results["summary"], "task", "agent").values():
        mine = {r["exploration"]: r for r in rows}
        ways = [way for way in ("options", "found") if way in mine and "plain" in mine]
        found += [_compared(mine[way], mine["plain"]) for way in ways]
    return found


def _compared(ours: Row, plain: Row) -> Claim:
    """Whether an agent with options finds the goal three times as early, and is no less successful in the end."""
    source = "of the known table" if ours["exploration"] == "options" else "found in the task"
    return Claim(
        f"{ours['agent']} with options {source} finds the goal of {ours['task']} in at most a third of the "
        "steps, and is no less successful.",
        ours["task"],
        f"First goal after {ours['first_goal']:,.0f} steps against {plain['first_goal']:,.0f} (medians); greedy "
        f"success {ours['greedy']} of {ours['runs']} against {plain['greedy']} of {plain['runs']}",
        verdict(
            ours["first_goal"] <= plain["first_goal"] / 3,
            # That neither learns the task is no success.
            ours["greedy"] > 0 and ours["greedy"] / ours["runs"] >= plain["greedy"] / plain["runs"],
        ),
        f"{ours['budget']:,} primitive steps per run, with those of discovery; a run without a goal counts "
        "with its budget.",
    )


def left_out(settings: Settings) -> dict[str, str]:
    """Agents that cannot be run here, and why."""
    reasons = {agent: missing(agent) for agent in settings["agents"]}
    return {agent: why for agent, why in reasons.items() if why}
