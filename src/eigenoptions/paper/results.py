"""Results on disk: kept so that an interrupted reproduction goes on, and as tidy CSV for everybody else.

A file of results says which experiment, settings and code made it, and on which machine; results of other
settings or other code are made again. Written whole or not at all.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from eigenoptions import plots, storage
from eigenoptions.paper.experiment import Experiment, Results, Settings

FORMAT = 2
SHOWS = "eigenoptions.plots"  # code that shows results and does not make them


@dataclass(frozen=True)
class Outcome:
    """What came of an experiment: its results, under which settings, the seconds it took, and where."""

    experiment: Experiment
    settings: Settings
    results: Results
    seconds: float
    made: dict[str, Any] = field(default_factory=dict)


def keep(folder: Path, outcome: Outcome) -> None:
    """Write an outcome, and its tables as CSV, into a folder."""
    name = outcome.experiment.name
    arrays = {k: v for k, v in outcome.results.items() if isinstance(v, np.ndarray)}
    plain = {k: _plain(v) for k, v in outcome.results.items() if k not in arrays}
    header = {
        "kind": "results",
        "format": FORMAT,
        **_key(outcome.experiment, outcome.settings),
        "made": outcome.made,
        "plain": plain,
    }
    for table, rows in tables(outcome.results).items():
        plots.write(folder / f"{name}-{table}.csv", rows.encode())
    storage.write(folder / f"{name}.safetensors", header, {"seconds": np.array([outcome.seconds])}, arrays)


def kept(folder: Path, experiment: Experiment, settings: Settings) -> Outcome | None:
    """Read the outcome this code made under these settings, if it is there and whole."""
    path = folder / f"{experiment.name}.safetensors"
    try:
        header, arrays = storage.read(path, "results", FORMAT)
    except (OSError, ValueError):  # none, or damaged: make it again
        return None
    if any(header[k] != v for k, v in _key(experiment, settings).items()):
        return None
    seconds = float(arrays.pop("seconds")[0])
    return Outcome(experiment, settings, {**_back(header["plain"]), **arrays}, seconds, header["made"])


def tables(results: Results) -> dict[str, str]:
    r"""Tables among the results (lists of rows), each as the text of a CSV file.

    >>> tables({"lengths": [{"option": "e2+", "steps": 8.5}], "gamma": 0.9})
    {'lengths': 'option,steps\ne2+,8.5\n'}
    """
    texts = {}
    for name, rows in results.items():
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            text = io.StringIO()
            writer = csv.DictWriter(text, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            texts[name] = text.getvalue()
    return texts


def _key(experiment: Experiment, settings: Settings) -> dict[str, Any]:
    code = _code(experiment.run.__module__)
    return {"experiment": experiment.name, "settings": json.loads(json.dumps(settings)), "code": code}


@cache
def _code(module: str) -> str:
    """Hash of the code that makes the results of a module, and of the maps."""
    root = Path(str(files("eigenoptions")))
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted([*(_file(root, name) for name in makers(module)), *(root / "mazes").glob("*.txt")]):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def makers(module: str) -> set[str]:
    """Modules of the library that a module needs, itself among them; those that only show are left out.

    >>> sorted(makers("eigenoptions.paper.rules"))
    ['eigenoptions.paper.rules']
    """
    root = Path(str(files("eigenoptions")))
    todo, seen = [module], set[str]()
    while todo:
        name = todo.pop()
        if name not in seen and not name.startswith(SHOWS):
            seen.add(name)
            todo += _imports(_file(root, name))
    return seen


def _imports(path: Path) -> Iterator[str]:
    """Modules of the library that a file imports, also inside functions."""
    root = Path(str(files("eigenoptions")))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "eigenoptions":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if _file(root, inner).exists() else str(node.module)


def _file(root: Path, module: str) -> Path:
    """Where a module is, or would be."""
    path = root.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _plain(value: Any) -> Any:
    """Turn a value into strict JSON; a number that is not finite becomes ``{"float": "inf"}``."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    value = value.item() if isinstance(value, np.generic) else value
    return {"float": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


def _back(value: Any) -> Any:
    if isinstance(value, dict):
        return float(value["float"]) if value.keys() == {"float"} else {k: _back(v) for k, v in value.items()}
    return [_back(v) for v in value] if isinstance(value, list) else value
