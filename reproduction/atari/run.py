"""One game from its name to a folder of results: the study, its tables, pictures, clips, options and a page.

The studio's Atari view reads the folder (see docs/studio.md), and the report links to it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from eigenoptions.atari import Start, atari_options, game_name, save_starts
from eigenoptions.files import write_bytes
from eigenoptions.parallel import current_engine
from reproduction.atari import experiment
from reproduction.atari.jobs import PAPER, collection_of
from reproduction.atari.pictures import card_list, draw_highlights, overviews
from reproduction.experiment import Claim, Outcome, Settings
from reproduction.page import duration, origin, section, sheet, verdicts
from reproduction.store import Store, refuse_other_content
from reproduction.tables import tables, to_csv

# Index of all games in a folder, for the studio.
INDEX = "index.json"
# Settings of one game.
SETTINGS = "settings.json"
# Flags of the command line by size.
FLAGS = {"quick": "--quick", "default": "the default", "paper": "--paper", "full": "--full"}

# What the functions of `jobs` do, in words.
STAGES = {"starts": "start states", "rollouts": "collections and roll-outs", "trace": "highlighted options"}


@dataclass(frozen=True)
class GameReport:
    """Results of a game: claims, highlighted options, files, frames emulated and the seconds they took."""

    game: str
    claims: list[Claim]
    highlights: list[dict[str, Any]]
    files: list[Path]
    frames: int
    seconds: float


def run_game(
    game: str,
    folder: str | Path = "out/atari",
    size: str = "default",
    *,
    fresh: bool = False,
    tell: Callable[[str], object] = lambda news: None,
    progress: Callable[[int, int], object] | None = None,
    speed: Callable[[float], object] = lambda frames: None,
) -> GameReport:
    """Study a game and write all results into a folder of its name; a killed run can be continued.

    Parameters
    ----------
    game, folder
        Name of the game, any of `atari.emulator.games`, and the folder in which that of the game is created.
    size
        ``"default"``: the way that works best (docs/atari.md); ``"paper"``: the paper's; ``"full"``; ``"quick"``.
    fresh
        Start over; otherwise a folder with results of other settings is refused.
    tell, progress
        As in `reproduce`.
    speed
        Called with the frames of roll-outs emulated per second, as roll-outs arrive.
    """
    name = game_name(game)
    here = Path(folder) / name.lower()
    chosen = experiment(name)
    settings = chosen.settings[size]
    _refuse_strangers(Path(folder) / INDEX, here)
    _refuse_others(here, size, settings, fresh)
    start = time.perf_counter()
    with Store(here / "jobs", fresh=fresh) as store:
        write_bytes(here / SETTINGS, json.dumps({"size": size, "settings": settings}, indent=1).encode())
        frames = 0

        def arrived(i: int, result: Any) -> None:
            nonlocal frames
            if isinstance(result, dict) and "acts" in result:
                frames += result["acts"]
                speed(frames / (time.perf_counter() - start))

        def over(function: Callable[[Any], Any], jobs: Sequence[Any]) -> list[Any]:
            tell(f"{name}: {STAGES[function.__name__]}")
            return store.pmap(function, jobs, progress=progress, arrived=arrived)

        results = chosen.run(settings, over)
        seconds = time.perf_counter() - start + store.seconds_saved
    outcome = Outcome(chosen, settings, results, seconds, origin(current_engine().name))
    tell(f"{name}: options")
    _save_options(here, name, settings, results["reached"]["starts"])
    drawn = draw_highlights(results, here, tell)
    for table, text in tables(results).items():
        write_bytes(here / f"{table}.csv", text.encode())
    columns = results["columns"]
    rows = [dict(zip(columns, [f"{x:.6g}" for x in row], strict=True)) for row in results["rollouts"]]
    write_bytes(here / "rollouts.csv", to_csv(rows).encode())
    claims = chosen.claims(results)
    write_bytes(here / "index.html", _page(outcome, claims, drawn).encode())
    _add_to_index(Path(folder) / INDEX, drawn)
    files = [here / "index.html", here / "options.safetensors", here / "starts.json"]
    return GameReport(name, claims, results["highlights"], files, results["acts"], seconds)


def _refuse_strangers(index: Path, here: Path) -> None:
    """Raise FileExistsError where writing results would overwrite files that no run of a game wrote."""
    for path, keys in ((index, {"format", "games"}), (here / SETTINGS, {"size", "settings"})):
        if path.exists() and not keys <= set(_object(path)):
            raise FileExistsError(f"{path} is not of a run of a game: give a new or empty folder with --out")
    # A run that was stopped at its beginning has stored jobs, and no settings yet.
    refuse_other_content(here, "results of a game", SETTINGS, "jobs")


def _object(path: Path) -> dict[str, Any]:
    """The JSON object of a file, empty where it holds none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _refuse_others(here: Path, size: str, settings: Settings, fresh: bool) -> None:
    """Raise ValueError where a folder holds results of other settings, unless they are to be replaced."""
    before = _object(here / SETTINGS)
    same = before == {"size": size, "settings": json.loads(json.dumps(settings))}
    if before and not same and not fresh:
        other = FLAGS.get(str(before["size"]), "other settings")
        raise ValueError(
            f"{here} holds results of other settings ({other}): give another folder with --out, or --fresh"
        )


def _save_options(here: Path, name: str, settings: Settings, plain: Sequence[Mapping[str, Any]]) -> None:
    """Write the singular options of the first collection and variant, and the start states, for use elsewhere."""
    first, variant = settings["seeds"][0], settings.get("way", PAPER)
    job = {"game": name, "seed": first, "starts": plain, "variant": variant, "kinds": {"singular": {}}}
    found = collection_of({**settings, **job})
    assert found is not None
    provenance = {"seed": first, "rows": found.rows, "hold": variant["hold"]}
    options = atari_options(found.spectrum, name, coding=found.coding, provenance=provenance)
    options.save(here / "options.safetensors")
    save_starts(here / "starts.json", [Start.again(name, start) for start in plain])


def _page(outcome: Outcome, claims: list[Claim], drawn: Mapping[str, Any]) -> str:
    game = drawn["name"]
    options = [{k: v.removeprefix(f"{game.lower()}/") for k, v in o.items()} for o in drawn["options"]]
    body = f"""<header>
<h1>{escape(outcome.experiment.title)}</h1>
<p>Eigenoptions from the memory of an Atari game (Section 5.2 and Appendix E of <cite>A Laplacian Framework for Option
Discovery in Reinforcement Learning</cite>), by <code>eigenoptions atari {escape(game)}</code>.</p>
<p class="facts">{outcome.results["acts"]:,} frames emulated in <b>{duration(outcome.seconds)}</b>. Data:
<a href="rollouts.csv">rollouts.csv</a> (each option from each start), and one file per table. The options themselves:
<a href="options.safetensors">options.safetensors</a>.</p>
</header>
<main>
{verdicts([(outcome, claims)])}
<section><h2>Highlighted options</h2>
<p>Chosen by a rule (see <code>highlight</code>): options that settle somewhere, away from where they started and from
each other. Beside them are baselines: the best single action, a random walk, and in the paper's way the best option
of the published program.</p>
{card_list(options)}</section>
<section><h2>All of them</h2>{overviews(drawn["figures"])}</section>
{section(outcome, claims, data="")}
</main>"""
    return sheet(f"Eigenoptions of {game}", body)


def _add_to_index(path: Path, drawn: Mapping[str, Any]) -> None:
    """Add a game to the index that the studio reads."""
    entry = {"name": drawn["name"], "options": drawn["options"]}
    others = [game for game in _object(path).get("games", []) if game["name"] != entry["name"]]
    games = sorted([*others, entry], key=lambda game: str(game["name"]))
    write_bytes(path, json.dumps({"format": 1, "games": games}, indent=1).encode())
