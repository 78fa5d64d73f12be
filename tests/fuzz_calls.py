"""What the fuzzer calls: every public name with odd arguments, by noun in the modules beside this one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tests import fuzz_core, fuzz_envs, fuzz_faces, fuzz_features, fuzz_games, fuzz_plots

import eigenoptions as eo

ROOT = Path(__file__).parent.parent
CALLS = {**fuzz_core.CALLS, **fuzz_envs.CALLS, **fuzz_faces.CALLS, **fuzz_features.CALLS, **fuzz_plots.CALLS}
# Calls that take a tenth of a second and more: made in one of `RARELY` examples.
RARELY = 25
SLOW = {**fuzz_envs.SLOW, **fuzz_faces.SLOW, **fuzz_games.SLOW, **fuzz_plots.SLOW}

# Public names that hold no code of their own.
PLAIN = {"TERMINATE", "spectra.MAX_DENSE_STATES", "spectra.OPERATORS", "spectra.Operator"}
# Packages that list their names; those of the package itself, Atari's apart, are the same objects.
LISTED = ("atari", "deep", "envs", "envs.sb3", "evaluation", "spectra")
# Modules whose functions and classes are all public, unless their names begin with an underscore.
OPEN = ("features", "mdp.maps", "plots")


def public() -> Iterator[str]:
    """Public names: of the package, of the reference page, and of modules that people import."""
    yield from eo.__all__
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    yield from re.findall(r"auto(?:function|class):: eigenoptions\.([\w.]+)", page)
    for part in LISTED:
        for name in import_module(f"eigenoptions.{part}").__all__:
            yield name if name in eo.__all__ and part != "atari" else f"{part}.{name}"
    for part in OPEN:
        module = import_module(f"eigenoptions.{part}")
        for name, value in vars(module).items():
            own = getattr(value, "__module__", "").startswith(module.__name__)
            if own and name[0] != "_" and (inspect.isfunction(value) or inspect.isclass(value)):
                yield f"{part}.{name}"
