"""Ways of following options in games, with the measures of docs/atari.md: where its tables of fresh seeds come from.

    python docs/atari_games.py                                # the default way in games that nobody had looked at
    python docs/atari_games.py --way fresh                    # the default way at its own size on fresh collections
    python docs/atari_games.py --way bytes --games MsPacman   # the paper's way with bytes instead of bits
    python docs/atari_games.py --way authors                  # the paper's way from the authors' starts, three games
    python docs/atari_games.py --way all                      # every game once, as small as possible: does it work?

Results go to out/atari_games, one file per way and game; a stopped run goes on where it was. The default way is run
with fewer starts, states and frames than the command takes (`SMALL`), so that ten games fit into half an hour of one
core, and on other seeds than those on which the way and these numbers were chosen.

What ``fresh`` decides was written down before it was run. The default was chosen for its agreement across starts in
the full run (seeds 1 to 3). In a game that is confirmed if on the seeds 21 to 23, with everything else as the command
has it, singular directions agree more than random ones (`Effect.better`: interval and every collection above zero), and
contradicted if the interval lies below the margin of 0.05; otherwise it is not decided. The verdict on both measures,
agreement and arrivals, is that of the claim in `experiments.atari.claims`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from eigenoptions.atari.emulator import games
from eigenoptions.parallel import run_jobs
from reproduction.atari import AUTHORS, BYTES, GAMES, PAPER, claims, experiment, run, settings
from reproduction.atari.statistics import effect_of
from reproduction.atari.study import run as run_study
from reproduction.tables import to_csv

# Named before any of them was run.
# fmt: off
TEN = (
    "Alien", "BankHeist", "Frostbite", "Gravitar", "Hero", "Pitfall", "PrivateEye", "Qbert", "Tutankham", "Venture",
)
# fmt: on
MEASURES = ("arrives", "agreement", "reach")
# Three collections with 1,512 decisions of random play each, 160 frames from three starts.
SMALL: dict[str, Any] = {
    "seeds": [11, 12, 13],
    "starts": 3,
    "bursts": 60,
    "transitions": 4_200,
    "frames": 160,
}
# Collections that nobody had looked at.
FRESH = [21, 22, 23]
# States of a chart: with 150, in a trial in Alien, no kind of direction agreed across starts.
STATES = 300
# 40 random options beside 24 singular ones.
RANDOM = {"bases": 5, "many": 4}
# The least that goes through all stages of the command.
LEAST: dict[str, Any] = {"seeds": [1], "starts": 2, "bursts": 10, "transitions": 300, "frames": 16}
LEAST_STATES = 10
LEAST_KINDS: dict[str, Any] = {
    "singular": {"many": 1, "end": "small"},
    "random": {"bases": 2, "many": 1},
    "walk": {"many": 1},
}


def asked(way: str, game: str) -> dict[str, Any]:
    """Settings of the study of one way in one game."""
    if way == "fresh":
        return {**settings(game, "default"), "seeds": FRESH}
    if way in ("default", "all"):
        sizes, states = (SMALL, STATES) if way == "default" else (LEAST, LEAST_STATES)
        given = {**settings(game, "default"), **sizes}
        given["kinds"] = {"singular": given["kinds"]["singular"], "random": RANDOM}
        given["kinds"] = given["kinds"] if way == "default" else LEAST_KINDS
        given["way"] = {**given["way"], **({"plan": states} if "plan" in given["way"] else {})}
        return given
    full = settings(game, "full")
    name = {"bytes": BYTES["name"], "authors": AUTHORS}[way]
    (variant,) = (dict(v) for v in full["variants"] if v["name"] == name)
    given = {**full, "variants": [], "long": []}
    given |= {"kinds": {**variant.pop("kinds"), "walk": {"many": 8}}, "frames": variant.pop("frames")}
    if way == "authors":
        # It is the paper's way, so that the paper's claims are judged; starts of our own are not needed.
        variant["name"] = PAPER["name"]
        given |= {"starts": 1, "bursts": 5}
    return {**given, "way": variant}


def study(way: str, game: str, path: Path) -> dict[str, Any]:
    """Effects of singular against random directions in one game, the verdicts, and what it took."""
    began = time.process_time()
    try:
        found = run_study(asked(way, game), run_jobs)
    except ValueError as error:
        return {"game": game, "failed": str(error)}
    rows = [r for r in found["effects"] if r["against"] == "random" and r["measure"] in MEASURES]
    rolled = [
        dict(zip(found["columns"], [f"{x:.6g}" for x in row], strict=True)) for row in found["rollouts"]
    ]
    path.with_suffix(".csv.gz").write_bytes(gzip.compress(to_csv(rolled).encode(), mtime=0))
    return {
        "game": game,
        "effects": {r["measure"]: {k: v for k, v in r.items() if k != "against"} for r in rows},
        "levels": found["levels"],
        "means": found["means"],
        "claims": [{"id": c.id, "verdict": str(c.verdict), "measured": c.measured} for c in claims(found)],
        "watch": found["reached"]["starts"][0]["watch"],
        "rank": [r["rank"] for r in found["collections"]],
        "seconds": time.process_time() - began,
    }


def attempt(game: str) -> dict[str, Any]:
    """Whether the command goes through all its stages in one game, pictures and page included."""
    began = time.process_time()
    small = replace(experiment(game), settings={"default": asked("all", game)})
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(run, "experiment", return_value=small):
        try:
            found = run.run_game(game, folder)
        except Exception as error:  # any failure is what is looked for
            return {"game": game, "failed": f"{type(error).__name__}: {error}"}
    return {
        "game": game,
        "highlights": len(found.highlights),
        "frames": found.frames,
        "seconds": time.process_time() - began,
    }


def line(row: dict[str, Any]) -> str:
    """One row of the table; what singular directions have more of, and less, is in bold and in italics."""
    if "failed" in row or "effects" not in row:
        return f"| {row['game']} | {row.get('failed', 'works')} |"
    cells = [f"{row['game']} ({', '.join(map(str, row['watch']))})"]
    for measure in MEASURES:
        of = effect_of(row["effects"][measure])
        digits = "{:.1%} / {:.1%}" if measure == "arrives" else "{:.2f} / {:.2f}"
        text = f"{digits.format(of.one, of.other)}: {of.difference}"
        cells.append(f"**{text}**" if of.better else f"*{text}*" if of.worse else text)
    for rows, name in ((row["levels"], "reliable"), (row["means"], "died")):
        of_kind = {r["kind"]: r[name] for r in rows}
        cells.append(" / ".join(f"{of_kind[kind]:.1%}" for kind in ("singular", "random")))
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Run the games that have no results yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--way", choices=("default", "fresh", "bytes", "authors", "all"), default="default")
    parser.add_argument("--games", default="")
    parser.add_argument("--out", type=Path, default=Path("out/atari_games"))
    given = parser.parse_args()
    usual = {"default": TEN, "all": games()}.get(given.way, GAMES)
    folder = given.out / given.way
    folder.mkdir(parents=True, exist_ok=True)
    heads = "game (bytes) | arrive | agreement | places that as many options reach | reliable | lost a life"
    lines = [f"| {heads} |", "|" + "---|" * 6]
    for game in given.games.split(",") if given.games else usual:
        path = folder / f"{game}.json"
        if not path.exists():
            found = attempt(game) if given.way == "all" else study(given.way, game, path)
            path.write_text(json.dumps(found, indent=1))
        lines.append(line(json.loads(path.read_text())))
        print(lines[-1], flush=True)
    (folder / "table.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
