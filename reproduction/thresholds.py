"""What the paper's words of degree mean here.

`FIXED_LATE` names the limits that were set or changed when results were known, all
others were fixed before. Of the rules that use them, few were: the end of the report
(`report.html`) lists what was written or changed later.
"""

# "A few options": both signs of the four eigenvectors of Figures 3 to 5.
FEW = 8

# "The first options".
FIRST = (1, 2, 3)

# "Greatly improved": at most this share of the diffusion time of primitive actions.
GREATLY = 0.5

# "Several orders of magnitude": at least this factor.
SEVERAL = 1000.0

# "Almost fully connected": at least this share of all options.
NEARLY_ALL = 0.9

# "In almost all settings": at least this share of them.
ALMOST_ALL = 0.9

# "Fairly robust": at least this share of the best mean return.
ROBUST = 0.8

# "A major impact": at least this factor.
MAJOR = 2.0

# "Often defined in the whole state space": the median option starts in this share of
# the states.
OFTEN = 0.9

# "Near a doorway": at most this many steps.
NEAR = 1

# "No effect": the smallest difference of mean returns that matters, one evaluation
# episode in twenty.
MARGIN = 0.05

# "Very unlikely": at most this probability.
UNLIKELY = 0.05

# "Dense": at least this share of the moves that change the state have a reward.
DENSE = 0.9

# "Dozens": at least this many.
DOZENS = 24

# "Skews": the effective share of the states is at most this.
SKEWED = 0.9

# "Implies": at least this rank correlation.
STRONG = 0.8

# The limits of ours under the readings "stricter limit" and "laxer limit".
MOVED: dict[str, tuple[float, float]] = {
    "GREATLY": (0.4, 0.6),
    "SEVERAL": (10_000.0, 100.0),
    "NEARLY_ALL": (0.95, 0.75),
    "ALMOST_ALL": (0.95, 0.8),
    "ROBUST": (0.9, 0.7),
    "MAJOR": (3.0, 1.5),
    "OFTEN": (0.95, 0.8),
    "NEAR": (0, 2),
    "UNLIKELY": (0.01, 0.1),
    "DENSE": (0.95, 0.8),
    "DOZENS": (36, 12),
    "SKEWED": (0.8, 0.95),
    "STRONG": (0.9, 0.7),
}

# Limits that were set or changed when results were known.
FIXED_LATE = ("FIRST", "MARGIN", "DOZENS", "SKEWED", "UNLIKELY", "STRONG")
