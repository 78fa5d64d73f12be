"""The first command: four rooms, an eigenvector, an option that runs, and what options are worth."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from eigenoptions.cli.flags import Printed
from eigenoptions.cli.terminal import (
    bar,
    print_end,
    print_heading,
    print_json,
    print_line,
    print_side_by_side,
)

if TYPE_CHECKING:
    from eigenoptions.mdp import MDP
    from eigenoptions.options import OptionSet

MAZE = "four-rooms"
N_OPTIONS = 64
# Seconds per step of the option that runs, on a terminal.
SECONDS_PER_STEP = 0.08
BAR_WIDTH = 40


@dataclass(frozen=True)
class Demo(Printed):
    """Show in five seconds what this is about: four rooms, an eigenvector, an option that runs, and what it is worth.

    The first run compiles, which takes longer.
    """

    def __call__(self) -> None:
        """Run the command."""
        with bar("four rooms: eigenvectors and options (the first run compiles)"):
            from eigenoptions.cli import drawing
            from eigenoptions.discovery import discover
            from eigenoptions.mdp import graph, maze
            from eigenoptions.spectra import spectrum

            mdp = maze(MAZE)
            vectors = spectrum(graph(mdp), k=3).vectors
            options = discover(mdp, N_OPTIONS)
            chosen = max(range(4), key=lambda i: len(run(mdp, options, i)))
            path = run(mdp, options, chosen)
        index, sign = options.indices[chosen], options.signs[chosen]
        assert index is not None
        assert sign is not None
        if not self.as_json:
            print_heading(f"{MAZE}: {mdp.n_states} states, {mdp.n_actions} actions, no reward")
            show_run(mdp, options, chosen, sign * vectors[:, index - 1], path)
        with bar("diffusion time (the first run compiles)"):
            from eigenoptions.evaluation import diffusion_time

            times = diffusion_time(mdp), diffusion_time(mdp, options)
        if self.as_json:
            answer = {"maze": MAZE, "states": mdp.n_states, "option": options.labels[chosen], "path": path}
            numbers = dict(zip(("without_options", "with_options"), times, strict=True))
            print_json({**answer, "n_options": len(options), "diffusion_time": numbers})
            return
        print_line("Diffusion time: mean number of steps between two states under random decisions.")
        names = f"{mdp.n_actions} actions", f"and {len(options)} eigenoptions"
        for name, steps in zip(names, times, strict=True):
            print_line(f"  {name:19} {drawing.bar_line(steps / max(times), BAR_WIDTH)} {steps:.1f}")
        print()
        learn = "eigenoptions learn four-rooms -n 4 --runs 10"
        print_end([], f"eigenoptions discover {MAZE} -n 8 --out out/", learn, "eigenoptions studio")


def run(mdp: MDP, options: OptionSet, i: int) -> list[int]:
    """States of a run of an option from the start of a deterministic maze."""
    assert mdp.successors is not None
    assert mdp.start is not None
    path, option = [mdp.start], options[i]
    while (action := option.act(path[-1])) >= 0:
        path.append(int(mdp.successors[path[-1], action]))
    return path


def show_run(mdp: MDP, options: OptionSet, chosen: int, vector: Any, path: list[int]) -> None:
    """Show an eigenvector beside its option, which runs from the start if this is a terminal."""
    from rich.live import Live

    from eigenoptions import _text as sketch
    from eigenoptions.cli import drawing

    assert mdp.coords is not None
    coords, colour, level = mdp.coords, drawing.has_colour(), drawing.levels(vector)
    console = Console(highlight=False)
    arrows = sketch.arrows(options.policy[chosen], options.moves(chosen))
    label = options.labels[chosen]
    settings: Any = {"colour": colour, "wide": colour}
    shades = [" " if colour else drawing.SHADES[min(int(2 * x + 2), 3)] for x in level.tolist()]
    key = "blue low, orange high" if colour else f"{drawing.SHADES[0]} low, {drawing.SHADES[-1]} high"
    negated = " times -1" if options.signs[chosen] == -1 else ""
    head = [f"eigenvector e{options.indices[chosen]}{negated}", key]
    left: list[str | Text] = [*head, *drawing.cell_map(coords, shades, level, **settings)]

    def blocks(trail: list[int]) -> list[list[str | Text]]:
        state = f"{len(trail) - 1} of {len(path) - 1} steps from S" if trail else "● it stops"
        drawn = drawing.cell_map(coords, arrows, level, trail=trail, **settings)
        return [left, [f"option {label}, which climbs it", state, *drawn]]

    if not (colour and console.is_terminal):
        print_side_by_side(blocks([]))
        moves = "".join(arrows[s] for s in path)
        print_line(f"{label} runs from S for {len(path) - 1} steps: {moves}")
        print()
    else:
        with Live(console=console, auto_refresh=False) as live:
            for i in range(len(path)):
                live.update(drawing.side_by_side(blocks(path[: i + 1])), refresh=True)
                time.sleep(SECONDS_PER_STEP)
