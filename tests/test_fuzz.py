"""A bounded run of the fuzzer, in a process of its own: no signal, and no error but ValueError and TypeError."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.fuzz_calls import CALLS, PLAIN, SLOW, public


def test_no_public_function_crashes_or_raises_a_foreign_error():
    run = [sys.executable, "-m", "tests.fuzz", "--rounds", "1", "--examples", "8"]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    counts = json.loads(ended.stdout)
    assert (counts["foreign"], counts["errors"]) == (0, {})
    assert counts["calls"] >= 400
    assert min(counts["answers"], counts["refused"], counts["compared"]) > 0


def test_every_public_name_is_called_by_the_fuzzer():
    missing = set(public()) - CALLS.keys() - SLOW.keys() - PLAIN
    assert not missing, f"add calls of {sorted(missing)} to tests/fuzz_calls.py"


def test_the_fuzzer_calls_nothing_that_is_not_public():
    assert (CALLS.keys() | SLOW.keys() | PLAIN) <= set(public())
