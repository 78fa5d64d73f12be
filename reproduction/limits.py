"""When a claim counts as true: the meaning of words of degree, and intervals of differences.

The limits were written down before the experiments were run; what was not fixed beforehand is listed in ``claims.toml``
(`claims.rules`), and in the report.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

# Of all intervals of one claim together.
CONFIDENCE = 0.95
# The paper's words of degree, see `claims.rules`. FEW are both signs of the four eigenvectors of Figures 3 to 5.
FEW = 8
FIRST = (1, 2, 3)
GREATLY = 0.5
SEVERAL = 1000.0
NEARLY_ALL = 0.9
ALMOST_ALL = 0.9
ROBUST = 0.8
MAJOR = 2.0
OFTEN = 0.9
NEAR = 1
# Smallest difference of mean returns that matters: one evaluation episode in twenty.
MARGIN = 0.05
# "Very unlikely": at most this probability.
UNLIKELY = 0.05
# "Tends to be dense": share of the moves that change the state and have a reward other than zero, at least.
DENSE = 0.9
# Rank correlation of two quantities of which one implies the other, at least.
STRONG = 0.8
# Cells at least this far from a doorway are inside a room.
INSIDE = 3
# Steps from the goal up to which the end of an option counts as near it.
CLOSE = 2
# Fewest sets on one side of a comparison that can decide.
MIN_SETS = 10
# Games: "very similar" is this share of Kulkarni's goals at which options settle.
SIMILAR_SHARE = 0.8
# Points of option #445 in Freeway; "28 points", "very close": at least this share.
PAPER_SCORE = 28.0
NEARLY = 0.9
# Points of DQN in Freeway (Mnih et al., 2015), then the state of the art; a human tester had 29.6.
DQN_SCORE = 30.3
# Frames of an episode of Freeway.
EPISODE_FRAMES = 8_192
# Height of a lane of Freeway, and about that of the road from pavement to pavement, in units of height.
LANE_HEIGHT = 16.0
ROAD_HEIGHT = 170.0
# Lanes by which options differ, at least.
MIN_LANES = 3
# Share of the episodes, the last ones, that decide whether a run has learned to reach the goal.
LAST = 0.1


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

    def __neg__(self) -> Difference:
        """The difference of the second to the first."""
        return Difference(-self.mean, -self.high, -self.low)

    def above(self, margin: float = MARGIN) -> bool | None:
        """Whether the first is better: yes above zero, no below a margin that matters, else not decided.

        >>> [Difference(0.0, low, high).above() for low, high in ((0.01, 0.2), (-0.2, 0.02), (-0.2, 0.2))]
        [True, False, None]
        """
        return True if self.low > 0 else False if self.high < margin else None

    def equal(self, margin: float = MARGIN) -> bool | None:
        """Whether both are equal up to a margin; None where the interval includes values inside and outside of it.

        >>> [Difference(0.0, low, high).equal() for low, high in ((-0.01, 0.02), (0.06, 0.1), (0.0, 0.1))]
        [True, False, None]
        """
        if -margin < self.low and self.high < margin:
            return True
        return False if self.low > margin or self.high < -margin else None

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
