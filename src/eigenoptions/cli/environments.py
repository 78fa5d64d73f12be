"""Environments on the command line: read exactly where they are finite, sampled where they are not."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from eigenoptions.cli.terminal import Bar, make

if TYPE_CHECKING:
    from eigenoptions.cli.skills import Discover
    from eigenoptions.mdp import MDP
    from eigenoptions.options.linear import LinearOptionSet

ID = re.compile(r"([\w.]+:)?([\w-]+/)?[\w.-]+-v\d+")


@dataclass(frozen=True)
class Sampled:
    """The id of an environment that is to be sampled."""

    name: str


def source(text: str, *, sampled: bool, status: Bar) -> MDP | Sampled:
    """The MDP of a maze or of a finite environment; or, for other environments and where asked for, its name."""
    from eigenoptions.mdp import maze

    if not ID.fullmatch(text) or Path(text).is_file():
        if sampled:
            raise ValueError(
                f"--steps and --features are for environments (an id such as MountainCar-v0), got {text!r}"
            )
        return maze(text)
    from eigenoptions.envs import from_env
    from eigenoptions.envs.tables import made_env

    env = made_env(text)
    space = env.observation_space
    finite = (
        hasattr(env.unwrapped, "P")
        or not hasattr(space, "dtype")
        or space.dtype is None
        or space.dtype.kind in "iub"
    )
    env.close()
    if sampled or not finite:
        return Sampled(text)
    status.say("exploring the environment")
    return from_env(text, progress=lambda done, found: status.step(done, found))


def sample(environment: Sampled, asked: Discover, status: Bar) -> None:
    """Discover options from a random walk, run each, and show where they lead."""
    from eigenoptions.cli.skills import _show, _write
    from eigenoptions.discovery import discover
    from eigenoptions.envs import run_options
    from eigenoptions.options.linear import LinearOptionSet

    status.say(f"sampling {environment.name}")
    how: dict[str, Any] = {"steps": 50_000 if asked.steps is None else asked.steps}
    if asked.features != "default":
        how["features"] = asked.features
    options = discover(
        environment.name,
        8 if asked.n_options is None else asked.n_options,
        asked.method,
        gamma=asked.gamma,
        rng=asked.rng,
        skip_zero=asked.skip_zero,
        progress=status.step,
        **how,
    )
    settings = {"n_options": len(options), "rng": asked.rng, **how}
    if not isinstance(options, LinearOptionSet):
        head = {"maze": environment.name, "states": options.n_states, "settings": settings}
        _show(options, head, [] if asked.out is None else _write(asked.out, None, options, ""), asked.as_json)
        return
    status.say("running the options")
    paths = run_options(environment.name, options, rng=asked.rng)
    files: list[Path] = []
    if asked.out is not None:
        status.say("drawing")
        files = _save(asked.out, environment.name, options, paths)
    rows = [_row(options, i, paths[i]) for i in range(len(options))]
    if asked.as_json:
        head = {"environment": environment.name, "settings": settings}
        print(json.dumps({**head, "options": rows, "files": [str(f) for f in files]}))
        return
    console = Console(highlight=False)
    console.print(f"{options!r}", soft_wrap=True, markup=False)
    table = Table(box=None, pad_edge=False)
    for name in ("option", "eigenvalue", "sign", "mean length", "started", "ends at (mean observation)"):
        table.add_column(
            name, justify="right" if name in ("eigenvalue", "mean length", "started") else "left"
        )
    for row in rows:
        where = " ".join(f"{x:.3g}" for x in row["ends"][:6]) + (" ..." if len(row["ends"]) > 6 else "")
        table.add_row(
            row["label"],
            f"{row['eigenvalue']:.5g}",
            row["sign"],
            f"{row['mean_length']:.1f}",
            f"{row['started']} of {row['runs']}",
            where,
        )
    console.print(table)
    for file in files:
        console.print(f"wrote {file}", soft_wrap=True, markup=False)


def show_linear(options: LinearOptionSet, as_json: bool) -> None:
    """Show the options of a feature space; where they lead is known only in their environment."""
    rows = [{"label": o.label, "eigenvalue": o.eigenvalue, "sign": o.label[-1]} for o in options]
    if as_json:
        print(json.dumps({"settings": options.provenance, "options": rows, "files": []}))
        return
    console = Console(highlight=False)
    console.print(f"{options!r}", soft_wrap=True, markup=False)
    table = Table("option", "eigenvalue", box=None, pad_edge=False)
    for o in options:
        table.add_row(o.label, f"{o.eigenvalue:.5g}")
    console.print(table)
    made = ", ".join(f"{k} {v}" for k, v in options.provenance.items() if isinstance(v, str | int | float))
    console.print(made, soft_wrap=True, markup=False)


def _row(options: LinearOptionSet, i: int, paths: list[Any]) -> dict[str, Any]:
    """Describe an option, and its runs, in plain JSON values."""
    import numpy as np

    begun = [path for path in paths if len(path) > 1]
    return {
        "label": options.labels[i],
        "eigenvalue": float(options.eigenvalues[i]),
        "sign": options.labels[i][-1],
        "runs": len(paths),
        "started": len(begun),
        "mean_length": float(np.mean([len(path) - 1 for path in begun])) if begun else 0.0,
        "ends": np.mean([np.ravel(path[-1]) for path in begun or paths], axis=0)
        .astype(float)
        .round(6)
        .tolist(),
    }


def _save(folder: Path, name: str, options: LinearOptionSet, paths: list[Any]) -> list[Path]:
    """The options file, and where observations have two dimensions a picture."""
    import numpy as np

    from eigenoptions import plots
    from eigenoptions.envs.tables import made_env

    env = made_env(name)
    space = env.observation_space
    env.close()
    low, high = (np.asarray(getattr(space, side, np.inf), dtype=float) for side in ("low", "high"))
    figures = {}
    if low.shape == (2,) and np.isfinite([low, high]).all():
        figures["options.svg"] = plots.landscapes(options, low, high, paths, names=_dimensions(name))
    make(folder)
    options.save(folder / "options.safetensors")
    for file, fig in figures.items():
        plots.save(fig, folder / file)
    return [folder / file for file in ("options.safetensors", *figures)]


def _dimensions(name: str) -> tuple[str, str]:
    """What the two numbers of an observation are called, where it is known."""
    return ("position", "velocity") if "MountainCar" in name else ("observation 1", "observation 2")
