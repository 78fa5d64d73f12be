"""What one example of the fuzzer holds, and objects that several calls need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions.features import Raw
from eigenoptions.options.walks import endless

LINE = "S..G"


@dataclass
class Given:
    """What one example holds: a sparse array, mostly invalid; two arguments of any kind; a seed; a folder."""

    bad: csr_array
    a: Any
    b: Any
    seed: int
    folder: Path

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.rng = rng
        self.line = eo.maze(LINE)
        self.options = eo.discover(self.line, 2)
        # Numbers of any kind, as the bad array holds them.
        self.values = np.array(self.bad.data.imag if self.bad.data.dtype.kind == "c" else self.bad.data)
        # A right table of random moves in which every state reaches every other, and options that end.
        n, actions = int(rng.integers(2, 7)), int(rng.integers(1, 4))
        moves = rng.integers(n, size=(n, actions))
        moves[:, 0] = (np.arange(n) + 1) % n
        table = csr_array(
            (np.ones(n * actions), moves.ravel(), np.arange(n * actions + 1)), shape=(n * actions, n)
        )
        self.mdp = eo.MDP(table, start=0, goal=n - 1)
        policy = rng.integers(-1, actions, size=(int(rng.integers(1, 4)), n)).astype(np.int32)
        for row in policy:
            while len(lost := endless(self.mdp, row)):
                row[lost[0]] = -1
        self.skills = eo.OptionSet(policy, actions)
        if not (self.folder / "options.safetensors").exists():
            self.options.save(self.folder / "options.safetensors")

    def count(self, most: int = 3) -> Any:
        """The first argument, unless it would take long."""
        return most if isinstance(self.a, int) and self.a > most else self.a

    def few(self, most: int) -> Any:
        """The second argument, unless it would take long."""
        return most if isinstance(self.b, int) and self.b > most else self.b


# Calls by public name, without "eigenoptions."; each may return, or raise a ValueError or a TypeError.
Calls = dict[str, list[Callable[[Given], object]]]


def spectrum_of(x: Given) -> eo.Spectrum:
    return eo.spectrum(eo.graph(x.mdp))


def transitions_of(x: Given) -> eo.Transitions:
    return eo.Transitions(x.values, x.bad.indices, x.values[::-1], np.zeros(len(x.values), bool))


def rows_of(x: Given, **changes: Any) -> eo.LinearOptionSet:
    return eo.LinearOptionSet(**{"direction": [[1.0]], "features": Raw(), "n_actions": 2, **changes})


def looked_up(options: Any, key: Any) -> object:
    """An entry of a sequence: what it does not have is an IndexError or a KeyError, as in Python."""
    try:
        return options[key]
    except LookupError:
        return None


def streamed(before: Any, after: Any) -> eo.Gram:
    gram = eo.Gram()
    gram.add(before, after)
    return gram


def entered(context: Any) -> object:
    with context as value:
        return value
