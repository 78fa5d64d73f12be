"""``eigenoptions learn``: Q-learning with primitive actions alone and with options."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from functools import partial
from typing import Any

import eigenoptions as eo
from eigenoptions._progress import Bar
from eigenoptions._text import count_noun, draw_spark
from eigenoptions.cli.arguments import (
    add_chance_arguments,
    add_discovery_arguments,
    add_json_argument,
    add_maze_argument,
)
from eigenoptions.cli.files import check_writable, save_answer
from eigenoptions.cli.listing import get_settings, name_state
from eigenoptions.cli.sources import choose_chances, discover_options, read_maze
from eigenoptions.cli.suggestions import repeat_flags
from eigenoptions.cli.terminal import (
    print_files,
    print_json,
    print_next,
    print_paragraph,
    print_table,
    show_progress,
)

POSITION = 6
SUMMARY = "run Q-learning in a maze, with primitive actions alone and with options"
EXAMPLES = ("learn four-rooms -n 8 --option-chance auto",)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_maze_argument(parser)
    parser.add_argument(
        "-n",
        "--n-options",
        type=_read_counts,
        metavar="N",
        help=(
            "numbers of options to compare, as in 4,16; both signs count (default: 8)"
        ),
    )
    add_discovery_arguments(parser)
    add_chance_arguments(parser, default="the paper's uniform choice")
    parser.add_argument(
        "--runs",
        type=int,
        default=100,
        metavar="N",
        help="independent runs per agent (default: 100)",
    )
    parser.add_argument(
        "--episodes",
        type=int,
        default=250,
        metavar="N",
        help="episodes per run (default: 250)",
    )
    parser.add_argument(
        "--max-steps",
        type=int,
        default=100,
        metavar="N",
        help="steps per episode (default: 100)",
    )
    parser.add_argument(
        "--start",
        metavar="ROW,COL",
        help="start cell (default: S of the map)",
    )
    parser.add_argument(
        "--goal",
        metavar="ROW,COL",
        help="goal cell (default: G of the map)",
    )
    add_json_argument(parser)


def run(arguments: Namespace) -> None:
    """Run Q-learning in a maze, without options and with each number of them."""
    check_writable(arguments.out)

    with show_progress(f"reading {arguments.maze}") as bar:
        mdp = _read_task(arguments)
        counts = _choose_counts(mdp, arguments)
        options = None
        if counts[-1] > 0:
            bar.begin("discovering options")
            options = discover_options(arguments, mdp, counts[-1], bar.update)

        records = {}
        for count in counts:
            records[count] = _learn(mdp, options, count, arguments, bar)

        answer = _describe_records(mdp, options, records, arguments)
        draw = partial(_draw_curves, records)
        files = save_answer(arguments.out, "learning", answer, draw)

    if arguments.as_json:
        print_json(answer, files)
        return

    start = name_state(mdp, mdp.start)
    goal = name_state(mdp, mdp.goal)
    print_paragraph(
        f"{answer['maze']}: {arguments.runs} runs of {arguments.episodes} episodes, "
        f"{start} to {goal}",
        "bold",
    )
    _print_agents(answer["agents"], arguments)
    print_files(files)

    largest = Namespace(**vars(arguments))
    largest.n_options = counts[-1] or None
    print_next(repeat_flags("discover", largest) + " --out out/")


def _read_counts(text: str) -> list[int]:
    """Read numbers that are separated by commas."""
    words = text.split(",")
    if not all(word.isdecimal() for word in words):
        raise ArgumentTypeError(f"must be integers, got {text!r}")
    return [int(word) for word in words]


def _read_task(arguments: Namespace) -> eo.MDP:
    """Read the maze, with the start and the goal of the arguments or of its map."""
    mdp = read_maze(arguments)
    start = _find_state(mdp, arguments.start, "--start")
    goal = _find_state(mdp, arguments.goal, "--goal")
    mdp = mdp.with_task(start, goal)

    if mdp.start is None:
        raise ValueError(f"{arguments.maze} has no start: give --start ROW,COL")
    if mdp.goal is None:
        raise ValueError(f"{arguments.maze} has no goal: give --goal ROW,COL")
    return mdp


def _find_state(mdp: eo.MDP, text: str | None, flag: str) -> int | None:
    """Find the state of a cell that is given as ``ROW,COL``."""
    if text is None:
        return None

    cell = [int(part) for part in text.split(",") if part.isdecimal()]
    cells = []
    if mdp.coords is not None:
        cells = mdp.coords.tolist()
    if cell not in cells:
        raise ValueError(
            f"{flag} must be a free cell ROW,COL of the map, counted from 0, "
            f"got {text!r}"
        )
    return cells.index(cell)


def _choose_counts(mdp: eo.MDP, arguments: Namespace) -> list[int]:
    """Choose the numbers of options to compare, in increasing order; 0 is one."""
    counts = arguments.n_options
    if counts is None:
        counts = [min(8, mdp.n_states - 1)]
    return sorted({0, *counts})


def _name_agent(n_options: int) -> str:
    if n_options == 0:
        return "primitive actions"
    return count_noun(n_options, "option")


def _learn(
    mdp: eo.MDP,
    options: eo.OptionSet | None,
    count: int,
    arguments: Namespace,
    bar: Bar,
) -> eo.LearningRecord:
    """Learn with the first `count` options."""
    task = f"learning with {_name_agent(count)}"
    if count == 0:
        task += " (the first run compiles)"
    bar.begin(task)

    first_options = None
    if options is not None and count > 0:
        first_options = options[:count]
    chances = choose_chances(
        first_options, arguments.option_chance, arguments.stop_chance
    )
    return eo.q_learning(
        mdp,
        first_options,
        runs=arguments.runs,
        episodes=arguments.episodes,
        max_steps=arguments.max_steps,
        rng=arguments.seed,
        progress=bar.update,
        **chances,
    )


def _count_last_episodes(arguments: Namespace) -> int:
    """Count the episodes that show what was learned: the last tenth."""
    return max(1, int(arguments.episodes) // 10)


def _describe_records(
    mdp: eo.MDP,
    options: eo.OptionSet | None,
    records: dict[int, eo.LearningRecord],
    arguments: Namespace,
) -> dict[str, Any]:
    """Describe the results in JSON values."""
    settings = {
        "runs": arguments.runs,
        "episodes": arguments.episodes,
        "max_steps": arguments.max_steps,
        "n_options": max(records),
        "seed": arguments.seed,
        "option_chance": arguments.option_chance,
    }
    if options is not None:
        settings |= get_settings(options)

    n_last = _count_last_episodes(arguments)
    agents = []
    for count, record in records.items():
        curve = record.returns.mean(axis=0)
        agent = {
            "options": count,
            "mean_return": float(curve.mean()),
            "last_return": float(curve[-n_last:].mean()),
            "curve": curve.tolist(),
        }
        agents.append(agent)

    return {
        "maze": mdp.name or arguments.maze,
        "states": mdp.n_states,
        "start": mdp.start,
        "goal": mdp.goal,
        "settings": settings,
        "agents": agents,
    }


def _draw_curves(records: dict[int, eo.LearningRecord]) -> Any:
    """Draw the returns as a Matplotlib figure."""
    from eigenoptions.plots import plot_learning

    return plot_learning({_name_agent(n): record for n, record in records.items()})


def _print_agents(agents: list[dict[str, Any]], arguments: Namespace) -> None:
    """Print a row per agent: mean returns, and the curve as a line of bars."""
    n_last = _count_last_episodes(arguments)
    heads = ("agent", ">mean return", f">last {n_last}", "return by episode")
    rows = []
    for agent in agents:
        row = (
            _name_agent(agent["options"]),
            f"{agent['mean_return']:.3f}",
            f"{agent['last_return']:.3f}",
            draw_spark(agent["curve"]),
        )
        rows.append(row)
    print_table(heads, rows)
