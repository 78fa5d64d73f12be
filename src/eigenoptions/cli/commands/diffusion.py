"""``eigenoptions diffusion``: the diffusion time of a maze as options are added."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import eigenoptions as eo
from eigenoptions._text import count_noun
from eigenoptions._types import FloatArray, Progress
from eigenoptions.cli.arguments import (
    add_chance_arguments,
    add_discovery_arguments,
    add_json_argument,
    add_maze_argument,
    add_n_options_argument,
)
from eigenoptions.cli.files import check_writable, save_answer
from eigenoptions.cli.listing import get_settings, make_heading
from eigenoptions.cli.sources import (
    Chances,
    choose_chances,
    choose_number,
    discover_options,
    read_maze,
)
from eigenoptions.cli.suggestions import DISCOVERY_FLAGS, repeat_flags, suggest_files
from eigenoptions.cli.terminal import (
    print_files,
    print_json,
    print_next,
    print_paragraph,
    print_table,
    show_progress,
)

if TYPE_CHECKING:
    from rich.text import Text

POSITION = 5
SUMMARY = "measure the diffusion time of a maze as options are added"
EXAMPLES = ("diffusion four-rooms -n 16",)

# Above, diffusion times are estimated by walks.
_MAX_EXACT_STATES = 1000
_N_WALKS = 20

# Above, the library uses compiled code, which is compiled when it first runs.
_MAX_STATES_WITHOUT_COMPILING = 300

# Numbers of options that are measured, beside none and all.
_COUNTS = (2, 4, 8, 16, 32, 64)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_maze_argument(parser)
    add_n_options_argument(parser, default=16)
    add_discovery_arguments(parser)
    add_chance_arguments(parser, default="the paper's uniform choice and auto")
    add_json_argument(parser)


def run(arguments: Namespace) -> None:
    """Measure the diffusion time of a maze with more and more options.

    Each number of options is measured twice: with options chosen uniformly, as in the
    paper, and at the rate that the arguments say (by default, one that helps).
    """
    check_writable(arguments.out)

    with show_progress(f"discovering options of {arguments.maze}") as bar:
        mdp = read_maze(arguments)
        n_options = choose_number(arguments, default=min(16, mdp.n_states - 1))
        options = discover_options(arguments, mdp, n_options, bar.update)

        rows = []
        for count in _choose_counts(options):
            task = f"diffusion times with {count_noun(count, 'option')}"
            if mdp.n_states > _MAX_STATES_WITHOUT_COMPILING:
                task += " (the first run compiles)"
            bar.begin(task)
            rows.append(_measure_row(options[:count], arguments, bar.update))

        settings = get_settings(options, arguments.seed)
        answer = {
            "maze": mdp.name or arguments.maze,
            "states": mdp.n_states,
            "settings": settings,
            "curve": rows,
        }
        draw = partial(_draw_curves, options, rows, arguments)
        files = save_answer(arguments.out, "diffusion", answer, draw)

    if arguments.as_json:
        print_json(answer, files)
        return

    print_paragraph(make_heading(options, settings), "bold")
    _print_rows(rows, arguments)
    print_paragraph(_explain_rows(mdp, arguments))
    print_files(files)
    print_next(_suggest_command(mdp, arguments, files))


def _choose_counts(options: eo.OptionSet) -> list[int]:
    """Choose the numbers of options to measure; estimates take time, so only two."""
    counts = [0]
    if _is_exact(options.mdp):
        counts += [count for count in _COUNTS if count < len(options)]
    return [*counts, len(options)]


def _is_exact(mdp: eo.MDP) -> bool:
    """Whether diffusion times are computed, and not estimated by walks."""
    return mdp.n_states <= _MAX_EXACT_STATES


def _is_automatic(arguments: Namespace) -> bool:
    """Whether a simulation chooses how often options are used."""
    return arguments.option_chance in (None, "auto")


def _measure_row(
    options: eo.OptionSet,
    arguments: Namespace,
    progress: Progress,
) -> dict[str, Any]:
    """Measure the diffusion time by the uniform choice and by that of the arguments."""
    option_chance = arguments.option_chance
    if option_chance is None:
        option_chance = "auto"
    chances = choose_chances(options, option_chance, arguments.stop_chance)

    uniform_time = None
    if _is_exact(options.mdp):
        uniform = Chances(option_chance=None, stop_chance=0.0)
        uniform_time = _measure_time(options, uniform, arguments.seed, progress)
    return {
        "options": len(options),
        "uniform": uniform_time,
        **chances,
        "diffusion_time": _measure_time(options, chances, arguments.seed, progress),
    }


def _measure_time(
    options: eo.OptionSet,
    chances: Chances,
    seed: int,
    progress: Progress,
) -> float | None:
    """Compute or estimate a diffusion time; None if it is too long for a float."""
    try:
        if _is_exact(options.mdp):
            return eo.diffusion_time(options.mdp, options, progress=progress, **chances)
        estimate = eo.diffusion_estimate(
            options.mdp,
            options,
            walks=_N_WALKS,
            rng=seed,
            progress=progress,
            **chances,
        )
        return estimate.mean
    except OverflowError:
        return None


def _name_setting(arguments: Namespace) -> str:
    """Name the setting that is compared with the uniform choice."""
    if _is_automatic(arguments):
        return "automatic"
    return f"option chance {arguments.option_chance:g}"


def _draw_curves(
    options: eo.OptionSet,
    rows: list[dict[str, Any]],
    arguments: Namespace,
) -> Any:
    """Draw the diffusion times as a Matplotlib figure."""
    from eigenoptions.plots import plot_diffusion

    curves = {}
    if _is_exact(options.mdp):
        curves["uniform choice"] = _make_curve(rows, "uniform", len(options))
    name = _name_setting(arguments)
    curves[name] = _make_curve(rows, "diffusion_time", len(options))
    return plot_diffusion(curves)


def _make_curve(rows: list[dict[str, Any]], key: str, n_options: int) -> FloatArray:
    """Make a curve over all numbers of options, NaN where nothing was measured.

    >>> rows = [{"options": 0, "time": 5.0}, {"options": 2, "time": 3.0}]
    >>> _make_curve(rows, "time", 2)
    array([ 5., nan,  3.])
    """
    curve = np.full(n_options + 1, np.nan)
    for row in rows:
        if row[key] is not None:
            curve[row["options"]] = row[key]
    return curve


def _print_rows(rows: list[dict[str, Any]], arguments: Namespace) -> None:
    """Print the measured times, each beside its share of the time without options."""
    heads = (
        ">options",
        ">uniform choice",
        ">vs none",
        f">{_name_setting(arguments)}",
        ">vs none",
        ">chance",
        ">stop",
    )
    time_without_options = rows[0]["diffusion_time"]

    table = []
    for row in rows:
        cells: list[str | Text] = [str(row["options"])]
        for steps in (row["uniform"], row["diffusion_time"]):
            has_options = row["options"] > 0
            cells.append(_format_time(steps))
            cells.append(_format_share(steps, time_without_options, has_options))
        for chance in (row["option_chance"], row["stop_chance"]):
            cells.append(f"{chance:g}" if row["options"] else "")
        table.append(cells)
    print_table(heads, table)


def _format_time(steps: float | None) -> str:
    """Write a diffusion time.

    >>> _format_time(1234.56), _format_time(12345678900.0), _format_time(None)
    ('1,234.6', '1.235e+10', '')
    """
    if steps is None:
        return ""
    if steps < 1e9:
        return f"{steps:,.1f}"
    return f"{steps:.4g}"


def _format_share(
    steps: float | None,
    time_without_options: float,
    has_options: bool,
) -> Text:
    """Write a time relative to that without options, in green where options help."""
    from rich.text import Text

    share = np.inf
    if steps is not None:
        share = steps / time_without_options

    words = ""
    if share < 10:
        words = f"{share:.0%}"
    elif share < 1e5:
        words = f"{share:,.0f} times"

    color = ""
    if has_options:
        color = "green" if share < 1 else "red"
    return Text(words, style=color)


def _explain_rows(mdp: eo.MDP, arguments: Namespace) -> str:
    """Say what the numbers mean."""
    if _is_exact(mdp):
        source = "computed exactly"
    else:
        source = f"estimated from {_N_WALKS} walks each"
    sentences = [
        f"Mean number of steps between two states under random decisions, {source}."
    ]
    if _is_exact(mdp):
        sentences.append(
            "Uniform choice, the paper's: every action and option is equally likely."
        )
    if _is_automatic(arguments):
        sentences.append(
            "Automatic: how often to choose an option, and to stop it early, "
            "is tuned by simulation."
        )
    return " ".join(sentences)


def _suggest_command(mdp: eo.MDP, arguments: Namespace, files: list[Path]) -> str:
    """Suggest to learn where the maze has a task, and otherwise to save options."""
    if mdp.start is None or mdp.goal is None:
        return suggest_files(arguments, files)

    names = (*DISCOVERY_FLAGS, "option_chance", "stop_chance")
    command = repeat_flags("learn", arguments, names)
    if arguments.option_chance is None:
        command += " --option-chance auto"
    return command
