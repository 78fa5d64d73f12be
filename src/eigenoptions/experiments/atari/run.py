"""One game from its name to a folder of results: the study, its tables, pictures, clips, options and a page.

The folder is what the studio's Atari view reads (see docs/studio.md), and what the report links to.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from eigenoptions.atari import Start, atari_options, game_name, save_starts
from eigenoptions.experiments.atari import experiment
from eigenoptions.experiments.atari.gallery import cards, gallery, sheets
from eigenoptions.experiments.atari.jobs import PAPER, collection_of
from eigenoptions.experiments.experiment import Claim, Outcome, Settings
from eigenoptions.experiments.page import duration, origin, section, sheet, verdicts
from eigenoptions.experiments.store import Store
from eigenoptions.experiments.tables import tables
from eigenoptions.files import write_bytes
from eigenoptions.parallel import current, on_engine

INDEX = "index.json"  # of all games in a folder, for the studio
MADE = "settings.json"  # of one game
SIZE = {"quick": "--quick", "paper": "the default", "full": "--full"}


@dataclass(frozen=True)
class Shown:
    """What came of a game: claims, highlighted options, files, frames emulated and the seconds they took."""

    game: str
    claims: list[Claim]
    highlights: list[dict[str, Any]]
    files: list[Path]
    frames: int
    seconds: float


@on_engine("processes")
def show(
    game: str,
    folder: str | Path = "out/atari",
    size: str = "paper",
    *,
    fresh: bool = False,
    tell: Callable[[str], object] = lambda news: None,
    progress: Callable[[int, int], object] | None = None,
    speed: Callable[[float], object] = lambda frames: None,
) -> Shown:
    """Study a game and leave everything about it in a folder of its name; a killed run goes on.

    Parameters
    ----------
    game
        Its name, any of `atari.emulator.games`.
    folder
        Where the folder of the game is made.
    size
        ``"quick"``, ``"paper"`` or ``"full"``.
    fresh
        Start over; else a folder with results of another size is refused.
    tell, progress
        As in `reproduce`.
    speed
        Called with the frames of roll-outs that were emulated a second, as roll-outs arrive.

    Returns
    -------
    Shown
        What the command line tells.
    """
    name = game_name(game)
    here = Path(folder) / name.lower()
    study = experiment(name)
    settings = study.settings[size]
    _refuse_others(here, size, settings, fresh)
    start = time.perf_counter()
    with Store(here / "jobs", fresh=fresh) as store:
        write_bytes(here / MADE, json.dumps({"size": size, "settings": settings}, indent=1).encode())
        frames = 0

        def arrived(i: int, result: Any) -> None:
            nonlocal frames
            if isinstance(result, dict) and "acts" in result:
                frames += result["acts"]
                speed(frames / (time.perf_counter() - start))

        over = partial(store.pmap, progress=progress, arrived=arrived)
        tell(f"{name}: start states, collections, roll-outs")
        results = study.run(settings, over)
        seconds = time.perf_counter() - start + store.seconds_saved
    outcome = Outcome(study, settings, results, seconds, origin(current().name))
    tell(f"{name}: options")
    _keep_options(here, name, settings, results["reached"]["starts"])
    shown = gallery(results, here, tell)
    for table, text in tables(results).items():
        write_bytes(here / f"{table}.csv", text.encode())
    write_bytes(here / "rollouts.csv", _csv(results["columns"], results["rollouts"]))
    claims = study.claims(results)
    write_bytes(here / "index.html", _page(outcome, claims, shown).encode())
    _enter(Path(folder) / INDEX, shown)
    files = [here / "index.html", here / "options.safetensors", here / "starts.json"]
    return Shown(name, claims, results["highlights"], files, results["acts"], seconds)


def _refuse_others(here: Path, size: str, settings: Settings, fresh: bool) -> None:
    """Raise ValueError where a folder holds results of other settings, unless they are to go."""
    try:
        before = json.loads((here / MADE).read_text(encoding="utf-8"))
        same = before == {"size": size, "settings": json.loads(json.dumps(settings))}
    except FileNotFoundError:
        return
    except (ValueError, OSError) as error:
        raise ValueError(f"cannot read {here / MADE}: {error}; give another folder, or --fresh") from None
    if not same and not fresh:
        other = SIZE.get(before.get("size", ""), "other settings")
        raise ValueError(
            f"{here} holds results of other settings ({other}): give another folder with --out, or --fresh"
        )


def _keep_options(here: Path, name: str, settings: Settings, plain: Sequence[Mapping[str, Any]]) -> None:
    """Write the singular options of the first collection, and the start states, for use elsewhere."""
    first = settings["seeds"][0]
    job = {"game": name, "seed": first, "starts": plain, "variant": PAPER, "kinds": {"singular": {}}}
    found = collection_of({**settings, **job})
    assert found is not None
    options = atari_options(
        found.spectrum,
        name,
        coding=found.coding,
        provenance={"seed": first, "rows": found.rows},
    )
    options.save(here / "options.safetensors")
    save_starts(here / "starts.json", [Start.again(name, start) for start in plain])


def _csv(columns: Sequence[str], rows: np.ndarray[Any, Any]) -> bytes:
    lines = [",".join(columns), *(",".join(f"{x:.6g}" for x in row) for row in rows.tolist())]
    return ("\n".join(lines) + "\n").encode()


def _page(outcome: Outcome, claims: list[Claim], shown: Mapping[str, Any]) -> str:
    game = shown["name"]
    options = [{k: v.removeprefix(f"{game.lower()}/") for k, v in o.items()} for o in shown["options"]]
    body = f"""<header>
<h1>{escape(outcome.experiment.title)}</h1>
<p>Eigenoptions from the memory of an Atari game (Section 5.2 and Appendix E of <cite>A Laplacian Framework for Option
Discovery in Reinforcement Learning</cite>), by <code>eigenoptions atari {escape(game)}</code>.</p>
<p class="facts">{outcome.results["acts"]:,} frames emulated in <b>{duration(outcome.seconds)}</b>. Data:
<a href="rollouts.csv">rollouts.csv</a> (each option from each start), and one file a table. The options themselves:
<a href="options.safetensors">options.safetensors</a>.</p>
</header>
<main>
{verdicts([(outcome, claims)])}
<section><h2>Highlighted options</h2>
<p>Chosen by rule (see <code>highlight</code>), not by taste: options that settle somewhere, away from where they
started and from each other. Beside them stand the best option of the published program, the best single action and a
random walk.</p>
{cards(options)}</section>
<section><h2>All of them</h2>{sheets(shown["figures"])}</section>
{section(outcome, claims, data="")}
</main>"""
    return sheet(f"Eigenoptions of {game}", body)


def _enter(path: Path, shown: Mapping[str, Any]) -> None:
    """Put a game into the index that the studio reads."""
    entry = {"name": shown["name"], "options": shown["options"]}
    try:
        games = json.loads(path.read_text(encoding="utf-8"))["games"]
    except (FileNotFoundError, ValueError, KeyError):
        games = []
    games = sorted([g for g in games if g["name"] != entry["name"]] + [entry], key=lambda g: str(g["name"]))
    write_bytes(path, json.dumps({"format": 1, "games": games}, indent=1).encode())
