"""When a claim counts as true: the meaning of words of degree, and intervals of differences.

The limits were written down before the experiments were run; what was not fixed beforehand is listed in `LATER`, and in
the report.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

# Of all intervals of one claim together.
CONFIDENCE = 0.95
# The paper's words of degree, explained in `WORDS`. FEW are both signs of the four eigenvectors of Figures 3 to 5.
FEW = 8
FIRST = (2, 4)
GREATLY = 0.5
SEVERAL = 1000.0
NEARLY_ALL = 0.9
ALMOST_ALL = 0.9
ROBUST = 0.8
MAJOR = 2.0
OFTEN = 0.9
NEAR = 1
# Share of the episodes, the last ones, that decide whether a run has learned to reach the goal.
LAST = 0.1

RULES = (
    "Diffusion times are exact, so they are compared as they are. Learning is compared by the mean return of "
    "a run: the share of its evaluation episodes, from the first to the last, that reach the goal (the area "
    "under the learning curve: it measures how fast an agent learns, whereas the final return shows only "
    "that it has learned). One way of learning is better than another when the 95% interval of the "
    "difference of their means over runs lies above zero. The interval is Welch's, widened (Bonferroni) so "
    "that all intervals of one claim hold together."
)
WORDS = {
    "a few options": f"at most {FEW}",
    "the first options": " and ".join(map(str, FIRST)),
    "greatly improved": f"at most {GREATLY:g} of the diffusion time without options",
    "several orders of magnitude": f"at least {SEVERAL:,.0f} times",
    "almost fully connected": f"at least {NEARLY_ALL:.0%} of all options",
    "in almost all settings": f"at least {ALMOST_ALL:.0%} of them",
    "fairly robust": f"at least {ROBUST:.0%} of the best mean return, with more than a few options",
    "a major impact": f"a factor of at least {MAJOR:g}",
    "often defined in the whole state space": f"the median option starts in {OFTEN:.0%} of the states",
    "near a doorway": f"at most {NEAR} step from it",
}
LATER = (
    "Diffusion times of four rooms and the open room with some numbers of options were known from earlier "
    "measurements when the limits for them were set.",
    "The claims of Figures 1 to 5 and the first two of Theorem 3.1 come from earlier work, without such a record.",
    "Where eigenoptions may start: the first version of the test required the limit in all domains at once, "
    "for e2 to e4 and for the median option. Its verdict was: does not hold. It was then split into one test "
    "per domain, of the median, as the limit is worded.",
    "Every goal: the claim and its tests were written after a trial run had shown the averages over goals.",
    "All notes under Further analysis, and the two sections Looking closer, were written after the results "
    "were seen. The reasons they give fit the numbers but were not tested separately.",
)


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
        """Whether the first is better: all of the interval is above zero."""
        return self.low > 0

    @property
    def worse(self) -> bool:
        """Whether the first is worse: all of the interval is below zero."""
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
    from scipy.stats import ttest_ind

    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if min(len(x), len(y)) < 2:
        raise ValueError(f"an interval needs at least 2 runs on both sides, got {len(x)} and {len(y)}")
    with warnings.catch_warnings():
        # Runs that are all equal have no spread, which is no loss of precision here.
        warnings.simplefilter("ignore", RuntimeWarning)
        low, high = ttest_ind(x, y, equal_var=False).confidence_interval(1 - (1 - CONFIDENCE) / among)
    return Difference(float(x.mean() - y.mean()), float(low), float(high))
