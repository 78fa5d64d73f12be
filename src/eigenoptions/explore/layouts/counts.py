"""What followed an action in the contexts that were tried, counted.

A *context* is what an action may depend on: the codes of the cell that it acts on and
of the hand, and which of their channels are equal. What is known of one context is used
in similar ones. Which features make contexts similar is counted, not written down: of
the pairs of contexts that differ in one feature alone, in how many did something else
follow? Such pairs are those of DOORmax (Diuk, Cohen and Littman, 2008), which drops a
condition once two states that differ in it have the same effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from eigenoptions.envs.families.windows import Code
from eigenoptions.explore.layouts.changes import Change, find_rule

# Descriptions of each part of what happened: what the agent did, the cell, the hand.
Parts: TypeAlias = list[list[Change]]

# The condition of pairs that need have nothing else in common.
_ALL = (-1, 0)
# A belief that nothing happens is tried again after so many episodes for each time that
# it was confirmed.
RETRY_AFTER = 50
# Contexts are pooled that are at most so many times as far as the nearest.
_ALIKE = 2.0
# A context that differs by more from all that were tried is worth a try.
UNTRIED = 0.3


class Context(NamedTuple):
    """What an action may depend on.

    Parameters
    ----------
    features : tuple of int
        The code of the cell, that of the hand, with ``reach=2`` that of the cell
        behind, and one flag per channel that says whether cell and hand are equal.
    things : tuple of (int, int)
        First and last feature (exclusive) of each thing: the cell, the hand, and the
        cell behind. The others are flags.
    """

    features: Code
    things: tuple[tuple[int, int], ...]

    @property
    def n_codes(self) -> int:
        """How many features are no flags."""
        return self.things[-1][1]

    @property
    def kind(self) -> int:
        """The kind of cell that is acted on."""
        return self.features[0]


def join_features(things: list[Code], flags: Code) -> Context:
    """Return the context of some things, the cell first, and of flags.

    >>> join_features([(4, 2), (5, 2)], flags=(1,))
    Context(features=(4, 2, 5, 2, 1), things=((0, 2), (2, 4)))
    """
    features: Code = ()
    borders = []
    for thing in things:
        borders.append((len(features), len(features) + len(thing)))
        features += thing
    return Context(features + flags, tuple(borders))


class Prediction(NamedTuple):
    """What is expected to follow.

    Parameters
    ----------
    changes : tuple of (Change or None), or None
        The rule of each part; None where nothing is known.
    distance : float
        How far the context is from any that was tried, in [0, 1].
    """

    changes: tuple[Change | None, ...] | None
    distance: float

    @property
    def is_untried(self) -> bool:
        """Whether the context is so far from all that were tried that it is news."""
        return self.distance > UNTRIED


@dataclass
class Tally:
    """What followed in one context.

    Parameters
    ----------
    parts : list of Counter
        How often each description fits, for each part of what happened.
    n : int
        How often the context was tried.
    last : int
        The episode in which it was tried last.
    """

    parts: list[Counter[Change]]
    n: int = 0
    last: int = 0

    def is_due(self, episode: int, after: int = RETRY_AFTER) -> bool:
        """Whether it is time to try again what was believed to be of no use."""
        return self.n > 0 and episode - self.last >= after * self.n


@dataclass
class Counts:
    """What followed each action in each context.

    Parameters
    ----------
    tallies : dict
        From an action and a kind of cell to the contexts tried, and what followed.
    pairs : dict
        From an action, a kind, a feature and a condition, another feature and its
        value, to how many pairs of contexts that differ in the feature alone had
        different effects, and how many were compared.
    things : tuple of (int, int)
        Which features of a context are those of which thing.
    """

    tallies: dict[tuple[int, int], dict[Code, Tally]] = field(default_factory=dict)
    pairs: dict[tuple[int, ...], tuple[int, int]] = field(default_factory=dict)
    things: tuple[tuple[int, int], ...] = ()
    # What was predicted since the last news, by action and kind.
    _known: dict[tuple[int, int], dict[Context, Prediction]] = field(
        default_factory=dict, repr=False
    )

    def count(self, action: int, context: Context, parts: Parts, episode: int) -> bool:
        """Count what followed.

        Return whether it is news, or was due to be tried again, which it is not any
        more.
        """
        prediction = self.predict(action, context)
        is_news = prediction.distance > 0 or contradicts(prediction, parts)

        self.things = context.things
        tallies = self.tallies.setdefault((action, context.kind), {})
        tally = tallies.get(context.features)
        if tally is None:
            tally = Tally([Counter() for _ in parts])
            tallies[context.features] = tally
        for counter, descriptions in zip(tally.parts, parts, strict=True):
            counter.update(descriptions)
        was_due = tally.is_due(episode)
        tally.n += 1
        tally.last = episode

        if is_news:
            self._known.pop((action, context.kind), None)
        if tally.n == 1:
            self._compare(action, context)
        return is_news or was_due

    def _compare(self, action: int, context: Context) -> None:
        """Compare a new context with all that differ from it in one feature alone."""
        tallies = self.tallies[action, context.kind]
        new = tallies[context.features]
        for features, tally in tallies.items():
            differing = find_differences(context, features)
            if len(differing) != 1:
                continue
            feature = differing[0]
            is_different = not _agree(tally, new)
            # A key matters at locked doors, and not at closed ones: so the pairs are
            # also counted for each value of what is acted on.
            for condition in _list_conditions(context, feature):
                key = (action, context.kind, feature, *condition)
                n_different, n_compared = self.pairs.get(key, (0, 0))
                self.pairs[key] = (n_different + is_different, n_compared + 1)

    def predict(self, action: int, context: Context) -> Prediction:
        """Return the rules of the nearest contexts, and how far they are."""
        known = self._known.setdefault((action, context.kind), {})
        prediction = known.get(context)
        if prediction is None:
            prediction = self._predict(action, context)
            known[context] = prediction
        return prediction

    def _predict(self, action: int, context: Context) -> Prediction:
        tallies = self.tallies.get((action, context.kind))
        if not tallies:
            return Prediction(None, 1.0)

        distances = dict(self._measure(action, context))
        nearest = min(distances.values())
        n_parts = len(next(iter(tallies.values())).parts)
        pooled: list[Counter[Change]] = [Counter() for _ in range(n_parts)]
        for features, distance in distances.items():
            if distance <= _ALIKE * nearest:
                for counter, part in zip(pooled, tallies[features].parts, strict=True):
                    counter.update(part)
        rules = [self._choose(tallies, i, part) for i, part in enumerate(pooled)]
        return Prediction(tuple(rules), nearest)

    def _choose(
        self, tallies: dict[Code, Tally], i: int, pooled: Counter[Change]
    ) -> Change | None:
        """Return the rule of a part of what happened.

        Of descriptions that fit equally often, it is the one that fits more often in
        all contexts: where nothing is swapped with nothing, "swapped" fits, too.
        """
        most = max(pooled.values(), default=0)
        fitting = [change for change in pooled if pooled[change] == most]
        if len(fitting) > 1:
            wider = Counter(
                {c: sum(t.parts[i][c] for t in tallies.values()) for c in fitting}
            )
            return find_rule(wider)
        return find_rule(pooled)

    def _measure(self, action: int, context: Context) -> Iterator[tuple[Code, float]]:
        """Yield each tried context and the chance that something else follows here."""
        importances: dict[int, float] = {}
        for features in self.tallies[action, context.kind]:
            chance_of_same = 1.0
            for i in find_differences(context, features):
                if i not in importances:
                    importances[i] = self.weigh(action, context, i)
                chance_of_same *= 1.0 - importances[i]
            yield features, 1.0 - chance_of_same

    def weigh(self, action: int, context: Context, feature: int) -> float:
        """Return how much a feature matters here: the share of pairs that differed.

        It is the highest among pairs that have one more value in common with the
        context. What was never compared may matter, so that it is tried: that keys open
        no closed doors says nothing about locked ones.
        """
        weight = 0.0
        for condition in _list_conditions(context, feature):
            key = (action, context.kind, feature, *condition)
            n_different, n_compared = self.pairs.get(key, (0, 0))
            weight = max(weight, (n_different + 0.5) / (n_compared + 1.0))
        return weight

    def share(self, action: int, kind: int, feature: int) -> float:
        """Return in which share of all pairs a feature made a difference."""
        key = (action, kind, feature, *_ALL)
        n_different, n_compared = self.pairs.get(key, (0, 0))
        return n_different / max(n_compared, 1)

    def find_tally(self, action: int, context: Context) -> Tally | None:
        """Return what followed in this very context; None where it was never tried."""
        return self.tallies.get((action, context.kind), {}).get(context.features)


def find_differences(context: Context, features: Code) -> list[int]:
    """Return the features that explain how another context differs.

    Where a thing is of another kind, its other channels say nothing; where a flag
    changed with a value, the flag explains more: "of the same colour", not "red".
    """
    n_codes = context.n_codes
    differing = []
    is_other_thing = False
    for first, last in context.things:
        changed = [i for i in range(first, last) if features[i] != context.features[i]]
        if changed and changed[0] == first:
            is_other_thing = True
            changed = changed[:1]
        differing += changed
    if is_other_thing:
        return differing
    flags = range(n_codes, len(features))
    changed_flags = [i for i in flags if features[i] != context.features[i]]
    if changed_flags and len(differing) <= 1:
        return changed_flags
    return differing + changed_flags


def _list_conditions(context: Context, feature: int) -> list[tuple[int, int]]:
    """Return what pairs are counted under: all, and values of the cell and the hand."""
    conditions = [_ALL]
    (_, n_cell), *others = context.things
    for i in [*range(1, n_cell), *(first for first, _ in others)]:
        if i != feature:
            conditions.append((i, context.features[i]))
    return conditions


def contradicts(prediction: Prediction, parts: Parts) -> bool:
    """Whether what happened is not what was predicted."""
    if prediction.changes is None:
        return False
    pairs = zip(prediction.changes, parts, strict=True)
    return any(parts and change not in parts for change, parts in pairs)


def _agree(first: Tally, second: Tally) -> bool:
    """Whether one description of each part fits most of what followed in both."""
    for one, two in zip(first.parts, second.parts, strict=True):
        if not one or not two:
            continue
        most_one = max(one.values())
        most_two = max(two.values())
        is_shared = any(
            2 * one[change] >= most_one and 2 * two[change] >= most_two
            for change in one
            if change in two
        )
        if not is_shared:
            return False
    return True
