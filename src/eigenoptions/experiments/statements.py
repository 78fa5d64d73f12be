"""The paper's sentences, in order, each with the claims that judge it or why it cannot be checked.

They are data: ``statements.toml``. A sentence that makes a checkable statement is quoted; runs of sentences that make
none are summarised, with their number, so that the numbers of sentences per section add up to those of the paper.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Statement:
    """A sentence of the paper, or several.

    Attributes
    ----------
    section, text
        Where it stands, and its words; for sentences without a checkable statement what they are about.
    claims, why
        Names of the claims that judge it (see `Claim.id`), or why it cannot be checked.
    sentences
        How many sentences it stands for.

    Examples
    --------
    >>> Statement("3", "We define ...", why="a definition").sentences
    1
    """

    section: str
    text: str
    claims: tuple[str, ...] = ()
    why: str = ""
    sentences: int = 1


@cache
def statements() -> tuple[Statement, ...]:
    """All sentences of the paper, in order.

    >>> statements()[0].section
    'Abstract'
    """
    text = (files("eigenoptions.experiments") / "statements.toml").read_text(encoding="utf-8")
    return tuple(
        Statement(section["name"], **{**row, "claims": tuple(row.get("claims", ()))})
        for section in tomllib.loads(text)["section"]
        for row in section["statement"]
    )


def claim_order() -> list[str]:
    """Names of the claims in the order of the paper; its abstract and introduction, which sum up, come last.

    >>> claim_order()[0]
    'doorways-most-visited'
    """
    summing_up = ("Abstract", "1 Introduction")
    ordered = sorted(statements(), key=lambda s: s.section in summing_up)
    return list(dict.fromkeys(name for s in ordered for name in s.claims))
