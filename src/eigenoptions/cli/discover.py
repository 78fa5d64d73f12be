"""Commands about options: discover them, show those of a file, and list the mazes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from eigenoptions.cli.flags import Count, Discounted, Printed, named
from eigenoptions.cli.options import linear_cells, linear_row, n_maps, plain, row, runs, show
from eigenoptions.cli.terminal import (
    Bar,
    bar,
    check_writable,
    print_end,
    print_heading,
    print_json,
    print_line,
    print_side_by_side,
    print_table,
    save_results,
)

if TYPE_CHECKING:
    from eigenoptions.mdp import MDP
    from eigenoptions.options import OptionSet
    from eigenoptions.options.linear import LinearOptionSet
    from eigenoptions.spectra import Spectrum

# Most panels and most eigenvectors of a figure.
MAX_PANELS, MAX_EIGENVECTORS = 64, 8
DEFAULT_STEPS = 50_000


@dataclass(frozen=True)
class Discover(Discounted):
    """Discover the options of a maze or an environment, and show, draw and save them.

    A finite Gymnasium environment is read exactly; one with continuous observations, and any source with --steps or
    --features, is sampled by a random walk.

    Attributes
    ----------
    maze
        Name of a built-in maze (see: eigenoptions mazes), path to a map, id of a Gymnasium environment (FrozenLake-v1,
        minigrid:MiniGrid-FourRooms-v0, MountainCar-v0), or a map by rule: rooms:100x100 (100 rows of 100 rooms),
        perfect:707x707 (crossings of a perfect maze), open:50x50 (cells), with --rng as its seed.
    n_options
        Number of options; both signs of an eigenvector count.
    features
        Feature map of continuous observations, for sampling.
    steps
        Number of transitions to sample.
    out
        Folder for options.safetensors, options.svg and, of eigenoptions, pvfs.svg; it is created if it does not exist.
    """

    n_options: Annotated[
        Count, arg(aliases=("-n",), help_behavior_hint="(default: 8; all bottleneck options)")
    ] = None
    features: Annotated[str, named("features.MAPS", "fourier")] = "default"
    steps: Annotated[Count, arg(help_behavior_hint=f"(default: {DEFAULT_STEPS})")] = None

    def __call__(self) -> None:
        """Run the command."""
        check_writable(self.out)
        with bar("reading the maze") as status:
            from eigenoptions.discovery import discover, read_source
            from eigenoptions.options import OptionSet

            sample = self.steps is not None or self.features != "default"
            source = read_source(self.maze, sample, rng=self.rng, progress=status.step)
            settings = self._sampling if source.mdp is None else self.method_settings
            what = f"sampling {self.maze}" if source.mdp is None else f"{source.mdp.n_states} states"
            status.begin(f"discovering options: {what}")
            options = discover(
                source,
                self.declared.n_options if self.n_options is None else self.n_options,
                self.method,
                gamma=self.gamma,
                rng=self.rng,
                progress=status.step,
                **settings,
            )
            record: dict[str, Any] = {"n_options": len(options), "rng": self.rng}
            if source.mdp is None:
                record |= {name: value for name, value in plain(settings).items() if name != "skip_zero"}
            else:
                record |= {"gamma": options.provenance["gamma"], "method": self.method, **plain(settings)}
            if not isinstance(options, OptionSet):
                self._run_and_show(options, record, status)
                return
            status.begin("drawing")
            eigenvectors = self._eigenvectors(source.mdp, options, status)
            files = [] if self.out is None else self._save(self.out, options, eigenvectors)
        name = self.maze if source.mdp is None else source.mdp.name or "map"
        head = {"maze": name, "states": options.n_states, "settings": record}
        if self.as_json:
            print_json({**head, "options": [row(options, i) for i in range(len(options))]}, files)
            return
        show(head, options, eigenvectors)
        print_end(files, self._next(source.kind, files))

    def _next(self, kind: str, files: list[Path]) -> str:
        """A command that goes on from here."""
        from eigenoptions.discovery import is_environment_id

        if kind == "table" and not is_environment_id(self.maze):
            return f"eigenoptions diffusion {self.maze} -n {self.n_options or 8}"
        return f"eigenoptions show {files[0]}" if files else f"eigenoptions discover {self.maze} --out out/"

    @property
    def _sampling(self) -> dict[str, Any]:
        """Settings of discovery from samples."""
        features = {} if self.features == "default" else {"features": self.features}
        steps = DEFAULT_STEPS if self.steps is None else self.steps
        flags = {"skip_zero": self.skip_zero} if self.method == "eigen" else {}
        return {"steps": steps, **features, **flags, **self.own_settings}

    def _eigenvectors(self, mdp: MDP | None, options: OptionSet, status: Bar) -> Spectrum | None:
        """Those that are drawn, if anything is; a smaller k gives the first columns of a larger one."""
        from eigenoptions.mdp import graph
        from eigenoptions.spectra import spectrum

        numbers = [o for o in options.indices if o is not None]
        # Other methods have purposes of their own, which are no eigenvectors of this operator.
        if "operator" not in self.declared.settings:
            return None
        if not numbers or mdp is None or mdp.coords is None or (self.as_json and self.out is None):
            return None
        shown = [o for o in options.indices[: n_maps(options)] if o is not None]
        figure = min(max(numbers), min(numbers) + MAX_EIGENVECTORS - 1) if min(numbers) > 1 else max(numbers)
        k = max([figure] * (self.out is not None) + shown * (not self.as_json))
        return spectrum(graph(mdp), k=k, operator=self.operator, progress=status.step)

    def _save(self, folder: Path, options: OptionSet, eigenvectors: Spectrum | None) -> list[Path]:
        """Write the options file and figures; everything is computed before the first file is written."""
        from eigenoptions import plots

        results: dict[str, Any] = {"options.safetensors": options}
        if options.coords is not None:
            results["options.svg"] = plots.plot_options(options[:MAX_PANELS])
        if eigenvectors is not None:
            results["pvfs.svg"] = plots.plot_eigenvectors(plots.axes.get_mdp(options), eigenvectors)
        return save_results(folder, results)

    def _run_and_show(self, options: LinearOptionSet, record: dict[str, Any], status: Bar) -> None:
        """Run options of a feature space in their environment, and show where they lead."""
        from eigenoptions.envs import run_options

        status.begin("running the options")
        paths = run_options(self.maze, options, rng=self.rng)
        files: list[Path] = []
        if self.out is not None:
            status.begin("drawing")
            figures = _landscapes(self.maze, options, paths)
            files = save_results(self.out, {"options.safetensors": options, **figures})
        rows = [linear_row(options, i) | runs(paths[i]) for i in range(len(options))]
        if self.as_json:
            print_json({"environment": self.maze, "settings": record, "options": rows}, files)
            return
        steps, maps = record["steps"], options.features
        print_heading(
            f"{self.maze}: {steps} sampled steps; {len(options)} options on {type(maps).__name__} features"
        )
        heads = ("option", ">eigenvalue", "sign", ">mean length", ">started", "ends at (mean observation)")
        print_table(heads, map(linear_cells, rows))
        print()
        print_end(files, self._next("samples", files))


@dataclass(frozen=True)
class Show(Printed):
    """Show the options of a file that discover wrote.

    Attributes
    ----------
    file
        Options file (.safetensors).
    only
        Number of the option to show, counted from 0; the others are not read.
    """

    file: Annotated[Positional[Path], arg(metavar="FILE")]
    only: Annotated[Count, arg(help_behavior_hint="(default: all)")] = None

    def __call__(self) -> None:
        """Run the command."""
        with bar("reading the file"):
            from eigenoptions.options import OptionSet
            from eigenoptions.options.storage import load_options

            options = load_options(self.file, only=self.only)
        if isinstance(options, OptionSet):
            record = dict(options.provenance)
            head = {"maze": record.pop("mdp", ""), "states": options.n_states, "settings": record}
            if self.as_json:
                print_json({**head, "options": [row(options, i) for i in range(len(options))]}, [])
                return
            show(head, options)
            print_line(f"in Python: options = eo.load_options({str(self.file)!r})")
            return
        rows = [linear_row(options, i) for i in range(len(options))]
        if self.as_json:
            print_json({"settings": options.provenance, "options": rows}, [])
            return
        print_line(f"{options!r}")
        print_table(("option", "eigenvalue"), [(row["label"], f"{row['eigenvalue']:.5g}") for row in rows])
        simple = {k: v for k, v in options.provenance.items() if isinstance(v, str | int | float)}
        print_line(", ".join(f"{name} {value}" for name, value in simple.items()))


@dataclass(frozen=True)
class Mazes(Printed):
    """List the built-in mazes, each with a small picture."""

    def __call__(self) -> None:
        """Run the command."""
        from eigenoptions.mdp import maze, mazes

        found = [maze(name) for name in mazes()]
        maps = [str(m).rsplit("\n", 1)[0].split("\n") for m in found]
        if self.as_json:
            texts = ["\n".join(lines).replace("█", "#").replace(" ", ".") for lines in maps]
            rows = [{"name": m.name, **_size(m), "map": text} for m, text in zip(found, texts, strict=True)]
            print_json({"mazes": rows})
            return
        print_side_by_side(
            [
                [m.name, f"{m.n_states} states", f"{_size(m)['rows']} × {_size(m)['columns']}", *lines]
                for m, lines in zip(found, maps, strict=True)
            ]
        )
        print_end([], f"eigenoptions discover {found[0].name} -n 8")


def _landscapes(name: str, options: LinearOptionSet, paths: list[Any]) -> dict[str, Any]:
    """A figure of the options, if observations are two bounded numbers."""
    import numpy as np

    from eigenoptions import plots
    from eigenoptions.envs.tables import made_env

    env = made_env(name)
    space = env.observation_space
    env.close()
    low, high = (np.asarray(getattr(space, side, np.inf), dtype=float) for side in ("low", "high"))
    if low.shape != (2,) or not np.isfinite([low, high]).all():
        return {}
    names = ("position", "velocity") if "MountainCar" in name else ("observation 1", "observation 2")
    return {"options.svg": plots.plot_landscapes(options, low, high, paths, names=names)}


def _size(mdp: MDP) -> dict[str, int]:
    assert mdp.coords is not None
    rows, columns = (int(n) + 1 for n in mdp.coords.max(axis=0) - mdp.coords.min(axis=0))
    return {"states": mdp.n_states, "rows": rows, "columns": columns}
