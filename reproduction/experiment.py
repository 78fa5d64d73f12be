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
# A function and its jobs to a list of results; see `parallel.run_jobs`.
Pmap = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

HOLDS, PARTLY, FAILS, UNDECIDED = VERDICTS = ("holds", "partly", "does not hold", "not decided")
PLURALS = {HOLDS: "hold", PARTLY: "hold partly", FAILS: "do not hold", UNDECIDED: "are not decided"}
# Section of claims that the paper does not make.
OURS = "ours"
# A paragraph, or a caption with the rows of a small table.
Note = str | tuple[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Claim:
    """A statement beside what was measured.

    Attributes
    ----------
    sentence, section
        The paper's words, or close to them, and where it makes the statement; the section is ``"ours"`` for statements
        that the paper does not make.
    measured, evidence
        The result here, in one line; how it was measured, and what explains a difference.
    verdict
        ``"holds"``, ``"partly"``, ``"does not hold"`` or ``"not decided"``; see `verdict`.
    id
        Name of the claim in ``statements.toml``, which maps the paper's sentences to claims.
    lesson
        One sentence: what to take away where the claim does not hold.
    rows
        A small table of the numbers behind the claim.

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
    id: str = ""
    lesson: str = ""
    rows: Sequence[Mapping[str, Any]] = ()

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
        Functions of results: a matplotlib Figure like the paper's own, the claims, and further analysis.
    closer
        Function of results to a second Figure, of our own analysis; the page folds it away.
    extra
        Extra that must be installed for it, as in ``pip install 'eigenoptions[atari]'``.
    order
        Position in the report: lower numbers come first.
    ours
        Whether the experiment goes beyond the paper.
    headline
        Function of results to a number for the top of the page, and its meaning.
    caption
        What the figure does not say itself.
    """

    name: str
    title: str
    section: str
    shows: str
    settings: Mapping[str, Settings]
    run: Callable[[Settings, Pmap], Results]
    figure: Callable[[Results], Any]
    claims: Callable[[Results], list[Claim]] = lambda results: []
    notes: Callable[[Results], Sequence[Note]] = lambda results: []
    extra: str = ""
    order: float = 1000
    closer: Callable[[Results], Any] | None = None
    ours: bool = False
    headline: Callable[[Results], tuple[str, str]] | None = None
    caption: str = ""


@dataclass(frozen=True)
class Outcome:
    """Results of an experiment with their settings, the seconds they took, and the machine (see `page.origin`)."""

    experiment: Experiment
    settings: Settings
    results: Results
    seconds: float
    origin: dict[str, Any] = field(default_factory=dict)


def sizes(paper: Settings, **quick: Any) -> dict[str, Settings]:
    """Settings of both sizes: the paper's, and what differs from them in the quick ones.

    >>> sizes({"runs": 100, "seed": 2017}, runs=4)["quick"]
    {'runs': 4, 'seed': 2017}
    """
    return {"paper": paper, "quick": {**paper, **quick}}


def verdict(*tests: bool | None) -> str:
    """Return "holds" if all tests are passed, "partly" if some are, else "does not hold".

    None is a test that the sample is too small to decide. The verdict is then "not decided", unless some other test is
    passed and some other one failed, so that it is "partly" in any case.

    >>> verdict(True, True), verdict(True, False), verdict(False)
    ('holds', 'partly', 'does not hold')
    >>> verdict(True, None), verdict(True, None, False)
    ('not decided', 'partly')
    """
    passed, failed = any(t for t in tests if t is not None), any(not t for t in tests if t is not None)
    if passed and failed:
        return PARTLY
    if not tests or any(t is None for t in tests):
        return UNDECIDED
    return HOLDS if passed else FAILS


def enough(tests: Sequence[bool | None], least: float) -> bool | None:
    """Whether at least so many tests are passed; None where that hangs on undecided ones.

    >>> enough([True, True, None], 2), enough([True, False, None], 2), enough([False, False, None], 2)
    (True, None, False)
    """
    passed, open_ = sum(t is True for t in tests), sum(t is None for t in tests)
    return True if passed >= least else False if passed + open_ < least else None


def counted(claims: Sequence[Claim]) -> str:
    """How many claims have each verdict, in words.

    >>> counted([Claim("a", "1", "b", "holds", "c"), Claim("d", "1", "e", "partly", "f")])
    '1 holds, 1 holds partly'
    """
    one = {HOLDS: "holds", PARTLY: "holds partly", FAILS: "does not hold", UNDECIDED: "is not decided"}
    counts = {v: sum(c.verdict == v for c in claims) for v in VERDICTS}
    return ", ".join(f"{n} {one[v] if n == 1 else PLURALS[v]}" for v, n in counts.items() if n) or "none"
