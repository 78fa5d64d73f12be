"""Fuzzer: random sparse arrays, tables and files, many of them invalid, through every public function.

``python -m tests.fuzz --seconds 600`` runs in one process, so that a crash ends it with a signal: `tests/test_fuzz.py`
and ``make fuzz`` start it as a subprocess. A call may return, or raise a ValueError or a TypeError with a message;
where a slow twin knows the right answer (`fuzz_right.RIGHT`), results of random right input are compared with it.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import logging
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from reproduction.store import decode, encode
from scipy.sparse import csr_array
from tests.fuzz_calls import CALLS, RARELY, SLOW
from tests.fuzz_faces import REQUESTS
from tests.fuzz_given import Given
from tests.fuzz_right import RIGHT

import eigenoptions as eo
from eigenoptions import files
from eigenoptions.mdp import reachable
from eigenoptions.options.solver import lengths
from eigenoptions.spectra.gram import load_gram

try:
    import resource
except ImportError:
    resource = None

# Address space of the process.
MAX_BYTES = 6 << 30
NUMBERS = st.sampled_from([1.0, 1.0, 1.0, 0.5, 0.0, -1.0, np.nan, np.inf, 1e308, 1e-308, 3])
PLACES = st.one_of(st.integers(0, 3), st.integers(-3, 7), st.sampled_from([10**8, -(10**8), 2**31 - 1]))
ARGUMENTS = st.sampled_from([0, 1, 2, 3, -1, 10**9, 0.5, 1.5, np.nan, None, True, "x", [], 2**70])


@st.composite
def sparse(draw):
    """A csr array of up to 4 x 4 states or actions whose parts were edited, or a right one."""
    n, actions = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    rows = n * actions
    made = csr_array((np.ones(rows), np.arange(rows) % n, np.arange(rows + 1)), shape=(rows, n))
    for _ in range(draw(st.integers(0, 2))):
        part = draw(st.sampled_from(["data", "indices", "indices", "indptr", "complex", "symmetric"]))
        if part == "complex":
            made.data = made.data * 1j
        elif part == "symmetric":
            made = csr_array(np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1))
        else:
            array = getattr(made, part)
            if len(array):
                at = draw(st.integers(0, len(array) - 1))
                array[at] = np.real(draw(NUMBERS)) if part == "data" else draw(PLACES)
    return made


def calls(x, rarely):
    """Every public name that is fast with odd arguments; now and then the slow ones; and results of twins."""
    for name, each in [*CALLS.items(), *(SLOW.items() if x.seed % rarely == 0 else ())]:
        for call in each:
            yield name, partial(call, x)
    for request in REQUESTS:
        yield "studio", partial(request, x)
    yield "reachable", lambda: reachable(x.bad, [x.a])
    yield "lengths", lambda: lengths(x.line, x.bad.indices)
    yield "of a table", lambda: _use(eo.MDP(x.bad))


def _use(mdp):
    """The whole pipeline on a table that was accepted."""
    options = eo.solve(mdp, eo.eigenpurposes(eo.spectrum(eo.graph(mdp)), skip_zero=False))
    eo.diffusion_time(mdp, options)
    eo.q_learning(mdp.task(0, mdp.n_states - 1), options, runs=1, episodes=1, max_steps=3)


def file_calls(folder, name, value, at, byte):
    """Files with one header entry or one byte changed."""
    options = eo.discover(eo.maze("S..G"), 2)
    options.save(folder / "options.safetensors")
    gram = eo.Gram()
    gram.add(csr_array(np.eye(3)), csr_array(np.roll(np.eye(3), 1, axis=1)))
    gram.save(folder / "gram.safetensors")
    for kind, load in (("options", eo.load_options), ("gram", lambda path: load_gram(path).spectrum())):
        header, arrays = files.read(folder / f"{kind}.safetensors", kind, 1)
        n_rows = len(header.pop("rows"))
        keys = sorted(header)
        entry = {**header, keys[name % len(keys)]: value}
        whole = {name: arrays.pop(name) for name in list(arrays) if len(arrays[name]) != n_rows}
        part = sorted(arrays)[name % len(arrays)]
        edited = arrays[part].copy()
        if edited.size:
            edited.reshape(-1).view(np.uint8)[at % edited.nbytes] = byte
        for head, stored in ((entry, arrays), (header, {**arrays, part: edited})):
            path = folder / "forged.safetensors"
            files.write(path, head, stored, whole)
            yield f"file of {kind}", lambda path=path, load=load: load(path)
        data = bytearray((folder / f"{kind}.safetensors").read_bytes())
        data[at % len(data)] = byte
        (folder / "damaged.safetensors").write_bytes(data)
        yield f"damaged {kind}", lambda load=load: load(folder / "damaged.safetensors")
    stored = bytearray(encode({"a": np.arange(3), "b": (1, "x")}))
    stored[at % len(stored)] = byte
    yield "stored result", lambda: decode(bytes(stored))


def attempt(name, call, counts, foreign):
    """Make one call, and count what came of it; anything but a result or a clear error is foreign."""
    counts[name] += 1
    try:
        call()
        counts["answers"] += 1
    except Exception as error:
        # A path that does not exist is an OSError, as in Python.
        clear = isinstance(error, ValueError | TypeError | FileNotFoundError) and str(error).strip()
        counts["refused" if clear else "foreign"] += 1
        if not clear:
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{name}: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
            foreign.setdefault(kind, str(error)[:300])


def main():
    """Run until the seconds, or the examples, are over; print the counts as JSON."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--seconds", type=float, default=600.0)
    reader.add_argument("--examples", type=int, default=100)
    reader.add_argument("--rounds", type=int, default=10**9)
    reader.add_argument(
        "--rarely", type=int, default=RARELY, help="slow calls are made in one of so many examples"
    )
    reader.add_argument("--only", default="", help="regular expression of the names to call")
    given_arguments = reader.parse_args()
    only = re.compile(given_arguments.only)
    if resource is not None:
        # What would fill the memory is an error here, and not the end of other processes.
        resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    counts, foreign = Counter(), {}
    end, rounds = time.monotonic() + given_arguments.seconds, 0
    warnings.simplefilter("ignore")
    faulthandler.enable()
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as made:
        while rounds < given_arguments.rounds and time.monotonic() < end:
            _round(
                Path(made),
                (counts, foreign, only, given_arguments.rarely),
                rounds,
                given_arguments.examples,
                end,
            )
            rounds += 1
    calls_made = counts["answers"] + counts["refused"] + counts["foreign"]
    print(json.dumps({"rounds": rounds, "calls": calls_made, "errors": foreign, "foreign": 0, **counts}))
    return 1 if foreign else 0


def _round(folder, found, number, examples, end):
    counts, foreign, only, rarely = found
    quiet = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )

    @quiet
    @seed(number)
    @given(sparse(), ARGUMENTS, ARGUMENTS, st.integers(0, 99), st.integers(0, 9999), st.integers(0, 255))
    def run(bad, a, b, name, at, byte):
        if time.monotonic() > end:
            return
        x = Given(bad, a, b, at, folder)
        for label, call in calls(x, rarely):
            if only.search(label):
                attempt(label, call, counts, foreign)
        for check in RIGHT:
            attempt(check.__name__, partial(check, x), counts, foreign)
            counts["compared"] += 1
        for label, call in file_calls(folder, name, a if a == a and a is not None else [b != b], at, byte):
            attempt(label, call, counts, foreign)

    run()


if __name__ == "__main__":
    sys.exit(main())
