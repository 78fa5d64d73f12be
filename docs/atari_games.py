"""Does the way of `eigenoptions atari GAME` work in games that nobody had looked at? The table of docs/atari.md.

Ten games, named before any of them was run, with fewer starts, states and frames than the command takes (`SMALL`), so
that all of them fit into ten minutes of one core:

    python docs/atari_games.py                       # about 10 minutes, into out/atari_games/table.md
    python docs/atari_games.py --games Alien,Hero    # some of them
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from eigenoptions.experiments.atari import settings
from eigenoptions.experiments.atari.statistics import effect_of
from eigenoptions.experiments.atari.study import run
from eigenoptions.parallel import pmap

# fmt: off
GAMES = (
    "Alien", "BankHeist", "Frostbite", "Gravitar", "Hero", "Pitfall", "PrivateEye", "Qbert", "Tutankham", "Venture",
)
# fmt: on
MEASURES = ("arrives", "agreement", "reach")
# 1,512 decisions of random play, charts of 150 states, 160 frames from three starts, 20 random options.
SMALL: dict[str, Any] = {"starts": 3, "bursts": 60, "transitions": 4_200, "frames": 160}
STATES, RANDOM = 150, {"bases": 10, "many": 1}


def study(game: str) -> dict[str, Any]:
    """Effects of singular against random directions in one game, and what it took."""
    given = {**settings(game, "default"), **SMALL}
    given["way"] = {**given["way"], "plan": STATES}
    given["kinds"] = {"singular": given["kinds"]["singular"], "random": RANDOM}
    began = time.process_time()
    try:
        found = run(given, pmap)
    except ValueError as error:
        return {"game": game, "failed": str(error)}
    rows = [r for r in found["effects"] if r["against"] == "random" and r["measure"] in MEASURES]
    return {
        "game": game,
        "effects": {r["measure"]: {k: v for k, v in r.items() if k != "against"} for r in rows},
        "reliable": {r["kind"]: r["reliable"] for r in found["levels"]},
        "means": [r for r in found["means"] if r["kind"] in ("singular", "random")],
        "watch": found["reached"]["starts"][0]["watch"],
        "rank": [r["rank"] for r in found["collections"]],
        "seconds": time.process_time() - began,
    }


def line(row: dict[str, Any]) -> str:
    """One row of the table; what singular directions have more of, and less, is in bold and in italics."""
    if "failed" in row:
        return f"| {row['game']} | {row['failed']} | | | | |"
    cells = [f"{row['game']} ({', '.join(map(str, row['watch']))})"]
    for measure in MEASURES:
        of = effect_of(row["effects"][measure])
        digits = "{:.1%} / {:.1%}" if measure == "arrives" else "{:.2f} / {:.2f}"
        text = f"{digits.format(of.one, of.other)}: {of.difference}"
        cells.append(f"**{text}**" if of.better else f"*{text}*" if of.worse else text)
    cells.append(" / ".join(f"{row['reliable'][kind]:.1%}" for kind in ("singular", "random")))
    died = {r["kind"]: r["died"] for r in row["means"]}
    cells.append(" / ".join(f"{died[kind]:.0%}" for kind in ("singular", "random")))
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Run the games that have no results yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", default=",".join(GAMES))
    parser.add_argument("--out", type=Path, default=Path("out/atari_games"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    heads = "game (bytes) | arrive | agreement | places that as many options reach | reliable | lost a life"
    lines = [f"| {heads} |", "|" + "---|" * 6]
    for game in asked.games.split(","):
        path = asked.out / f"{game}.json"
        if not path.exists():
            path.write_text(json.dumps(study(game), indent=1))
        lines.append(line(json.loads(path.read_text())))
        print(lines[-1], flush=True)
    (asked.out / "table.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
