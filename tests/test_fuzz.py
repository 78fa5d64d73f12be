"""A bounded run of the fuzzer, in a process of its own: no signal, and no error but ValueError and TypeError."""

from __future__ import annotations

import json
import subprocess
import sys


def test_no_public_function_crashes_or_raises_a_foreign_error():
    run = [sys.executable, "-m", "tests.fuzz", "--rounds", "1", "--examples", "8"]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    counts = json.loads(ended.stdout)
    assert (counts["foreign"], counts["errors"]) == (0, {})
    assert counts["calls"] >= 400
    assert min(counts["answers"], counts["refused"], counts["compared"]) > 0
