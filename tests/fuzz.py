"""Fuzzer: random sparse arrays, tables and files, many of them invalid, through every public function.

``python -m tests.fuzz --seconds 600`` runs in one process, so that a crash ends it with a signal: `tests/test_fuzz.py`
and ``make fuzz`` start it as a subprocess. A call may return, or raise a ValueError or a TypeError with a message.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import eigenoptions as eo
from eigenoptions import files
from eigenoptions.experiments.store import decode, encode
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


def calls(bad, a, b):
    """Every public function with an array and two arguments of any kind."""
    line = eo.maze("S..G")
    options = eo.discover(line, 2)
    policy = np.array(bad.data if bad.data.dtype.kind != "c" else bad.data.imag)
    yield "MDP", lambda: eo.MDP(bad, start=a, goal=b)
    yield "graph", lambda: eo.graph(line, bad)
    yield "laplacian", lambda: eo.laplacian(bad)
    yield "spectrum", lambda: eo.spectrum(bad, a if isinstance(a, int) else None)
    yield "spectrum, sparse", lambda: eo.spectrum(bad, b, solver="sparse")
    yield "reachable", lambda: reachable(bad, [a])
    yield "Gram", lambda: eo.Gram().add(bad, bad)
    yield "Gram, sum", lambda: eo.Gram(dedupe=False).add(bad, csr_array(np.eye(*bad.shape)))
    yield "Gram, states", lambda: _stream([a, 1], [1, b]).spectrum()
    yield "Purpose", lambda: eo.solve(line, eo.Purpose(policy), gamma=a)
    yield "OptionSet", lambda: eo.diffusion_time(line, eo.OptionSet(bad.indices[None], 2))
    yield "Option", lambda: eo.Option(policy, policy).act(0)
    yield "lengths", lambda: lengths(line, bad.indices)
    yield "discover", lambda: eo.discover(line, n_options=a, gamma=b)
    yield "diffusion_curve", lambda: eo.diffusion_curve(line, a)
    yield "hitting_times", lambda: eo.hitting_times(line, goal=a) if a != 10**9 else None
    yield "q_learning", lambda: eo.q_learning(line, options, runs=2, episodes=a if a != 10**9 else 1, gamma=b)
    yield "maze", lambda: eo.maze("".join(".#SG\n"[int(x) % 5] for x in bad.indices))
    yield "of a table", lambda: _use(eo.MDP(bad))


def _stream(before, after):
    gram = eo.Gram()
    gram.add(before, after)
    return gram


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
        header.pop("rows")
        keys = sorted(header)
        entry = {**header, keys[name % len(keys)]: value}
        whole = {"coords": arrays.pop("coords")} if "coords" in arrays else {}
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


def attempt(name, call, counts):
    """Make one call, and count what came of it; anything but a result or a clear error is raised."""
    try:
        call()
        counts["answers"] += 1
    except (ValueError, TypeError) as error:
        if not str(error).strip():
            raise AssertionError(f"{name}: {type(error).__name__} without a message") from error
        counts["refused"] += 1
    counts[name] += 1


def main():
    """Run until the seconds, or the examples, are over; print the counts as JSON."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--seconds", type=float, default=600.0)
    reader.add_argument("--examples", type=int, default=100)
    reader.add_argument("--rounds", type=int, default=10**9)
    given_arguments = reader.parse_args()
    if resource is not None:
        # What would fill the memory is an error here, and not the end of other processes.
        resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    counts, end, rounds = Counter(), time.monotonic() + given_arguments.seconds, 0
    warnings.simplefilter("ignore")
    logging.getLogger("eigenoptions").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as made:
        while rounds < given_arguments.rounds and time.monotonic() < end:
            _round(Path(made), counts, rounds, given_arguments.examples, end)
            rounds += 1
    print(json.dumps({"rounds": rounds, "calls": counts["answers"] + counts["refused"], **counts}))


def _round(folder, counts, number, examples, end):
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
        for label, call in calls(bad, a, b):
            attempt(label, call, counts)
        for label, call in file_calls(folder, name, a if a == a and a is not None else [b != b], at, byte):
            attempt(label, call, counts)

    run()


if __name__ == "__main__":
    sys.exit(main())
