"""What every test may ask for: the paper's domains, small graphs, and one seed.

The answers for the small graphs are known.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator

# Before NumPy is loaded: one thread gives the same bits everywhere, and no window opens
# for a figure.
for variable, value in (
    ("OMP_NUM_THREADS", "1"),
    ("OPENBLAS_NUM_THREADS", "1"),
    ("MPLBACKEND", "Agg"),
):
    os.environ.setdefault(variable, value)

import numpy as np
import pytest
from hypothesis import settings

import eigenoptions as eo

# Its filter needs cosmic-ray, which `make mutants` installs.
collect_ignore = ["mutants"]

# The same examples each time, so that a test passes everywhere or nowhere; `nightly`
# searches on.
settings.register_profile(
    "same", deadline=None, derandomize=True, max_examples=50, print_blob=True
)
settings.register_profile("nightly", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("same")

# A shell that starts the tests in the background lets them ignore SIGINT; programs
# under test must not inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Files that take longest come first, so that no worker begins one of them when the
# others are done.
LONGEST = [
    "test_types.py",
    "test_reproduction.py",
    "test_examples.py",
    "test_docs.py",
    "test_studio.py",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


@pytest.fixture(autouse=True)
def restore_logger() -> Iterator[None]:
    """The command line prints notes itself; other tests read them from the log."""
    logger = logging.getLogger("eigenoptions")
    before = logger.handlers, logger.propagate, logger.level
    yield
    logger.handlers, logger.propagate = before[:2]
    logger.setLevel(before[2])


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(2017)


@pytest.fixture(scope="session")
def four_rooms() -> eo.MDP:
    return eo.maze("four-rooms")


@pytest.fixture(scope="session")
def open_room() -> eo.MDP:
    return eo.maze("open-room")


@pytest.fixture(scope="session")
def i_maze() -> eo.MDP:
    return eo.maze("i-maze")


@pytest.fixture(scope="session", params=["four-rooms", "open-room", "i-maze"])
def domain(request: pytest.FixtureRequest) -> eo.MDP:
    """Each of the paper's domains in turn."""
    return eo.maze(request.param)


@pytest.fixture(scope="session")
def corridor() -> eo.MDP:
    """A path of seven states: its spectrum and hitting times have closed forms."""
    return eo.maze("S.....G")


@pytest.fixture(scope="session")
def slippery() -> eo.MDP:
    """Three states in a row; left and right slip the other way one time in five."""
    left = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0.0]])
    right = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 1.0]])
    return eo.MDP(
        np.stack([0.8 * left + 0.2 * right, 0.2 * left + 0.8 * right], axis=1)
    )
