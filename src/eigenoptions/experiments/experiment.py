"""What an experiment of the paper is: settings, a run, a figure of its results, and claims.

Results are plain: arrays, numbers, text, and tables as lists of rows (``{"column": value}``). A figure and
the claims are made from results alone, so results kept on disk are as good as new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Settings = Mapping[str, Any]
Results = dict[str, Any]
Pmap = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]  # a function over jobs; see `parallel.pmap`

HOLDS, PARTLY, FAILS = VERDICTS = ("holds", "partly", "does not hold")


@dataclass(frozen=True)
class Claim:
    """A statement of the paper beside what was measured.

    Attributes
    ----------
    sentence
        The paper's words, or close to them.
    section
        Where it is said.
    measured
        What came out here, in numbers.
    verdict
        ``"holds"``, ``"partly"`` or ``"does not hold"``; see `verdict`.
    evidence
        How it was measured, and what explains a difference.

    Examples
    --------
    >>> Claim("2 is even", "1", "2 mod 2 = 0", verdict(2 % 2 == 0), "division").verdict
    'holds'
    """

    sentence: str
    section: str
    measured: str
    verdict: str
    evidence: str

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict must be one of {', '.join(VERDICTS)}, got {self.verdict!r}")


@dataclass(frozen=True)
class Experiment:
    """A figure or statement of the paper as data.

    Attributes
    ----------
    name
        What the command line calls it.
    title
        For the report.
    section
        Of the paper.
    shows
        One sentence: what the paper's figure shows.
    settings
        ``"paper"`` (its own) and ``"quick"`` (for tests).
    run
        Settings to results; long work is given to the map over jobs it is called with.
    figure
        Results to a matplotlib Figure.
    claims
        Results to claims.
    notes
        Results to paragraphs: what was looked into, and what explains a difference.
    extra
        Part of the library that must be installed for it, as in ``pip install 'eigenoptions[atari]'``.
    """

    name: str
    title: str
    section: str
    shows: str
    settings: Mapping[str, Settings]
    run: Callable[[Settings, Pmap], Results]
    figure: Callable[[Results], Any]
    claims: Callable[[Results], list[Claim]]
    notes: Callable[[Results], list[str]] = lambda results: []
    extra: str = ""


def verdict(*tests: bool) -> str:
    """Say "holds" when all tests are passed, "partly" when some are, else "does not hold".

    >>> verdict(True, True), verdict(True, False), verdict(False)
    ('holds', 'partly', 'does not hold')
    """
    return HOLDS if all(tests) else PARTLY if any(tests) else FAILS
