"""Commands that measure what options are worth: diffusion time and learning, as they are added."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

from rich.console import Console
from rich.table import Table
from rich.text import Text
from tyro.conf import Positional, arg

from eigenoptions.cli.skills import ruled
from eigenoptions.cli.terminal import Cell, Folder, Json, Workers, bar, make, writable

if TYPE_CHECKING:
    from eigenoptions.learning import LearningRecord
    from eigenoptions.mdp import MDP
    from eigenoptions.options import OptionSet

BLOCK = 10  # runs between two steps of the bar
SPARK = "▁▂▃▄▅▆▇█"
Method = Literal["eigen", "bottleneck", "random"]
Operator = Literal["normalized", "combinatorial", "random-walk"]


@dataclass(frozen=True)
class Diffusion:
    """Show the diffusion time of a maze as options are added one by one.

    Attributes
    ----------
    maze
        Name of a built-in maze (see: eigenoptions mazes), a path to a map, or a map made by rule (rooms:3x3).
    n_options
        How many to add; both signs of an eigenvector count.
    method
        Eigenoptions, shortest paths to doorways, or to random states.
    operator
        The Laplacian whose eigenvectors are used; the paper's is normalized.
    gamma
        Discount in [0, 1): how far an option looks over a valley.
    skip_zero
        Leave out eigenvalue zero, which has no direction; the paper counts it.
    rng
        Seed, for methods that draw at random.
    engine
        Who does the work that takes long: this process, one a core, or a Ray cluster. The values are the same.
    workers
        How many processes or Ray tasks at a time, by default one a core.
    out
        Folder for diffusion.csv, diffusion.svg and reach.svg; made if it is not there.
    as_json
        Print one JSON object and nothing else.
    """

    maze: Annotated[Positional[str], arg(metavar="MAZE")]
    n_options: Annotated[
        Optional[int],  # noqa: UP045
        arg(aliases=("-n",), metavar="N", help_behavior_hint="(default: 32, or what there is)"),
    ] = None
    method: Method = "eigen"
    operator: Operator = "normalized"
    gamma: Annotated[
        Optional[float],  # noqa: UP045
        arg(metavar="G", help_behavior_hint="(default: 0.9 for eigenoptions, else close to 1)"),
    ] = None
    skip_zero: bool = True
    rng: int = 0
    engine: Literal["serial", "processes", "ray"] = "serial"
    workers: Workers = None
    out: Folder = None
    as_json: Json = False

    def __call__(self) -> None:
        """Run the command."""
        if self.out is not None:
            writable(self.out)
        with bar("reading the maze") as status:
            from eigenoptions.evaluation import diffusion_curve
            from eigenoptions.mdp import maze

            mdp = ruled(self.maze, self.rng) or maze(self.maze)
            status.say(f"looking for options on {mdp.n_states} states")
            options = _options(mdp, self.n_options, self)
            status.say("walking")
            far: dict[str, Any] = {"engine": self.engine, "workers": self.workers}
            curve = diffusion_curve(mdp, options, progress=status.step, **far)
            rows: list[dict[str, Any]] = [
                {"options": m, "added": options.labels[m - 1] if m else "", "diffusion_time": float(x)}
                for m, x in enumerate(curve)
            ]
            files = [] if self.out is None else self._write(self.out, mdp, options, rows)
        if self.as_json:
            head = {"maze": mdp.name or "map", "states": mdp.n_states, "settings": _settings(self, options)}
            print(json.dumps({**head, "curve": rows, "files": [str(f) for f in files]}))
            return
        table = Table(box=None, pad_edge=False)
        for name in ("options", "added", "diffusion time", "of none"):
            table.add_column(name, justify="left" if name == "added" else "right")
        for row in rows:
            time, share = row["diffusion_time"], row["diffusion_time"] / curve[0]
            color = None if row["options"] == 0 else "green" if share < 1 else "red"
            shown = f"{share:.0%}" if share < 10 else f"{share:.3g} ×"
            table.add_row(str(row["options"]), row["added"], _steps(time), Text(shown, style=color or ""))
        console = Console(highlight=False)
        console.print(table)
        _tell_files(console, files)

    def _write(self, folder: Path, mdp: MDP, options: OptionSet, rows: list[dict[str, Any]]) -> list[Path]:
        from eigenoptions import plots
        from eigenoptions.evaluation import hitting_times
        from eigenoptions.files import write_bytes

        y = [row["diffusion_time"] for row in rows]
        levels = {"primitive actions": y[0]}
        lines = {f"{self.method} options": y}
        axes = {"xlabel": "options", "ylabel": "diffusion time", "log": max(y) > 10 * min(y)}
        figures = {"diffusion.svg": plots.curves(range(len(y)), lines, levels=levels, **axes)}
        if mdp.coords is not None:
            hard = hitting_times(mdp, options, engine=self.engine, workers=self.workers).sum(axis=0) / (
                mdp.n_states - 1
            )
            figures["reach.svg"] = plots.heat(
                hard, mdp.coords, f"mean steps to reach, {len(options)} options"
            )
        make(folder)
        write_bytes(folder / "diffusion.csv", _csv(rows))
        for name, fig in figures.items():
            plots.save(fig, folder / name)
        return [folder / name for name in ("diffusion.csv", *figures)]


@dataclass(frozen=True)
class Learn:
    """Learn to reach the goal of a maze, with primitive actions alone and with options to explore.

    Attributes
    ----------
    maze
        Name of a built-in maze, a path to a map with S and G, or a map made by rule (rooms:3x3), with --start and
        --goal.
    n_options
        Numbers of options to compare; primitive actions alone are always shown.
    method
        Eigenoptions, shortest paths to doorways, or to random states.
    operator
        The Laplacian whose eigenvectors are used; the paper's is normalized.
    skip_zero
        Leave out eigenvalue zero, which has no direction; the paper counts it.
    runs
        Independent runs of each agent.
    episodes
        Learning episodes a run; each is followed by a greedy evaluation.
    max_steps
        Primitive steps an episode has at most.
    alpha
        Step size.
    gamma
        Discount of learning.
    start
        Start cell, if not the map's S; a single number is a state.
    goal
        Goal cell, if not the map's G.
    rng
        Seed.
    out
        Folder for learning.csv and learning.svg; made if it is not there.
    as_json
        Print one JSON object and nothing else.
    """

    maze: Annotated[Positional[str], arg(metavar="MAZE")]
    n_options: Annotated[
        Optional[str],  # noqa: UP045
        arg(aliases=("-n",), metavar="N,...", help_behavior_hint="(default: 8,64, or what there is)"),
    ] = None
    method: Method = "eigen"
    operator: Operator = "normalized"
    skip_zero: bool = True
    runs: int = 100
    episodes: int = 250
    max_steps: int = 100
    alpha: float = 0.1
    gamma: float = 0.9
    start: Cell = None
    goal: Cell = None
    rng: int = 0
    out: Folder = None
    as_json: Json = False

    def __call__(self) -> None:
        """Run the command."""
        if self.out is not None:
            writable(self.out)
        if self.runs < 1:
            raise ValueError(f"runs must be at least 1, got {self.runs}")
        with bar("reading the maze") as status:
            from eigenoptions.mdp import maze

            mdp = ruled(self.maze, self.rng) or maze(self.maze)
            mdp = mdp.task(_state(mdp, self.start, "start"), _state(mdp, self.goal, "goal"))
            counts = self._counts(mdp)
            self._run(
                mdp, None, range(1), 1
            )  # a task that cannot be learned is refused before options are made
            status.say(f"looking for options on {mdp.n_states} states")
            options = _options(mdp, max(counts), self) if any(counts) else None
            records: dict[int, LearningRecord] = {}
            blocks = [range(i, min(i + BLOCK, self.runs)) for i in range(0, self.runs, BLOCK)]
            for i, n in enumerate(counts):
                status.say(f"learning with {n} options" if n else "learning with primitive actions")
                for j, block in enumerate(blocks):
                    part = self._run(
                        mdp, options[:n] if options is not None and n else None, block, self.episodes
                    )
                    records[n] = records[n] + part if n in records else part
                    status.step(i * len(blocks) + j + 1, len(counts) * len(blocks))
            files = [] if self.out is None else self._write(self.out, records)
        self._show(mdp, options, records, files)

    def _counts(self, mdp: MDP) -> list[int]:
        """Numbers of options, primitive actions first."""
        if self.n_options is None:
            if self.method == "bottleneck":
                return [0, len(_options(mdp, None, self))]
            return [0, *dict.fromkeys(min(n, mdp.n_states - 1) for n in (8, 64))]
        try:
            given = [int(n) for n in self.n_options.split(",")]
        except ValueError:
            raise ValueError(f"-n takes whole numbers like 8 or 8,64, got {self.n_options!r}") from None
        if min(given) < 0:
            raise ValueError(f"-n takes numbers from 0, got {self.n_options!r}")
        return list(dict.fromkeys([0, *sorted(given)]))

    def _run(self, mdp: MDP, options: OptionSet | None, runs: range, episodes: int) -> LearningRecord:
        from eigenoptions.learning import q_learning

        return q_learning(
            mdp,
            options,
            runs=runs,
            episodes=episodes,
            max_steps=self.max_steps,
            alpha=self.alpha,
            gamma=self.gamma,
            rng=self.rng,
        )

    def _write(self, folder: Path, records: dict[int, LearningRecord]) -> list[Path]:
        from eigenoptions import plots
        from eigenoptions.files import write_bytes

        rows = []
        for n, record in records.items():
            (low, high), mean = record.band(), record.mean()
            rows += [
                {"options": n, "episode": i + 1, "return": float(m), "low": float(a), "high": float(b)}
                for i, (m, a, b) in enumerate(zip(mean, low, high, strict=True))
            ]
        fig = plots.curves(
            range(1, len(mean) + 1),
            {_agent(n): record.mean() for n, record in records.items()},
            xlabel="episode",
            ylabel="return",
            bands={_agent(n): record.band() for n, record in records.items()},
            limits=(-0.02, 1.02),
        )
        make(folder)
        write_bytes(folder / "learning.csv", _csv(rows))
        plots.save(fig, folder / "learning.svg")
        return [folder / "learning.csv", folder / "learning.svg"]

    def _show(
        self, mdp: MDP, options: OptionSet | None, records: dict[int, LearningRecord], files: list[Path]
    ) -> None:
        last = max(1, self.episodes // 10)
        if self.as_json:
            task = {"maze": mdp.name or "map", "states": mdp.n_states, "start": mdp.start, "goal": mdp.goal}
            settings = {**records[0].settings, "runs": self.runs, **_settings(self, options)}
            agents = [
                {
                    "options": n,
                    "mean_return": float(record.returns.mean()),
                    "last_return": float(record.returns[:, -last:].mean()),
                    "curve": record.mean().tolist(),
                }
                for n, record in records.items()
            ]
            print(
                json.dumps({**task, "settings": settings, "agents": agents, "files": [str(f) for f in files]})
            )
            return
        table = Table(box=None, pad_edge=False)
        for name in ("agent", "mean return", f"last {last}", "return by episode"):
            table.add_column(name, justify="right" if name[0] in "ml" else "left", no_wrap=True)
        for n, record in records.items():
            end = record.returns[:, -last:].mean()
            table.add_row(_agent(n), f"{record.returns.mean():.3f}", f"{end:.3f}", _spark(record.mean()))
        console = Console(highlight=False)
        console.print(table)
        _tell_files(console, files)


def _options(mdp: MDP, n: int | None, of: Diffusion | Learn) -> OptionSet:
    from eigenoptions.discovery import discover

    if n is None and of.method != "bottleneck":
        n = min(32, mdp.n_states - 1) or None
    eigen = {"operator": of.operator, "skip_zero": of.skip_zero}
    how: dict[str, Any] = eigen if of.method == "eigen" else {}
    gamma = of.gamma if isinstance(of, Diffusion) else None
    options: OptionSet = discover(mdp, n, of.method, gamma=gamma, rng=of.rng, **how)
    return options


def _settings(of: Diffusion | Learn, options: OptionSet | None) -> dict[str, Any]:
    """How the options were made."""
    if options is None:
        return {"n_options": 0}
    how = {"operator": of.operator, "skip_zero": of.skip_zero} if of.method == "eigen" else {}
    made = {"method": of.method, "n_options": len(options), "option_gamma": options.provenance["gamma"]}
    return {**made, "rng": of.rng, **how}


def _state(mdp: MDP, given: str | None, what: str) -> int | None:
    """Number of the state at ``ROW,COL``, or of a number."""
    if given is None:
        return None
    try:
        place = [int(x) for x in given.split(",")]
    except ValueError:
        place = []
    if len(place) == 1:
        return place[0]
    if len(place) != 2:
        raise ValueError(f"{what} must be a cell like 1,11 or the number of a state, got {given!r}")
    at = [] if mdp.coords is None else [s for s, cell in enumerate(mdp.coords.tolist()) if cell == place]
    if not at:
        raise ValueError(f"{what} {given} is no free cell: rows and columns are counted from 0 in the map")
    return at[0]


def _agent(n: int) -> str:
    return f"{n} option{'s' * (n != 1)}" if n else "primitive actions"


def _steps(x: float) -> str:
    return f"{x:,.1f}" if x < 1e9 else f"{x:.4g}"


def _spark(values: Any, width: int = 32) -> str:
    """Draw a curve in one line of text."""
    import numpy as np

    parts = np.array_split(np.asarray(values), min(width, len(values)))
    return "".join(SPARK[min(len(SPARK) - 1, int(len(SPARK) * part.mean()))] for part in parts)


def _csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _tell_files(console: Console, files: list[Path]) -> None:
    for file in files:
        console.print(f"wrote {file}", soft_wrap=True, markup=False)
