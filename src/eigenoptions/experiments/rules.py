"""When a statement counts as true. The numbers below were written down before the experiments were run.

Diffusion times are exact, so they are compared as they are. Learning is compared by the *mean return* of a
run: the share of its evaluation episodes, from the first to the last, that reach the goal (the area under the
learning curve: it says how fast an agent learns, where the final return says only that it has). One way of
learning is better than another when the 95% interval of the difference of their means over runs lies above
zero; the interval is Welch's, widened (Bonferroni) so that all intervals of one claim hold together.

What was not fixed beforehand is said in `LATER`, and on the page. The paper's words of degree mean:
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

LATER = (
    "Diffusion times of four rooms and the open room with some numbers of options were known from earlier "
    "measurements when the limits for them were set.",
    "The claims of Figures 1 to 5 and the first two of Theorem 3.1 come from earlier work, without such a "
    "record.",
    "Where eigenoptions may start: the first version of the test asked for the limit in all domains at once, "
    "for e2 to e4 and for the median option. It gave: does not hold. It was then made one test a domain, of "
    "the median, as the limit is worded.",
    "Every goal: the claim and its tests were written after a trial run had shown the averages over goals.",
    "All notes under Looking into it, and the two sections Looking closer, were made after the results were "
    "seen. What they give as reasons fits the numbers but was not tested by itself.",
)
CONFIDENCE = 0.95  # of all intervals of one claim together
FEW = 8  # options: both signs of the first four eigenvectors, as Figures 3 to 5 show them
FIRST = (2, 4)  # "the first options": numbers of options looked at
GREATLY = 0.5  # "greatly improved": at most this share of the diffusion time without options
SEVERAL = 1000.0  # "several orders of magnitude": at least this many times
NEARLY_ALL = 0.9  # "almost fully connected": at least this share of all options
ALMOST_ALL = 0.9  # "in almost all settings": at least this share of them
ROBUST = 0.8  # "fairly robust": with more than FEW options, at least this share of the best mean return
MAJOR = 2.0  # "a major impact": at least this factor, up or down
OFTEN = 0.9  # "often defined in the whole state space": the median option may start in this share of states
NEAR = 1  # steps from a doorway up to which a goal is near it
LAST = 0.1  # share of the episodes, the last ones, that tell whether a run has learned to reach the goal


@dataclass(frozen=True)
class Difference:
    """Difference of two means, with its interval.

    >>> print(Difference(0.25, 0.2, 0.3))
    +0.250 (+0.200 to +0.300)
    """

    mean: float
    low: float
    high: float

    @property
    def better(self) -> bool:
        """The first is better: all of the interval is above zero."""
        return self.low > 0

    @property
    def worse(self) -> bool:
        """The first is worse: all of the interval is below zero."""
        return self.high < 0

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


def difference(a: ArrayLike, b: ArrayLike, among: int = 1) -> Difference:
    """Mean of `a` minus mean of `b` with Welch's interval, one of `among` intervals of a claim.

    >>> difference([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).mean
    0.0
    >>> difference([1.0, 1.1, 0.9], [0.0, 0.1, -0.1], among=5).better
    True
    """
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if min(len(x), len(y)) < 2:
        raise ValueError(f"an interval needs at least 2 runs on both sides, got {len(x)} and {len(y)}")
    mean = float(x.mean() - y.mean())
    u, v = x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)
    if u + v == 0:  # all runs alike: nothing to be uncertain about
        return Difference(mean, mean, mean)
    freedom = (u + v) ** 2 / (u**2 / (len(x) - 1) + v**2 / (len(y) - 1))
    half = float(stdtrit(freedom, 1 - (1 - CONFIDENCE) / (2 * among)) * np.sqrt(u + v))
    return Difference(mean, mean - half, mean + half)
