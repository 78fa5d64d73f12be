"""Draw the first options of every method for docs/methods.md: `python docs/method_pictures.py`.

Most are shown on four rooms; methods that need rewards on the domain with a costly room, and `neo`, which follows the
direction of moves, on the one with one-way doors.
"""

from __future__ import annotations

from pathlib import Path

import eigenoptions as eo
from eigenoptions.discovery.methods import method
from eigenoptions.experiments.arena.domains import build
from eigenoptions.experiments.arena.pictures import option_strip

FOLDER = Path(__file__).parent / "images" / "methods"
DOMAINS = {"neo": "one-way"}


def picture(name: str) -> str:
    """SVG of the first four options of a method."""
    mdp = build(DOMAINS.get(name, "costly" if method(name).needs_rewards else "four-rooms"))
    return option_strip(mdp, eo.discover(mdp, 4, name))


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in eo.methods():
        (FOLDER / f"{name}.svg").write_text(picture(name), encoding="utf-8")
