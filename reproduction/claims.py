"""Claims: a sentence of the paper, and the function that finds what the data say.

A claim is a function of the tables of its experiment, with the sentence above it::

    @claim("walls", "When an action that would have taken the agent into a wall ...")
    def stay_before_walls(data: Data) -> Finding:
        domains = data["domains"]
        return Finding(
            tests=[(domains.of_these_stay == domains.moves_into_walls).all()],
            measured=list_rows("{domain}: {of_these_stay} of ...", domains),
            evidence="Every action of every state whose target is a wall ...",
        )

A finding may have `readings`: the same tests under other readings of the paper (see
`readings`). The claim is on the edge where one of them gives another verdict.

A `demonstration` shows what a sentence means where no result could contradict it. It is
no claim, and has no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from reproduction.lab import Data
from reproduction.readings import LAXER, MAIN, OURS, READINGS, STRICTER
from reproduction.thresholds import MOVED

VERDICTS = ("holds", "partly", "does not hold", "not decided")

# Whether each test is passed; None where the sample is too small to decide.
Tests = Sequence[bool | None]


def judge_tests(tests: Tests) -> str:
    """Whether all tests are passed, some or none, or whether that is open.

    >>> [judge_tests(tests) for tests in ([True], [True, False], [False], [True, None])]
    ['holds', 'partly', 'does not hold', 'not decided']
    """
    decided = [test for test in tests if test is not None]
    some_pass = any(decided)
    some_fail = not all(decided)

    if some_pass and some_fail:
        return "partly"
    if len(decided) < len(tests) or not decided:
        return "not decided"
    if some_pass:
        return "holds"
    return "does not hold"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What the data say about a claim.

    Attributes
    ----------
    tests : sequence of bool or None
        Whether each test is passed, under the main reading; None where the sample is
        too small to decide.
    measured : str
        The result in one line.
    evidence : str, default=""
        How it was measured, and what explains a difference.
    lesson : str, default=""
        One sentence for readers if the claim does not hold.
    readings : mapping, default={}
        The tests under other readings of the paper, by the names of `READINGS`.
    table : DataFrame, optional
        The numbers behind the result.
    replays : str, default=""
        The stored files that the main verdict comes from; empty if it is computed.

    Examples
    --------
    >>> steps = {"main": 24.5, "k + 1 steps": 27.4}
    >>> finding = Finding(
    ...     tests=[steps["main"] < 25],
    ...     readings={"k + 1 steps": [steps["k + 1 steps"] < 25]},
    ...     measured="24.5 steps",
    ... )
    >>> finding.verdict, finding.edge
    ('holds', True)
    >>> finding.verdicts
    {'main': 'holds', 'k + 1 steps': 'does not hold'}
    """

    tests: Tests
    measured: str
    evidence: str = ""
    lesson: str = ""
    readings: Mapping[str, Tests] = field(default_factory=dict)
    table: pd.DataFrame | None = None
    replays: str = ""

    def __post_init__(self) -> None:
        for name in self.readings:
            if name not in READINGS or name == MAIN:
                raise ValueError(
                    f"no other reading is called {name!r}: add it to "
                    "reproduction/readings.py"
                )

    @property
    def verdict(self) -> str:
        """The verdict under the main reading."""
        return judge_tests(self.tests)

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdict under each reading that applies, the main one first."""
        others = {name: judge_tests(tests) for name, tests in self.readings.items()}
        return {MAIN: self.verdict, **others}

    @property
    def turns(self) -> dict[str, str]:
        """The readings that give another verdict than the main one, with theirs."""
        return {
            name: verdict
            for name, verdict in self.verdicts.items()
            if verdict != self.verdict
        }

    @property
    def opens(self) -> dict[str, str]:
        """Those of `turns` that are choices that the paper leaves open."""
        return {
            name: verdict for name, verdict in self.turns.items() if name not in OURS
        }

    @property
    def edge(self) -> bool:
        """Whether some reading gives another verdict than the main one."""
        return bool(self.turns)


@dataclass(frozen=True, kw_only=True)
class Claim(Finding):
    """A sentence beside what was found about it.

    Attributes
    ----------
    id : str
        The name of the claim.
    sentence : str
        The paper's words, or close to them.
    section : str
        The place in the paper (``"4.2"``, ``"Appendix D"``), or ``"ours"`` for a
        statement that the paper does not make.
    title : str, default=""
        A few words; those of the id by default.
    is_demonstration : bool, default=False
        Whether no result could contradict the sentence, so that it has no verdict.
    """

    id: str
    sentence: str
    section: str
    title: str = ""
    is_demonstration: bool = False


@dataclass(frozen=True)
class Statement:
    """A sentence of the paper and the function that judges it; see `claim`."""

    id: str
    sentence: str
    section: str
    find: Callable[[Data], Finding]
    is_demonstration: bool = False

    def judge(self, data: Data, section: str) -> Claim:
        """The claim as the data decide it; `section` is that of its experiment."""
        return make_claim(
            self.find(data),
            id=self.id,
            sentence=self.sentence,
            section=self.section or section,
            is_demonstration=self.is_demonstration,
        )


def claim(
    id: str, sentence: str, *, section: str = ""
) -> Callable[[Callable[[Data], Finding]], Statement]:
    """Make a function the judge of a sentence of the paper.

    Parameters
    ----------
    id : str
        The name of the claim.
    sentence : str
        The paper's words, or close to them.
    section : str, default=""
        The place in the paper; by default that of the experiment.

    Examples
    --------
    >>> @claim("two-rows", "The table has two rows.")
    ... def has_two_rows(data):
    ...     n_rows = len(data["table"])
    ...     return Finding(tests=[n_rows == 2], measured=f"{n_rows} rows")
    >>> has_two_rows.judge({"table": pd.DataFrame({"x": [1, 2]})}, "4.3").verdict
    'holds'
    """

    def register(find: Callable[[Data], Finding]) -> Statement:
        return Statement(id, sentence, section, find)

    return register


def demonstration(
    id: str, sentence: str, *, section: str = ""
) -> Callable[[Callable[[Data], Finding]], Statement]:
    """Make a function show a sentence that no result could contradict.

    The arguments are those of `claim`. The sentence is true by construction, or follows
    from definitions in one line; the report shows it, and does not count it.

    Examples
    --------
    >>> @demonstration("rows-sum-to-one", "Probabilities sum to 1.")
    ... def sum_to_one(data):
    ...     return Finding(tests=[True], measured="largest difference 0")
    >>> sum_to_one.judge({}, "4.3").is_demonstration
    True
    """

    def register(find: Callable[[Data], Finding]) -> Statement:
        return Statement(id, sentence, section, find, is_demonstration=True)

    return register


def make_claim(
    finding: Finding,
    *,
    id: str,
    sentence: str,
    section: str,
    title: str = "",
    is_demonstration: bool = False,
) -> Claim:
    """Put a sentence beside what was found about it."""
    return Claim(
        id=id,
        sentence=sentence,
        section=section,
        title=title,
        is_demonstration=is_demonstration,
        tests=finding.tests,
        measured=finding.measured,
        evidence=finding.evidence,
        lesson=finding.lesson,
        readings=finding.readings,
        table=finding.table,
        replays=finding.replays,
    )


def count_verdicts(claims: Sequence[Finding]) -> str:
    """How many claims have each verdict, as text.

    >>> upheld = Finding(tests=[True], measured="")
    >>> upheld_in_part = Finding(tests=[True, False], measured="")
    >>> count_verdicts([upheld, upheld_in_part])
    'holds 1, partly 1'
    """
    counts = []
    for verdict in VERDICTS:
        n = sum(claim.verdict == verdict for claim in claims)
        if n:
            counts.append(f"{verdict} {n}")
    return ", ".join(counts) or "none"


def at_least(tests: Iterable[bool | None], count: float) -> bool | None:
    """Whether at least `count` tests are passed; None if undecided ones decide it.

    >>> at_least([True, True, None], 2)
    True
    >>> at_least([True, False, None], 2) is None
    True
    >>> at_least([False, False, None], 2)
    False
    """
    results = list(tests)
    n_passed = sum(test is True for test in results)
    n_undecided = sum(test is None for test in results)

    if n_passed >= count:
        return True
    if n_passed + n_undecided < count:
        return False
    return None


def move_limit(name: str, judge: Callable[[float], Tests]) -> dict[str, Tests]:
    """The tests under a stricter and a laxer limit for a word of degree.

    >>> move_limit("ROBUST", lambda share: [0.85 >= share])
    {'stricter limit': [False], 'laxer limit': [True]}
    """
    stricter, laxer = MOVED[name]
    return {STRICTER: judge(stricter), LAXER: judge(laxer)}


def list_rows(form: str, table: pd.DataFrame) -> str:
    """The rows of a table as text.

    Parameters
    ----------
    form : str
        Text of a row, with names of columns or of the index in braces.
    table : DataFrame
        The table.

    Examples
    --------
    >>> table = pd.DataFrame({"domain": ["maze", "room"], "share": [0.25, 1.0]})
    >>> list_rows("{domain} {share:.0%}", table)
    'maze 25%, room 100%'
    """
    rows = table.reset_index().to_dict("records")
    return ", ".join(form.format(**row) for row in rows)


def list_items(form: str, items: Mapping[Any, Any] | pd.Series) -> str:
    """The keys and values of a mapping as text.

    >>> list_items("{} {:.0%}", {"maze": 0.25, "room": 1.0})
    'maze 25%, room 100%'
    """
    return ", ".join(form.format(key, value) for key, value in items.items())
