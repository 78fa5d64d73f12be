"""How a change is described so that it holds elsewhere.

A door of one colour that opens, and one of another: as codes these are two changes, as
"the state becomes open" it is one. So every change is noted under all descriptions that
fit it. The one that fits most often is the rule, and of those that fit equally often
the most general.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from eigenoptions.envs.families.windows import Code


class Change(NamedTuple):
    """One description of what happened to a cell or to the hand.

    Parameters
    ----------
    how : str
        ``"same"``: nothing. ``"swap"``: it becomes what the other one was, as the hand
        becomes the key. ``"set"``: some channels get new values. ``"add"``: each
        channel grows by a number. ``"code"``: it becomes this very code.
        ``"moved"``, ``"stayed"``: what the agent did.
    values : tuple of int, default=()
        Of ``"set"`` the new value of each of `channels`; of ``"add"`` and ``"code"``
        one number per channel.
    channels : tuple of int, default=()
        Of ``"set"``: the channels that change.
    """

    how: str
    values: Code = ()
    channels: Code = ()


MOVED = Change("moved")
STAYED = Change("stayed")
SAME = Change("same")

# From the most general description to the least.
_GENERALITY = (
    "same",
    "moved",
    "stayed",
    "pays",
    "ends",
    "goes on",
    "swap",
    "set",
    "add",
    "code",
)
_RANK = {how: rank for rank, how in enumerate(_GENERALITY)}


def describe_change(new: Code, old: Code, other: Code) -> list[Change]:
    """Return all descriptions that fit a change.

    Parameters
    ----------
    new, old : tuple of int
        What a cell is now, and what it was.
    other : tuple of int
        What it may have been swapped with: the hand, or for the hand the cell.

    Examples
    --------
    >>> changes = describe_change((4, 2, 0), (4, 2, 1), (1, 0, 0))
    >>> [change.how for change in changes]
    ['set', 'add', 'code']
    """
    fitting = []
    if new == old:
        fitting.append(SAME)
    if new == other:
        fitting.append(Change("swap"))
    is_comparable = new != old and len(new) == len(old)
    if is_comparable and new[0] == old[0]:
        channels = tuple(i for i, value in enumerate(new) if value != old[i])
        values = tuple(new[i] for i in channels)
        fitting.append(Change("set", values, channels))
    if is_comparable:
        growth = tuple(n - o for n, o in zip(new, old, strict=True))
        fitting.append(Change("add", growth))
    fitting.append(Change("code", new))
    return fitting


def apply_change(change: Change | None, old: Code, other: Code) -> Code:
    """Return what a cell or the hand becomes.

    >>> apply_change(Change("set", (0,), (2,)), (4, 5, 1), (1, 0, 0))
    (4, 5, 0)
    """
    if change is None or change.how == "same":
        return old
    if change.how == "swap":
        return other
    if change.how == "code":
        return change.values
    if change.how == "add":
        return tuple(o + d for o, d in zip(old, change.values, strict=True))
    new = list(old)
    for channel, value in zip(change.channels, change.values, strict=True):
        new[channel] = value
    return tuple(new)


def find_rule(counter: Counter[Change]) -> Change | None:
    """Return the description that fits most often; of equals the most general."""
    if not counter:
        return None
    return max(counter, key=lambda change: (counter[change], -_RANK[change.how]))
