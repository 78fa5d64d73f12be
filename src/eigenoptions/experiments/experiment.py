"""What an experiment is: settings, a run, a figure of its results, and claims.

Results are plain data: arrays, numbers, text, and tables as lists of rows (``{"column": value}``). Figures and claims
are functions of results alone, so results from disk serve as well as new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Settings = Mapping[str, Any]
Results = dict[str, Any]
# A function and its jobs to a list of results; see `parallel.pmap`.
Pmap = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

HOLDS, PARTLY, FAILS = VERDICTS = ("holds", "partly", "does not hold")


@dataclass(frozen=True)
class Claim:
    """A statement of the paper beside what was measured.

    Attributes
    ----------
    sentence, section
        The paper's words, or close to them, and where it makes the statement.
    measured, evidence
        The result here, in numbers; how it was measured, and what explains a difference.
    verdict
        ``"holds"``, ``"partly"`` or ``"does not hold"``; see `verdict`.

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
    name, title, section
        Name on the command line, heading in the report, and section of the paper.
    shows
        One sentence: what the paper's figure shows.
    settings
        ``"paper"`` (the paper's own) and ``"quick"`` (for tests).
    run
        Function of settings and a map over jobs that returns results; long work goes through the map.
    figure, claims, notes
        Functions of results: a matplotlib Figure, the claims, and paragraphs of further analysis.
    extra
        Extra that must be installed for it, as in ``pip install 'eigenoptions[atari]'``.
    order
        Position in the report: lower numbers come first.
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
    order: float = 1000


@dataclass(frozen=True)
class Outcome:
    """Results of an experiment with their settings, the seconds they took, and the machine (see `page.origin`)."""

    experiment: Experiment
    settings: Settings
    results: Results
    seconds: float
    origin: dict[str, Any] = field(default_factory=dict)


def verdict(*tests: bool) -> str:
    """Return "holds" if all tests are passed, "partly" if some are, else "does not hold".

    >>> verdict(True, True), verdict(True, False), verdict(False)
    ('holds', 'partly', 'does not hold')
    """
    return HOLDS if all(tests) else PARTLY if any(tests) else FAILS
