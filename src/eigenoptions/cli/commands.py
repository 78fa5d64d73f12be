"""The commands, one function each: read the arguments, call the library, print a table or JSON."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.text import Text

from eigenoptions._text import (
    MAX_SIDE,
    draw_arrows,
    draw_spark,
    explain_glyphs,
    find_moves,
)
from eigenoptions.cli.maps import SHADES, draw_cells, has_color, set_side_by_side
from eigenoptions.cli.terminal import (
    check_folder,
    print_end,
    print_json,
    print_line,
    print_paragraph,
    print_table,
    show_progress,
)

# Above, diffusion times are estimated by walks.
MAX_EXACT_STATES = 1000
OPTION_FLAGS = ("n_options", "method", "operator", "gamma", "seed")


def demo(args: Namespace) -> None:
    """Show an eigenvector of four rooms, the option that climbs it, and what options are worth."""
    from eigenoptions.discovery import discover
    from eigenoptions.evaluation import diffusion_time
    from eigenoptions.mdp import maze

    mdp = maze("four-rooms")
    options = discover(mdp, 64)
    path = options.follow("e2+", mdp.goal or 0).tolist()
    times = {
        "without_options": diffusion_time(mdp),
        "with_options": diffusion_time(mdp, options),
    }
    if args.as_json:
        answer = {
            "maze": mdp.name,
            "states": mdp.n_states,
            "option": "e2+",
            "path": path,
        }
        print_json({**answer, "n_options": len(options), "diffusion_time": times})
        return
    print_paragraph(
        f"four-rooms: {mdp.n_states} states, {mdp.n_actions} actions, no reward", "bold"
    )
    _show_run(options, "e2+", path)
    print_line(
        "Diffusion time: mean number of steps between two states under random decisions."
    )
    names = f"{mdp.n_actions} actions", f"and {len(options)} eigenoptions"
    for name, steps in zip(names, times.values(), strict=True):
        print_line(
            f"  {name:19} {'█' * round(40 * steps / max(times.values()))} {steps:.1f}"
        )
    print()
    learn = "eigenoptions learn four-rooms -n 8 --option-chance auto"
    print_end(
        [],
        "eigenoptions discover four-rooms -n 8 --out out/",
        learn,
        "eigenoptions studio",
    )


def _show_run(options: Any, label: str, path: list[int]) -> None:
    """Show an eigenvector beside its option; on a terminal the option runs."""
    mdp, i, color = options.mdp, options.labels.index(label), has_color()
    level = options.purposes[i].potential / np.abs(options.purposes[i].potential).max()
    arrows = _draw_option(options, i)
    shades = [" " if color else SHADES[min(int(2 * x + 2), 3)] for x in level.tolist()]
    size: Any = {"color": color, "wide": color}
    scale = "blue low, orange high" if color else f"{SHADES[0]} low, {SHADES[-1]} high"
    left: list[Any] = [f"eigenvector e{options.indices[i]}", scale]
    left += draw_cells(mdp.coords, shades, level, **size)

    def set_blocks(trail: list[int]) -> Any:
        state = (
            f"{len(trail) - 1} of {len(path) - 1} steps from G"
            if trail
            else "● it terminates"
        )
        cells = draw_cells(mdp.coords, arrows, level, trail=trail, **size)
        return set_side_by_side(
            [left, [f"option {label}, which climbs it", state, *cells]]
        )

    console = Console(highlight=False)
    if color and console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            for i in range(1, len(path) + 1):
                live.update(set_blocks(path[:i]), refresh=True)
                time.sleep(0.06)
    else:
        console.print(set_blocks([]))
        print_paragraph(
            f"{label} runs from G for {len(path) - 1} steps: {''.join(arrows[s] for s in path)}"
        )


def discover(args: Namespace) -> None:
    """Discover options of a maze or an environment; show, draw and save them."""
    check_folder(args.out)
    with show_progress(f"discovering options of {args.maze}") as (_, step):
        options = _discover(args, args.maze, 8, step)
        files = [] if args.out is None else _save_options(args, options)
    _show_options(args, options, {"n_options": len(options), "seed": args.seed}, files)
    if args.as_json:
        return
    from eigenoptions.mdp.chains import find_recurrent_states

    mdp = getattr(options, "mdp", None) if args.steps is None else None
    # Diffusion times exist where every state can be reached from every other; walks on larger maps take minutes.
    if mdp is not None and mdp.n_states <= 20_000 and find_recurrent_states(mdp).all():
        print_end(files, _repeat("diffusion", args, *OPTION_FLAGS))
    else:
        _print_next(args, files)


def show(args: Namespace) -> None:
    """Show the options of a file."""
    from eigenoptions.options.storage import load_options

    _show_options(args, load_options(args.file), {}, [])
    if not args.as_json:
        print_line(
            f"in Python: options = eigenoptions.load_options({str(args.file)!r})"
        )


def mazes(args: Namespace) -> None:
    """List the built-in mazes, each with a small picture."""
    from eigenoptions import mdp as mazes_module

    rows: list[Any] = []
    blocks = []
    for name in mazes_module.mazes():
        mdp: Any = mazes_module.maze(name)
        text = str(mdp).rsplit("\n", 1)[0]
        height, width = (np.ptp(mdp.coords, axis=0) + 1).tolist()
        rows.append(
            {"name": name, "states": mdp.n_states, "rows": height, "columns": width}
        )
        rows[-1]["map"] = text.replace("█", "#").replace(" ", ".")
        blocks.append(
            [name, f"{mdp.n_states} states", f"{height} × {width}", *text.split("\n")]
        )
    if args.as_json:
        print_json({"mazes": rows})
        return
    Console(highlight=False).print(set_side_by_side(blocks))
    print_end([], f"eigenoptions discover {blocks[0][0]} -n 8")


def diffusion(args: Namespace) -> None:
    """Show the diffusion time of a maze with more and more options, chosen uniformly and as often as helps."""
    check_folder(args.out)
    with show_progress(f"discovering options of {args.maze}") as (begin, step):
        mdp = _read_maze(args)
        options = _discover(args, mdp, min(16, mdp.n_states - 1), step)
        is_exact = mdp.n_states <= MAX_EXACT_STATES
        counts = [
            0,
            *(n for n in (2, 4, 8, 16, 32, 64) if is_exact and n < len(options)),
            len(options),
        ]
        rows: list[dict[str, Any]] = []
        for n in counts:
            task = f"diffusion times with {n} option{'s' * (n != 1)}"
            begin(task + " (the first run compiles)" * (mdp.n_states > 300))
            rows.append(_measure_diffusion(mdp, options[:n], args, is_exact, step))
        settings = {
            "n_options": len(options),
            "seed": args.seed,
            **_get_settings(options),
        }
        answer = {
            "maze": mdp.name or args.maze,
            "states": mdp.n_states,
            "settings": settings,
            "curve": rows,
        }
        is_automatic = args.option_chance in (None, "auto")
        name = "automatic" if is_automatic else f"option chance {args.option_chance:g}"
        files = []
        if args.out is not None:
            from eigenoptions.plots import plot_diffusion

            curves = np.full((2, len(options) + 1), np.nan)
            for curve, key in zip(curves, ("uniform", "diffusion_time"), strict=True):
                curve[counts] = [
                    np.nan if row[key] is None else row[key] for row in rows
                ]
            uniform = {"uniform choice": curves[0]} if is_exact else {}
            files = _save(
                args.out,
                "diffusion",
                answer,
                plot_diffusion({**uniform, name: curves[1]}),
            )
    if args.as_json:
        print_json(answer, files)
        return
    print_paragraph(_make_heading(options, settings), "bold")
    heads = (
        ">options",
        ">uniform choice",
        ">vs none",
        f">{name}",
        ">vs none",
        ">chance",
        ">stop",
    )
    print_table(heads, [_list_cells(row, rows[0]["diffusion_time"]) for row in rows])
    source = "computed exactly" if is_exact else "estimated from 20 walks each"
    note = f"Mean number of steps between two states under random decisions, {source}."
    note += (
        " Uniform choice, the paper's: every action and option is equally likely."
        * is_exact
    )
    tuned = " Automatic: how often to choose an option, and to stop it early, is tuned by simulation."
    print_paragraph(note + tuned * is_automatic)
    if mdp.start is None or mdp.goal is None:
        _print_next(args, files)
    else:
        chance = " --option-chance auto" if args.option_chance is None else ""
        print_end(
            files,
            _repeat("learn", args, *OPTION_FLAGS, "option_chance", "stop_chance")
            + chance,
        )


def _measure_diffusion(
    mdp: Any, options: Any, args: Namespace, is_exact: bool, progress: Any
) -> dict[str, Any]:
    """Diffusion times by the uniform choice and by the setting of the arguments; None where it is infinite."""
    from eigenoptions.evaluation import diffusion_estimate, diffusion_time

    def compute(option_chance: float | None, stop_chance: float = 0.0) -> float | None:
        settings: Any = {
            "option_chance": option_chance,
            "stop_chance": stop_chance,
            "progress": progress,
        }
        try:
            if is_exact:
                return diffusion_time(mdp, options, **settings)
            return diffusion_estimate(
                mdp, options, walks=20, rng=args.seed, **settings
            ).mean
        except OverflowError:
            return None

    chances = _choose_chances(
        options, "auto" if args.option_chance is None else args.option_chance, args
    )
    uniform = compute(None) if is_exact else None
    return {
        "options": len(options),
        "uniform": uniform,
        **chances,
        "diffusion_time": compute(**chances),
    }


def _choose_chances(
    options: Any, option_chance: float | str | None, args: Namespace
) -> dict[str, Any]:
    """Probabilities to choose an option and to stop it early; 0 without options."""
    from eigenoptions.options.tuning import Exploration, resolve_exploration

    chosen = Exploration(0.0, 0.0)
    if options is not None and len(options):
        chosen = resolve_exploration(options, option_chance, args.stop_chance)
    return {"option_chance": chosen.option_chance, "stop_chance": chosen.stop_chance}


def learn(args: Namespace) -> None:
    """Run Q-learning in a maze, with primitive actions alone and with options to explore."""
    check_folder(args.out)
    with show_progress(f"reading {args.maze}") as (begin, step):
        from eigenoptions.learning import q_learning

        mdp = _read_maze(args)
        mdp = mdp.with_task(
            *(_read_state(mdp, getattr(args, word), word) for word in ("start", "goal"))
        )
        for word in ("start", "goal"):
            if getattr(mdp, word) is None:
                raise ValueError(f"{args.maze} has no {word}: give --{word} ROW,COL")
        counts = sorted({0, *(args.n_options or [min(8, mdp.n_states - 1)])})
        begin("discovering options")
        args.n_options = max(counts)
        options = _discover(args, mdp, 8, step) if args.n_options else None
        names = {
            n: f"{n} option{'s' * (n != 1)}" if n else "primitive actions"
            for n in counts
        }
        settings = {
            name: getattr(args, name) for name in ("runs", "episodes", "max_steps")
        }
        last = max(1, args.episodes // 10)
        records, agents, rows = {}, [], []
        for n in counts:
            begin(f"learning with {names[n]}" + " (the first run compiles)" * (n == 0))
            chosen = options[:n] if options is not None and n else None
            chances = _choose_chances(chosen, args.option_chance, args)
            record = q_learning(
                mdp, chosen, rng=args.seed, progress=step, **settings, **chances
            )
            records[names[n]], curve = record, record.returns.mean(axis=0)
            means = {
                "mean_return": float(curve.mean()),
                "last_return": float(curve[-last:].mean()),
            }
            agents.append({"options": n, **means, "curve": curve.tolist()})
            rows.append(
                (
                    names[n],
                    *(f"{mean:.3f}" for mean in means.values()),
                    draw_spark(curve.tolist()),
                )
            )
        settings |= {
            "n_options": max(counts),
            "seed": args.seed,
            "option_chance": args.option_chance,
        }
        settings |= {} if options is None else _get_settings(options)
        answer = {
            "maze": mdp.name or args.maze,
            "states": mdp.n_states,
            "start": mdp.start,
            "goal": mdp.goal,
        }
        answer |= {"settings": settings, "agents": agents}
        files = []
        if args.out is not None:
            from eigenoptions.plots import plot_learning

            files = _save(args.out, "learning", answer, plot_learning(records))
    if args.as_json:
        print_json(answer, files)
        return
    ends = [
        s if mdp.coords is None else tuple(mdp.coords[s].tolist())
        for s in (mdp.start, mdp.goal)
    ]
    task = f"{args.runs} runs of {args.episodes} episodes, {ends[0]} to {ends[1]}"
    print_paragraph(f"{answer['maze']}: {task}", "bold")
    print_table(("agent", ">mean return", f">last {last}", "return by episode"), rows)
    args.n_options = args.n_options or None
    print_end(files, _repeat("discover", args, *OPTION_FLAGS) + " --out out/")


def studio(args: Namespace) -> None:
    """Open the studio in the browser, or write it into a folder."""
    from eigenoptions.studio import serve_studio, write_studio

    if args.out is None:
        serve_studio(args.maze, port=args.port, open_browser=not args.no_browser)
    else:
        check_folder(args.out)
        print_line(f"wrote {write_studio(args.out, args.maze)}")


def _discover(args: Namespace, source: Any, default: int, progress: Any) -> Any:
    """Options by the method and settings of the arguments that were given."""
    from eigenoptions.discovery import discover
    from eigenoptions.discovery.method import get_method

    settings: dict[str, Any] = {
        "gamma": args.gamma,
        "rng": args.seed,
        "progress": progress,
    }
    for name in ("operator", "steps", "features"):
        if getattr(args, name, None) is not None:
            settings[name] = getattr(args, name)
    n_options = args.n_options
    # Some methods find out how many options there are.
    if n_options is None and get_method(args.method).n_options is not None:
        n_options = default
    return discover(source, n_options, args.method, **settings)


def _read_maze(args: Namespace) -> Any:
    """The MDP of a maze or of a finite environment."""
    from eigenoptions.discovery.discover import is_environment_id
    from eigenoptions.envs import from_env
    from eigenoptions.mdp import maze

    return (
        from_env(args.maze)
        if is_environment_id(args.maze)
        else maze(args.maze, rng=args.seed)
    )


def _read_state(mdp: Any, text: str | None, word: str) -> int | None:
    """The state of a cell ``ROW,COL``."""
    if text is None:
        return None
    cell = [int(part) for part in text.split(",") if part.isdecimal()]
    states = (
        []
        if mdp.coords is None
        else [s for s, at in enumerate(mdp.coords.tolist()) if at == cell]
    )
    if not states:
        raise ValueError(
            f"--{word} must be a free cell ROW,COL of the map, counted from 0, got {text!r}"
        )
    return states[0]


def _get_settings(options: Any) -> dict[str, Any]:
    """Simple settings of the provenance of options."""
    settings = {
        name: x
        for name, x in options.provenance.items()
        if isinstance(x, (str, int, float))
    }
    return {name: x for name, x in settings.items() if name not in ("mdp", "source")}


def _describe_option(option: Any) -> dict[str, Any]:
    """An option in plain JSON values; of many states where it terminates only the first are listed."""
    value = float(option.eigenvalue) if np.isfinite(option.eigenvalue) else None
    row = {
        "label": option.label,
        "eigenvalue": value,
        "sign": {1: "+", -1: "-"}.get(option.sign),
    }
    if not hasattr(option, "mdp"):
        return row
    terminations = np.flatnonzero(option.termination)
    states, coords = terminations[:1000].tolist(), option.mdp.coords
    return row | {
        "stops": None if coords is None else coords[states].tolist(),
        "stop_states": states,
        "n_stops": len(terminations),
        "mean_length": option.mean_length if np.isfinite(option.mean_length) else None,
        "start_share": float(option.initiation.mean()),
    }


def _make_heading(options: Any, settings: dict[str, Any]) -> str:
    """Name of the maze, and the settings of the options."""
    words = [
        f"{name} {settings[name]}"
        for name in ("method", "operator", "gamma")
        if settings.get(name)
    ]
    words.insert(0, f"{len(options)} option{'s' * (len(options) != 1)}")
    return f"{options.mdp.name or 'map'}: {options.n_states} states; {', '.join(words)}"


def _draw_option(options: Any, i: int) -> list[str]:
    """One glyph per state."""
    mdp = options.mdp
    moves = find_moves(mdp.coords, options.policy[i], mdp.most_likely_successors)
    return draw_arrows(options.policy[i], moves)


def _show_options(
    args: Namespace, options: Any, settings: dict[str, Any], files: list[Path]
) -> None:
    """Print options as JSON, or as maps and a table."""
    rows = [_describe_option(option) for option in options]
    settings = {**settings, **_get_settings(options)}
    mdp = getattr(options, "mdp", None)
    if args.as_json:
        name = getattr(args, "maze", "")
        head = (
            {"environment": name}
            if mdp is None
            else {"maze": mdp.name or name, "states": mdp.n_states}
        )
        print_json({**head, "settings": settings, "options": rows}, files)
        return
    if mdp is None:
        # In a feature space there are no states to list.
        print_paragraph(repr(options), "bold")
        print_table(
            ("option", ">eigenvalue"),
            [(row["label"], f"{row['eigenvalue']:.5g}") for row in rows],
        )
        return
    print_paragraph(_make_heading(options, settings), "bold")
    if mdp.coords is not None:
        _show_maps(options)
    cells = []
    for row in rows:
        places = (
            row["stop_states"]
            if row["stops"] is None
            else [tuple(place) for place in row["stops"]]
        )
        stops = " ".join(map(str, places[:3]))
        stops += f" +{row['n_stops'] - 3} more" if row["n_stops"] > 3 else ""
        value = "" if row["eigenvalue"] is None else f"{row['eigenvalue']:.5g}"
        length = (
            "never ends" if row["mean_length"] is None else f"{row['mean_length']:.2f}"
        )
        cells.append((row["label"], value, stops, length, f"{row['start_share']:.0%}"))
    heads = (
        "option",
        ">eigenvalue",
        "terminates at (row, column)",
        ">mean length",
        ">available in",
    )
    print_table(heads, cells)


def _show_maps(options: Any) -> None:
    """Print the first options as maps of arrows, if the maze fits into a terminal."""
    mdp, color, console = options.mdp, has_color(), Console(highlight=False)
    height, width = np.ptp(mdp.coords, axis=0) + 1
    if max(height, width) > MAX_SIDE:
        print_paragraph(
            "The maze is too large for the terminal; --out DIR writes pictures."
        )
        return
    blocks, glyphs, n_maps = [], set(), min(len(options), 32)
    for i in range(n_maps):
        potential = options.purposes[i].potential
        level = -options.value[i] if potential is None else potential
        level = level / (np.abs(level).max() or 1.0)
        arrows = _draw_option(options, i)
        glyphs.update(arrows)
        wide = color and 4 * (width + 2) + 2 <= console.width
        cells = draw_cells(mdp.coords, arrows, level, color=color, wide=wide)
        blocks.append(
            [options.labels[i], f"{options.mean_length[i]:.1f} steps", *cells]
        )
    console.print(set_side_by_side(blocks))
    notes = [
        f"the other {len(options) - n_maps} options are only in the table"
        if len(options) > n_maps
        else "",
        explain_glyphs(glyphs, mdp.legend),
        "options climb from blue to orange and terminate on red"
        if color
        else "● is where they terminate",
    ]
    print_paragraph("; ".join(filter(None, notes)))


def _list_cells(row: dict[str, Any], without: float) -> list[str | Text]:
    """Cells of the table of diffusion times, green where options help."""
    cells: list[str | Text] = [str(row["options"])]
    for steps in (row["uniform"], row["diffusion_time"]):
        share = np.inf if steps is None else steps / without
        words = (
            f"{share:.0%}"
            if share < 10
            else f"{share:,.0f} times"
            if share < 1e5
            else ""
        )
        color = "" if row["options"] == 0 else "green" if share < 1 else "red"
        number = (
            "" if steps is None else f"{steps:,.1f}" if steps < 1e9 else f"{steps:.4g}"
        )
        cells += [number, Text(words, style=color)]
    return [
        *cells,
        *(
            f"{row[key]:g}" if row["options"] else ""
            for key in ("option_chance", "stop_chance")
        ),
    ]


def _repeat(command: str, args: Namespace, *names: str) -> str:
    """A command with the same maze and those of the same flags that were given."""
    defaults = {"method": "eigen", "seed": 0, "stop_chance": 0}
    words = ["eigenoptions", command, quote(args.maze)]
    for name in names:
        value = getattr(args, name, None)
        if value is not None and value != defaults.get(name):
            words += [
                "-n" if name == "n_options" else f"--{name.replace('_', '-')}",
                quote(str(value)),
            ]
    return " ".join(words)


def _print_next(args: Namespace, files: list[Path]) -> None:
    """Suggest to look at the files, or to write them."""
    options_file = [file for file in files if file.suffix == ".safetensors"]
    if options_file:
        print_end(files, f"eigenoptions show {quote(str(options_file[0]))}")
    else:
        print_end(
            files,
            _repeat("discover", args, *OPTION_FLAGS, "steps", "features")
            + " --out out/",
        )


def _save_options(args: Namespace, options: Any) -> list[Path]:
    """Write the options, a figure of them and, for eigenoptions, one of the eigenvectors."""
    from eigenoptions.plots import plot_eigenvectors, plot_options, save_figure

    args.out.mkdir(parents=True, exist_ok=True)
    files = [args.out / "options.safetensors"]
    options.save(files[0])
    if getattr(options, "mdp", None) is None or options.mdp.coords is None:
        return files
    figures = {"options.svg": plot_options(options[:64])}
    numbers = [index for index in options.indices if index is not None]
    if (
        args.method == "eigen"
        and numbers
        and args.steps is None
        and args.features is None
    ):
        from eigenoptions.mdp import graph
        from eigenoptions.spectra import spectrum

        k = min(max(numbers), 9)
        eigenvectors = spectrum(graph(options.mdp), k, args.operator or "normalized")
        figures["eigenvectors.svg"] = plot_eigenvectors(options.mdp, eigenvectors)
    for name, figure in figures.items():
        save_figure(figure, args.out / name)
        files.append(args.out / name)
    return files


def _save(folder: Path, name: str, answer: dict[str, Any], figure: Any) -> list[Path]:
    """Write an answer as JSON, and its figure."""
    from eigenoptions.plots import save_figure

    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.json", folder / f"{name}.svg"]
    files[0].write_text(json.dumps(answer), encoding="utf-8")
    save_figure(figure, files[1])
    return files
