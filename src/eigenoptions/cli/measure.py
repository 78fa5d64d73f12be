"""Commands that measure what options are worth: diffusion time and learning."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

from rich.text import Text
from tyro.conf import arg

from eigenoptions.cli.flags import Chance, Count, Discounted, Maze, Printed
from eigenoptions.cli.options import plain
from eigenoptions.cli.terminal import (
    bar,
    check_writable,
    describe,
    print_end,
    print_heading,
    print_json,
    print_line,
    print_table,
    save_results,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from eigenoptions.learning import LearningRecord
    from eigenoptions.mdp import MDP
    from eigenoptions.options import OptionSet

# Default numbers of options to add, and to learn with.
DIFFUSION_OPTIONS, LEARNING_OPTIONS = 32, (8, 64)
# The mean return of the last tenth of the episodes is shown.
LAST_PART = 10

Cell = Annotated[Optional[str], arg(metavar="ROW,COL", help_behavior_hint="")]  # noqa: UP045


@dataclass(frozen=True)
class Measured(Maze):
    """A maze on which options are measured.

    Attributes
    ----------
    option_chance
        Probability in [0, 1) that a decision is for an option, where one may start.
    """

    option_chance: Annotated[
        Chance, arg(help_behavior_hint="(default: uniform over actions and options, as in the paper)")
    ] = None

    def _maze(self) -> MDP:
        from eigenoptions.discovery import is_environment_id
        from eigenoptions.mdp import maze

        if is_environment_id(self.maze):
            raise ValueError(
                f"this command takes a maze, got the environment {self.maze}: discover shows its options, and "
                f"diffusion_time(from_env({self.maze!r})) in Python measures them"
            )
        return maze(self.maze, rng=self.rng)

    def _discover(self, mdp: MDP, n_options: int | None, gamma: float | None = None) -> OptionSet:
        from eigenoptions.discovery import discover

        if n_options is None and self.declared.n_options is not None:
            n_options = min(DIFFUSION_OPTIONS, mdp.n_states - 1) or None
        settings = self.method_settings
        options: OptionSet = discover(mdp, n_options, self.method, gamma=gamma, rng=self.rng, **settings)
        return options

    def _record(self, options: OptionSet | None) -> dict[str, Any]:
        """Settings with which the options were discovered."""
        if options is None:
            return {"n_options": 0}
        record = {
            "method": self.method,
            "n_options": len(options),
            "option_gamma": options.provenance["gamma"],
        }
        if self.option_chance is not None:
            record["option_chance"] = self.option_chance
        return {**record, "rng": self.rng, **plain(self.method_settings)}


@dataclass(frozen=True)
class Diffusion(Discounted, Measured):
    """Show the diffusion time of a maze as options are added one by one.

    Attributes
    ----------
    n_options
        Number of options to add; both signs of an eigenvector count.
    out
        Folder for diffusion.csv, diffusion.svg and reach.svg; it is created if it does not exist.
    """

    n_options: Annotated[
        Count, arg(aliases=("-n",), help_behavior_hint="(default: 32, or all there are)")
    ] = None

    def __call__(self) -> None:
        """Run the command."""
        check_writable(self.out)
        with bar("reading the maze") as status:
            from eigenoptions.evaluation import diffusion_curve

            mdp = self._maze()
            status.begin(f"discovering options: {mdp.n_states} states")
            options = self._discover(mdp, self.n_options, self.gamma)
            status.begin("computing diffusion times")
            curve = diffusion_curve(mdp, options, option_chance=self.option_chance, progress=status.step)
            rows: list[dict[str, Any]] = [
                {"options": n, "added": added, "diffusion_time": float(time)}
                for n, (added, time) in enumerate(zip(("", *options.labels), curve, strict=True))
            ]
            files = [] if self.out is None else self._save(self.out, mdp, options, rows)
        if self.as_json:
            head = {"maze": mdp.name or "map", "states": mdp.n_states, "settings": self._record(options)}
            print_json({**head, "curve": rows}, files)
            return
        print_heading(describe(mdp.name, mdp.n_states, self._record(options)))
        heads = (">options", "added", ">diffusion time", ">of 0 options")
        print_table(heads, [_diffusion_row(row, curve[0]) for row in rows])
        _print_curve(curve)
        best = int(curve.argmin())
        chance = "" if self.option_chance is None else f" --option-chance {self.option_chance:g}"
        print_end(files, f"eigenoptions learn {self.maze} -n {best or len(options)}{chance}")

    def _save(self, folder: Path, mdp: MDP, options: OptionSet, rows: list[dict[str, Any]]) -> list[Path]:
        from eigenoptions import plots

        y = [row["diffusion_time"] for row in rows]
        lines = {f"{self.method} options": y}
        figure = plots.plot_diffusion(lines)
        return save_results(folder, {"diffusion.csv": rows, "diffusion.svg": figure})


@dataclass(frozen=True)
class Learn(Printed, Measured):
    """Learn to reach the goal of a maze, with primitive actions alone and with options to explore.

    Attributes
    ----------
    maze
        Name of a built-in maze, path to a map with S and G, or a map by rule (rooms:3x3) for which --start and --goal
        are given.
    n_options
        Numbers of options to compare; primitive actions alone are always shown.
    runs
        Number of independent runs of each agent.
    episodes
        Number of learning episodes per run; each is followed by a greedy evaluation.
    max_steps
        Maximum number of primitive steps per episode.
    alpha
        Step size.
    gamma
        Discount of learning.
    start
        Start cell, if not the map's S; a single number is a state.
    goal
        Goal cell, if not the map's G; a single number is a state.
    out
        Folder for learning.csv and learning.svg; it is created if it does not exist.
    """

    n_options: Annotated[
        Optional[str],  # noqa: UP045
        arg(aliases=("-n",), metavar="N,...", help_behavior_hint="(default: 8,64, or all there are)"),
    ] = None
    runs: int = 100
    episodes: int = 250
    max_steps: int = 100
    alpha: float = 0.1
    gamma: float = 0.9
    start: Cell = None
    goal: Cell = None

    def __call__(self) -> None:
        """Run the command."""
        check_writable(self.out)
        with bar("reading the maze") as status:
            from eigenoptions.learning import check_size

            mdp = self._maze()
            check_size(self.runs, self.episodes, mdp.n_states * mdp.n_actions)
            mdp = mdp.with_task(_state(mdp, self.start, "start"), _state(mdp, self.goal, "goal"))
            missing = [word for word in ("start", "goal") if getattr(mdp, word) is None]
            if missing:
                flags = " and ".join(f"--{word} ROW,COL" for word in missing)
                raise ValueError(f"{self.maze} has no {' and no '.join(missing)}: give {flags}")
            counts = self._counts(mdp)
            # A task that cannot be learned is refused before options are discovered.
            self._run(mdp, None, runs=1, episodes=1)
            status.begin(f"discovering options: {mdp.n_states} states")
            options = self._discover(mdp, max(counts)) if any(counts) else None
            records: dict[int, LearningRecord] = {}
            for i, n in enumerate(counts):
                status.begin(f"learning with {n} options" if n else "learning with primitive actions")
                chosen = options[:n] if options is not None and n else None
                how = {"runs": self.runs, "episodes": self.episodes, "progress": status.part(i, len(counts))}
                records[n] = self._run(mdp, chosen, **how)
            files = [] if self.out is None else self._save(self.out, records)
        self._show(mdp, options, records, files)

    def _counts(self, mdp: MDP) -> list[int]:
        """Numbers of options, primitive actions first."""
        if self.n_options is None:
            if self.declared.n_options is None:
                return [0, len(self._discover(mdp, None))]
            return [0, *dict.fromkeys(min(n, mdp.n_states - 1) for n in LEARNING_OPTIONS)]
        try:
            given = [int(n) for n in self.n_options.split(",")]
        except ValueError:
            raise ValueError(f"-n takes whole numbers like 8 or 8,64, got {self.n_options!r}") from None
        if min(given) < 0:
            raise ValueError(f"-n takes numbers from 0, got {self.n_options!r}")
        return list(dict.fromkeys([0, *sorted(given)]))

    def _run(self, mdp: MDP, options: OptionSet | None, **how: Any) -> LearningRecord:
        from eigenoptions.learning import q_learning

        names = ("max_steps", "alpha", "gamma", "rng", "option_chance")
        return q_learning(mdp, options, **how, **{name: getattr(self, name) for name in names})

    def _save(self, folder: Path, records: dict[int, LearningRecord]) -> list[Path]:
        from eigenoptions import plots

        rows = []
        for n, record in records.items():
            (low, high), mean = record.band(), record.mean()
            rows += [
                {"options": n, "episode": i + 1, "return": float(m), "low": float(a), "high": float(b)}
                for i, (m, a, b) in enumerate(zip(mean, low, high, strict=True))
            ]
        figure = plots.plot_learning({_agent(n): record for n, record in records.items()})
        return save_results(folder, {"learning.csv": rows, "learning.svg": figure})

    def _show(
        self, mdp: MDP, options: OptionSet | None, records: dict[int, LearningRecord], files: list[Path]
    ) -> None:
        from eigenoptions._text import spark

        last = max(1, self.episodes // LAST_PART)
        agents: list[dict[str, Any]] = [
            {
                "options": n,
                "mean_return": float(record.returns.mean()),
                "last_return": float(record.returns[:, -last:].mean()),
                "curve": record.mean().tolist(),
            }
            for n, record in records.items()
        ]
        if self.as_json:
            task = {"maze": mdp.name or "map", "states": mdp.n_states, "start": mdp.start, "goal": mdp.goal}
            settings = {**records[0].settings, "runs": self.runs, **self._record(options)}
            print_json({**task, "settings": settings, "agents": agents}, files)
            return
        assert mdp.coords is not None
        start, goal = (tuple(mdp.coords[state].tolist()) for state in (mdp.start, mdp.goal))
        print_heading(
            describe(mdp.name, mdp.n_states, self._record(options)),
            f"{self.runs} runs of {self.episodes} episodes from {start} to {goal}",
        )
        rows = []
        for agent in agents:
            returns = (f"{agent[name]:.3f}" for name in ("mean_return", "last_return"))
            rows.append((_agent(agent["options"]), *returns, spark(agent["curve"])))
        heads = ("agent", ">mean return", f">last {last}", "return by episode")
        print_table(heads, rows)
        print()
        print_end(files, f"eigenoptions discover {self.maze} -n {max(records) or LEARNING_OPTIONS[0]}")


def _diffusion_row(row: dict[str, Any], primitive: float) -> tuple[str | Text, ...]:
    """Cells of a table, green if the options help, red if they do not."""
    time, share = row["diffusion_time"], row["diffusion_time"] / primitive
    color = "" if row["options"] == 0 else "green" if share < 1 else "red"
    shown = f"{share:.0%}" if share < 10 else f"{share:,.0f} times" if share < 1e9 else f"{share:.3g} times"
    steps = f"{time:,.1f}" if time < 1e9 else f"{time:.4g}"
    return str(row["options"]), row["added"], steps, Text(shown, style=color)


def _print_curve(curve: NDArray[np.float64]) -> None:
    """Print the curve as one line, and what a rise in it means."""
    import numpy as np

    from eigenoptions._text import spark

    heights = np.log(curve)
    line = spark(heights, low=float(heights.min()), high=float(heights.max()))
    print()
    print_line(f"{line}  0 to {len(curve) - 1} options, logarithmic")
    if curve.max() > 1.01 * curve[0]:
        print_line("A rise is expected for few options: random decisions then repeat the same long options.")
    print()


def _state(mdp: MDP, given: str | None, what: str) -> int | None:
    """State at ``ROW,COL``, or of a single number."""
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
