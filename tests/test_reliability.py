"""No input reaches a kernel unchecked, and no record changes after it was checked (docs/reliability.md)."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array

import eigenoptions as eo
from eigenoptions.cli import main
from eigenoptions.discovery.hierarchy import mdp_with_options
from eigenoptions.mdp import reachable
from eigenoptions.spectra.representations import (
    default_representation,
    learned_successor,
    successor_representation,
)


def _damaged(damage: str) -> csr_array:
    """A permutation of four states as csr, with one mistake in its parts."""
    made = csr_array((np.ones(4), np.array([1, 0, 3, 2]), np.arange(5)), shape=(4, 4))
    if damage == "off by one":
        made.indices[2] = 4
    elif damage == "far out":
        made.indices[2] = 10**8
    elif damage == "negative":
        made.indices[0] = -1
    elif damage == "negative pointer":
        made.indptr[0] = -5
    elif damage == "decreasing pointers":
        made.indptr[1:4] = 3, 1, 2
    elif damage == "negative end":
        made.indptr[-1] = -1
    elif damage == "no entries":
        made.indptr[-1] = 0
    elif damage == "long pointers":
        made.indptr[-1] = 10**6
    return made


DAMAGES = (
    "off by one",
    "far out",
    "negative",
    "negative pointer",
    "decreasing pointers",
    "long pointers",
    "negative end",
    "no entries",
)
ENTRIES = {
    "MDP": eo.MDP,
    "spectrum": eo.spectrum,
    "sparse solver": lambda bad: eo.spectrum(bad, 1),
    "laplacian": eo.laplacian,
    "graph": lambda bad: eo.graph(eo.MDP(np.eye(4)), bad),
    "reachable": lambda bad: reachable(bad, [0]),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("entry", ENTRIES)
def test_sparse_arrays_with_wrong_indices_are_refused(entry, damage):
    with pytest.raises(ValueError, match="sparse"):
        ENTRIES[entry](_damaged(damage))


@pytest.mark.parametrize("make", [coo_array, csc_array])
def test_other_formats_are_checked_before_they_are_converted(make):
    bad = make(np.eye(3))
    (bad.coords[0] if make is coo_array else bad.indices)[0] = 10**8
    for entry in (eo.MDP, eo.spectrum):
        with pytest.raises(ValueError, match="sparse"):
            entry(bad)


def test_a_table_with_one_successor_too_many_is_refused():
    S, A = 5, 2
    successors = np.array([[min(s + 1, S), max(s - 1, 0)] for s in range(S)])
    table = csr_array((np.ones(S * A), successors.ravel(), np.arange(S * A + 1)), shape=(S * A, S))
    with pytest.raises(ValueError, match="indices must be < 5"):
        eo.MDP(table, start=0, goal=4)


@pytest.mark.parametrize("number", [1j, np.inf, np.nan, -1.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_numbers_that_are_no_weights_are_refused(number, sparse):
    W = np.array([[0, number], [number, 0]])
    given = csr_array(W) if sparse else W
    for entry in (eo.spectrum, lambda bad: eo.graph(eo.MDP(np.eye(2)), bad), eo.MDP):
        with pytest.raises(ValueError, match=r"must be (real|finite)"):
            entry(given)


@pytest.mark.parametrize("states", [[19], [-1], [10**9], [2**70], [1.5], ["x"]])
def test_a_search_begins_at_states_that_exist(states):
    with pytest.raises(ValueError, match=r"states must be .*in 0\.\.18"):
        reachable(eo.maze("i-maze").transition, states)


@pytest.mark.parametrize("runs", ["9999999999", "100000000", "0"])
def test_more_runs_than_memory_holds_are_refused_at_once(runs, capsys):
    assert main(["learn", "four-rooms", "--runs", runs]) == 2
    assert "runs" in capsys.readouterr().err


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8717@evil.com",
        "127.0.0.1:8717, evil.com",
        "[localhost",
        "]localhost:1",
        "localhost:",
        "[::1",
        "",
    ],
)
def test_the_studio_answers_to_exact_hosts_only(host):
    security = pytest.importorskip("eigenoptions.studio.security")
    for own in ("127.0.0.1", "0.0.0.0"):
        guard = security.LocalOnly(None, own)
        assert not guard.is_own_host(host)
        for right in ("127.0.0.1", "127.0.0.1:8717", "LOCALHOST:1", "[::1]:80"):
            assert guard.is_own_host(right)


def test_one_impossible_file_name_does_not_hide_the_games(tmp_path):
    gallery = pytest.importorskip("eigenoptions.studio.gallery")
    (tmp_path / "a.png").touch()
    options = [{"label": "e1", "heatmap": name} for name in ("a\0.png", "a.png", "a" * 5000 + ".png")]
    index = {"format": 1, "games": [{"name": "Pong", "options": options}]}
    (tmp_path / "index.json").write_text(json.dumps(index))
    (game,) = gallery.Gallery(tmp_path).index()["games"]
    assert [option["heatmap"] for option in game["options"]] == [None, "a.png", None]
    assert gallery.Gallery(tmp_path).file("a.png") == (tmp_path / "a.png").resolve()
    assert gallery.Gallery(tmp_path).file("index.json") is None


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_a_request_that_does_not_arrive_is_closed(sent, monkeypatch):
    server = pytest.importorskip("eigenoptions.studio.server")
    monkeypatch.setattr(server, "MAX_REQUEST_SECONDS", 0.05)
    uvicorn = pytest.importorskip("uvicorn")
    with server.listen("127.0.0.1", 0) as listener:
        config = uvicorn.Config(
            server.app(), log_level="error", http=server.Impatient, ws="none", lifespan="off"
        )
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        with socket.create_connection(listener.getsockname(), timeout=300) as client:
            client.sendall(sent)
            assert client.recv(1) == b""
        running.should_exit = True
        thread.join()


def test_a_body_that_does_not_arrive_is_refused(monkeypatch):
    server = pytest.importorskip("eigenoptions.studio.server")
    monkeypatch.setattr(server, "MAX_REQUEST_SECONDS", 0.05)

    class Request:
        headers = {"content-type": "application/json"}  # noqa: RUF012

        async def stream(self):
            yield b"{"
            await asyncio.sleep(3600)

    with pytest.raises(server.HTTPException) as caught:
        asyncio.run(server._body(Request()))
    assert caught.value.status_code == 408


def test_ctrl_c_prints_one_line_that_states_what_is_kept(tmp_path):
    """The signal goes to the whole group, as a terminal sends it, while the workers start."""
    code = """
import os, signal, sys, threading
from eigenoptions.parallel import run_jobs, using
from eigenoptions.cli import main
from reproduction import report, store
def reproduce(folder, *rest, **more):
    with store.Store(folder / "jobs") as kept:
        kept.put(os.path.join, {"job": 1}, 5)
        threading.Timer(0.0, os.killpg, [0, signal.SIGINT]).start()
        with using("processes", workers=2):
            run_jobs(__import__("time").sleep, [60, 60])
report.reproduce = reproduce
sys.exit(main(["reproduce", "--out", sys.argv[1]]))
"""
    run = [sys.executable, "-c", code, str(tmp_path)]
    ended = subprocess.run(run, capture_output=True, text=True, start_new_session=True, timeout=300)
    assert (ended.returncode, ended.stdout) == (130, "")
    kept = tmp_path / "jobs"
    assert ended.stderr == f"stopped: 1 job finished and kept in {kept}; the same command continues\n"


UNCLEAR = {
    "run_options, no options": lambda env, mdp: eo.envs.run_options(env, None),
    "run_options, numbers": lambda env, mdp: eo.envs.run_options(env, [1, 2]),
    "run_options, warm_up": lambda env, mdp: eo.envs.run_options(env, eo.discover(mdp, 2), warm_up=-1),
    "run_options, rng": lambda env, mdp: eo.envs.run_options(env, eo.discover(mdp, 2), rng=-5),
    "run_options, runs": lambda env, mdp: eo.envs.run_options(env, eo.discover(mdp, 2), runs=2**70),
    "Spectrum, text": lambda env, mdp: eo.Spectrum("x", "y"),
    "Spectrum, nothing": lambda env, mdp: eo.Spectrum(None, None),
    "Spectrum, shapes": lambda env, mdp: eo.Spectrum([1.0, 2.0], np.eye(3)),
    "Spectrum, value": lambda env, mdp: eo.Spectrum([0.0, np.nan, 1.0], np.eye(3)),
    "Spectrum, vector": lambda env, mdp: eo.Spectrum([0.0, 1.0], np.array([[1.0, 0.0], [np.inf, 1.0]])),
    "Spectrum, complex": lambda env, mdp: eo.Spectrum([0.0, 1.0], np.eye(2) * 1j),
    "from_env, seed": lambda env, mdp: eo.from_env(env, seed="x"),
    "Numbered, seed": lambda env, mdp: eo.envs.Numbered(env, seed=-1),
    "weights of 1e308": lambda env, mdp: eo.spectrum(np.array([[0, 1e308], [1e308, 0]])),
    "options of nothing": lambda env, mdp: mdp_with_options(mdp, 3),
    "actions of a game": lambda env, mdp: eo.envs.OptionsSpace(2**70, 1),
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_what_was_unclear_names_the_limit(name):
    mdp = eo.maze("S..G")
    with pytest.raises((ValueError, TypeError), match=r"must|a part is|got"):
        UNCLEAR[name](eo.envs.MazeEnv(mdp), mdp)


@pytest.mark.parametrize("damage", DAMAGES)
def test_random_walks_are_checked_before_they_are_inverted(damage):
    for entry in (
        lambda P: successor_representation(P, 0.9),
        lambda P: default_representation(P, [-1.0] * 4, 1.0),
    ):
        with pytest.raises(ValueError, match="sparse"):
            entry(_damaged(damage))


def test_numbers_that_are_no_random_walk_are_refused():
    for P in ([[2.0]], [[-1.0]], [[np.nan]], np.ones((2, 3)), [[1j]]):
        with pytest.raises(ValueError, match="P must"):
            successor_representation(np.array(P), 0.9)
    for before, n, begin in (
        ([0, 2], 2, None),
        ([-1, 0], 2, None),
        ([0.5, 1], 2, None),
        ([0, 1], 2, np.eye(3)),
    ):
        with pytest.raises(ValueError, match="must"):
            learned_successor(before, [0, 1], n, begin=begin)
    with pytest.raises(ValueError, match="shape"):
        learned_successor([0, 1], [0], 2)
