"""Run the tests that reach what is changed in the sources, the shortest first.

cosmic-ray calls this for each mutant. The change is what git says it is, and
``make mutants`` has noted before which tests run a line. Exit code 0: all tests pass,
so the mutant survives.
"""

import ast
import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from contexts import COVERAGE, DURATIONS
from coverage import CoverageData

GIGABYTE = 2**30


def find_changed_lines() -> dict[str, set[int]]:
    """The numbers of the changed lines of each changed file, by ``git diff``."""
    diff = subprocess.check_output(["git", "diff", "-U0", "src"], text=True)
    changed: dict[str, set[int]] = {}
    name = ""
    for line in diff.splitlines():
        if line.startswith("+++ b/"):
            name = line.removeprefix("+++ b/")
            changed[name] = set()
        # "@@ -12,2 +12,0 @@": two lines from line 12 on, as the original counts them.
        found = re.match(r"@@ -(\d+)(?:,(\d+))? ", line)
        if found:
            first = int(found[1])
            count = int(found[2] or 1)
            changed[name].update(range(first, first + max(count, 1)))
    return changed


def widen_to_statements(source: str, lines: set[int]) -> set[int]:
    """All lines of the statements in which `lines` are.

    Coverage knows a statement of several lines by some of them only.
    """
    spans = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            spans.append(range(node.lineno, (node.end_lineno or node.lineno) + 1))

    widened = set(lines)
    for line in lines:
        around = [span for span in spans if line in span]
        if around:
            widened.update(min(around, key=len))
    return widened


def find_covering_tests() -> set[str]:
    """The names of the tests that run a changed line."""
    data = CoverageData(str(COVERAGE))
    data.read()
    assert data.measured_contexts(), f"{COVERAGE} does not say which test runs a line"
    tests: set[str] = set()
    for name, lines in find_changed_lines().items():
        # The original: coverage has seen that, and a mutant may not even parse.
        source = subprocess.check_output(["git", "show", f"HEAD:{name}"], text=True)
        contexts = data.contexts_by_lineno(str(Path(name).resolve()))
        for line in widen_to_statements(source, lines):
            tests.update(contexts.get(line, []))
    tests.discard("")
    return tests


def main() -> int:
    """Run them, with limits for what never ends and for what takes all memory."""
    durations = json.loads(DURATIONS.read_text())
    tests = sorted(find_covering_tests(), key=lambda test: durations[test])
    if not tests:
        print("no test runs this line")
        return 0

    expected = sum(durations[test] for test in tests)
    cpu_limit = 60 + int(3 * expected)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit, cpu_limit + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (8 * GIGABYTE, 8 * GIGABYTE))
    print(f"{len(tests)} tests, {expected:.1f} CPU seconds")
    return pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests])


if __name__ == "__main__":
    sys.exit(main())
