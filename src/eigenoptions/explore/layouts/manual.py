"""Rules as text that reads like a manual."""

from __future__ import annotations

from collections.abc import Iterator

from eigenoptions.envs.families.windows import Code, Names
from eigenoptions.explore.layouts.changes import Change, find_rule
from eigenoptions.explore.layouts.counts import Counts, Tally

# Rules are listed apart for values of the cell that matter in more than this share of
# pairs.
_MATTERS = 0.1
# A condition names at most so many values.
_MAX_VALUES = 3

_PARTS = ("", "", "hand", "behind")
_OWNERS = ("", "hand ", "behind ")


def list_rules(counts: Counts, names: Names) -> Iterator[str]:
    """Yield one line per rule: action, kind of cell, conditions, what happens.

    Parameters
    ----------
    counts : Counts
        What followed each action in each context.
    names : Names
        Words of the family.
    """
    for (action, kind), tallies in sorted(counts.tallies.items()):
        subject = _name_subject(action, kind, names)
        groups = _group_tallies(counts, action, kind)
        for (changes, _), contexts in groups:
            others = [
                features
                for (changes_there, _), group in groups
                if changes_there != changes
                for features in group
            ]
            conditions = _find_conditions(counts, contexts, others, names)
            what = describe_changes(changes, names)
            n_fitting, n = _count_fitting(changes, [tallies[f] for f in contexts])
            yield f"{', '.join([subject, *conditions])}: {what} ({n_fitting} of {n})"


def _name_subject(action: int, kind: int, names: Names) -> str:
    """Name an action and what it is done to."""
    cell = names.name_value(0, kind)
    if action >= 0:
        return f"{names.name_action(action)}, {cell}"
    return f"arrive at {cell}"


def _group_tallies(
    counts: Counts, action: int, kind: int
) -> list[tuple[tuple[tuple[Change | None, ...], Code], list[Code]]]:
    """Return the contexts by rule and by what matters of the cell, most tried first."""
    tallies = counts.tallies[action, kind]
    cell = range(1, counts.things[0][1])
    matters = [i for i in cell if counts.share(action, kind, i) > _MATTERS]
    groups: dict[tuple[tuple[Change | None, ...], Code], list[Code]] = {}
    for features, tally in tallies.items():
        changes = tuple(map(find_rule, tally.parts))
        key = (changes, tuple(features[i] for i in matters))
        groups.setdefault(key, []).append(features)
    return sorted(
        groups.items(), key=lambda group: -sum(tallies[f].n for f in group[1])
    )


def _count_fitting(
    changes: tuple[Change | None, ...], tallies: list[Tally]
) -> tuple[int, int]:
    """Return how often all parts of a rule fitted, at least, and of how many."""
    n_fitting = 0
    for tally in tallies:
        pairs = zip(changes, tally.parts, strict=True)
        n_fitting += min(part[c] for c, part in pairs if c is not None)
    return n_fitting, sum(tally.n for tally in tallies)


def _find_conditions(
    counts: Counts, contexts: list[Code], others: list[Code], names: Names
) -> list[str]:
    """Say what sets the contexts of a rule apart from those of other rules.

    The feature that leaves the fewest others is named first, until none are left.
    """
    conditions = []
    features = list(range(1, len(contexts[0])))
    while others and features:
        left = {i: _keep_alike(i, contexts, others) for i in features}
        best = min(features, key=lambda i: len(left[i]))
        values = {context[best] for context in contexts}
        if len(left[best]) == len(others) or len(values) > _MAX_VALUES:
            break
        conditions.append(_name_feature(counts, best, values, names))
        features.remove(best)
        others = left[best]
    return conditions


def _keep_alike(feature: int, contexts: list[Code], others: list[Code]) -> list[Code]:
    """Return the others that a condition on a feature does not exclude."""
    values = {context[feature] for context in contexts}
    return [other for other in others if other[feature] in values]


def _name_feature(counts: Counts, feature: int, values: set[int], names: Names) -> str:
    """Return a condition in words: of the cell, the hand, or that both are equal."""
    for owner, (first, last) in zip(_OWNERS, counts.things, strict=False):
        if feature < last:
            channel = feature - first
            words = [names.name_value(channel, value) for value in sorted(values)]
            return owner + " or ".join(words)

    channel = feature - counts.things[-1][1] + 1
    is_equal = values == {1}
    if channel >= counts.things[0][1]:
        return "the named one" if is_equal else "another than the named one"
    which = "same" if is_equal else "another"
    return f"{which} {names.name_channel(channel)} as in hand"


def describe_changes(changes: tuple[Change | None, ...], names: Names) -> str:
    """Return what happens, in words."""
    if len(changes) == 1:
        change = changes[0]
        return "nothing is known" if change is None else change.how
    words = []
    moves = changes[0] is not None and changes[0].how == "moved"
    if moves:
        words.append("moves")
    for part, change in zip(_PARTS[1:], changes[1:], strict=False):
        text = _describe_change(change, part, names)
        # That the cell which is entered looks the same, or is hidden, says nothing.
        if text:
            words.append(text)
    return ", ".join(words) or "nothing happens"


def _describe_change(change: Change | None, part: str, names: Names) -> str:
    """Return what happens to a cell or the hand; empty: nothing."""
    owner = f"{part} " if part else ""
    if change is None or change.how == "same":
        return ""
    if change.how == "swap":
        source = "in front" if part else "in hand"
        return f"{owner}takes what was {source}"
    if change.how == "code":
        return f"{owner}becomes {names.name_value(0, change.values[0])}"

    texts = []
    channels = change.channels or range(len(change.values))
    for channel, value in zip(channels, change.values, strict=True):
        name = names.name_channel(channel)
        if change.how == "set":
            texts.append(f"{name} becomes {names.name_value(channel, value)}")
        elif value:
            texts.append(f"{name} grows by {value}")
    return owner + ", ".join(texts)
