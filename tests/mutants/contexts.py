"""A plugin of pytest: coverage notes which test runs a line, and how long tests take.

``make mutants`` uses it once, before the first mutant.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from coverage import Coverage

# What `coverage run` writes, and what this plugin writes.
COVERAGE = Path("out/coverage")
DURATIONS = Path("out/durations.json")

cpu_seconds: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Name what runs after the test, with the fixtures that it is first to ask for."""
    coverage = Coverage.current()
    assert coverage is not None, "start this with `coverage run -m pytest`"
    coverage.switch_context(item.nodeid)
    start = time.process_time()
    try:
        return (yield)
    finally:
        cpu_seconds[item.nodeid] = time.process_time() - start


def pytest_sessionfinish() -> None:
    """Write the CPU seconds of each test."""
    DURATIONS.parent.mkdir(exist_ok=True)
    DURATIONS.write_text(json.dumps(cpu_seconds, indent=1))
