"""What every test may ask for: the paper's three domains, small graphs with known answers, and one seed."""

from __future__ import annotations

import faulthandler
import os
import signal

# Before NumPy is loaded: one thread gives the same bits everywhere, and no window opens for a figure.
for variable, value in (("OMP_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1"), ("MPLBACKEND", "Agg")):
    os.environ.setdefault(variable, value)

import numpy as np
import pytest
from hypothesis import Phase, settings

import eigenoptions as eo

# Kernels compile on first use, so a deadline would time the compiler. The same examples are drawn each time, so that
# a test passes everywhere or nowhere; EIGENOPTIONS_NEW_EXAMPLES=1 searches on.
settings.register_profile("same", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("new", deadline=None)
# For mutants: fewer examples, and a failure is not made smaller.
settings.register_profile(
    "mutants", deadline=None, derandomize=True, max_examples=30, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("new" if os.environ.get("EIGENOPTIONS_NEW_EXAMPLES") else "same")

# A shell that starts the tests in the background lets them ignore SIGINT; programs under test must not inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "faults: processes are killed, disks are full; the results must not care"
    )


# A run in which no test ends for so long hangs. The longest test takes a minute, and is slower on a busy machine.
MAX_SILENCE_SECONDS = 1800

# Files that take longest, most first, so that no worker begins one of them when the others have nothing left to do. The
# first three begin together, of which one waits a lot.
LONGEST = [
    "test_types.py",
    "test_paper.py",
    "test_faults.py",
    "test_examples.py",
    "test_docs.py",
    "test_studio_page.py",
    "test_benchmarks.py",
    "test_cli.py",
    "test_ray.py",
    "test_atari_command.py",
    "test_parallel.py",
    "test_machines.py",
    "test_paper_atari_jobs.py",
    "test_fuzz.py",
    "test_sb3.py",
    "test_atari_options.py",
    "test_atari.py",
    "test_studio.py",
    "test_plots.py",
    "test_deep.py",
    "test_lockstep.py",
    "test_paper_atari.py",
    "test_evaluation.py",
    "test_basis.py",
    "test_large.py",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores, since many tests wait for a browser, a cluster or a subprocess."""
    return min(os.cpu_count() or 1, 4) + 1


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """End the process that distributes the tests, with a traceback, when no worker reports anything any more."""
    if hasattr(report, "node"):
        faulthandler.dump_traceback_later(MAX_SILENCE_SECONDS, exit=True)


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
    """A path of seven states, whose spectrum and hitting times are known in closed form."""
    return eo.maze("S.....G")


@pytest.fixture(scope="session")
def slippery() -> eo.MDP:
    """Three states in a row, two actions (left, right) that slip the other way one time in five."""
    left, right = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0.0]]), np.array([[0, 1, 0], [0, 0, 1], [0, 0, 1.0]])
    return eo.MDP(np.stack([0.8 * left + 0.2 * right, 0.2 * left + 0.8 * right], axis=1))
