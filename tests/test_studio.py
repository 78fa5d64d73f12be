"""The studio's server: the numbers of the library, access control, and errors for bad input."""

from __future__ import annotations

import base64
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

import eigenoptions as eo
from eigenoptions.evaluation import best_option_chance, diffusion_curve, diffusion_time, hitting_times
from eigenoptions.learning import q_learning
from eigenoptions.mdp.maps import GENERATORS, open_map
from eigenoptions.spectra import OPERATORS
from eigenoptions.studio import app, endpoints
from eigenoptions.studio.requests import Request
from eigenoptions.studio.security import SECURITY_HEADERS, LocalOnly
from eigenoptions.studio.server import PAGE, listen

ROOMS = "\n".join(endpoints.drawn(eo.maze("four-rooms")))
PIECES = "S.#..\n..#.G"


@contextmanager
def serving(studio: LocalOnly) -> Iterator[httpx.Client]:
    """A real server on a free port, and a client that talks to it."""
    with listen("127.0.0.1", 0) as listener:
        server = uvicorn.Server(uvicorn.Config(studio, log_level="critical", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with httpx.Client(
                base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=300
            ) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with serving(app()) as found:
        yield found


def post(client: httpx.Client, path: str, **body: Any) -> Any:
    answer = client.post(f"/api/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def lines(client: httpx.Client, path: str, **body: Any) -> list[dict[str, Any]]:
    answer = client.post(f"/api/{path}", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def unpacked(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def complaint(answer: Any, *codes: int) -> str:
    """The one line of a refusal."""
    assert answer.status_code in (codes or range(400, 500)), answer.text
    error = answer.json()["error"]
    assert error
    assert "\n" not in error
    assert len(error) < 400
    return error


# The page


def test_the_page_is_light_and_asks_no_other_host(client: httpx.Client) -> None:
    total = 0
    for name in ["", *(file.name for file in PAGE.iterdir())]:
        answer = client.get(f"/{name}")
        assert answer.status_code == 200
        for header, value in SECURITY_HEADERS.items():
            assert answer.headers[header] == value
        total += len(answer.content) if name else 0
        elsewhere = set(re.findall(r"\w+://[^\s\"'`<>]+", answer.text)) - {"http://www.w3.org/2000/svg"}
        assert elsewhere == set()
    assert total < 300_000


def test_every_element_the_scripts_look_for_is_on_the_page() -> None:
    html = (PAGE / "index.html").read_text(encoding="utf-8")
    ids = re.findall(r'id="([\w-]+)"', html)
    assert len(ids) == len(set(ids))
    for script in PAGE.glob("*.js"):
        for name in re.findall(r'\$\("([\w-]+)"\)', script.read_text(encoding="utf-8")):
            assert name in ids, f"{script.name} looks for {name}"


def test_the_page_offers_what_the_registries_hold(client: httpx.Client) -> None:
    hello = client.get("/api/hello").json()
    assert [m["name"] for m in hello["mazes"]] == eo.mazes()
    assert hello["operators"] == list(OPERATORS)
    assert hello["kinds"] == list(GENERATORS)
    assert set(hello["methods"]) >= {"eigen", "bottleneck", "random"}


def test_every_control_has_a_name() -> None:
    html = (PAGE / "index.html").read_text(encoding="utf-8")
    for attributes, words in re.findall(r"<button([^>]*)>(.*?)</button>", html, flags=re.DOTALL):
        assert "aria-label" in attributes or re.search(r"\w", re.sub(r"<[^>]*>", "", words)), attributes
    for canvas in re.findall(r"<canvas([^>]*)>", html):
        assert "aria-label" in canvas or 'id="board"' in canvas


# The numbers are the library's


@pytest.mark.parametrize("operator", ["normalized", "combinatorial", "random-walk"])
@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_the_picture_is_what_the_library_computes(client: httpx.Client, operator: str, gamma: float) -> None:
    found = post(client, "picture", map=ROOMS, operator=operator, gamma=gamma, shown=6)
    mdp = eo.maze("four-rooms")
    sp = eo.spectrum(eo.graph(mdp), k=7, operator=operator)
    options = eo.solve(mdp, eo.eigenpurposes(sp), gamma)
    assert (found["states"], found["pieces"], found["more"]) == (104, 1, True)
    assert found["eigenvalues"] == sp.values[1:].tolist()
    assert found["labels"] == list(options.labels)
    assert found["mean_length"] == options.mean_length.tolist()
    assert np.array_equal(unpacked(found["policies"], "i1").reshape(12, 104), options.policy)
    # Actions of a maze are its moves: up, right, down, left.
    assert np.array_equal(unpacked(found["moves"], "i1").reshape(12, 104), options.policy)
    assert np.array_equal(
        unpacked(found["vectors"], "<f4").reshape(6, 104), sp.vectors[:, 1:].T.astype("<f4")
    )
    assert np.array_equal(unpacked(found["values"], "<f4").reshape(12, 104), options.value.astype("<f4"))


def test_the_time_it_took_is_in_the_header(client: httpx.Client) -> None:
    answer = client.post("/api/picture", json={"map": ROOMS})
    parts = dict(part.split(";dur=") for part in answer.headers["server-timing"].split(", "))
    assert set(parts) == {"maze", "spectrum", "options", "pack", "total"}
    assert all(float(ms) >= 0 for ms in parts.values())


def test_a_maze_in_pieces_counts_its_zeros(client: httpx.Client) -> None:
    found = post(client, "picture", map=PIECES, shown=3)
    assert (found["pieces"], found["labels"][0], len(found["eigenvalues"])) == (2, "e3+", 3)
    assert min(found["eigenvalues"]) > 0.1
    assert unpacked(found["components"], "<i2").tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


def test_a_small_maze_has_all_its_eigenvectors_and_no_more(client: httpx.Client) -> None:
    found = post(client, "picture", map="S..G", shown=64)
    assert (len(found["eigenvalues"]), found["more"]) == (3, False)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("S.\n#G\n", ["S.", "#G"]),
        ("####\n#S.\n#.", ["####", "#S.#", "#.##", "####"]),
        ("2,3\nXS\n  G", ["#S#", "..G"]),
        ("\n\n .\n\n", [".."]),
    ],
)
def test_a_map_comes_back_as_a_rectangle(client: httpx.Client, text: str, rows: list[str]) -> None:
    assert post(client, "maze", map=text)["map"] == rows
    assert post(client, "maze", map="\n".join(rows))["map"] == rows


@pytest.mark.parametrize("text", ["four-rooms", "pyproject.toml", "/etc/hostname", "../x.txt"])
def test_a_map_is_text_and_never_a_file(client: httpx.Client, text: str) -> None:
    assert "unknown character" in complaint(client.post("/api/maze", json={"map": text}), 422)


@given(
    kind=st.sampled_from(["rooms", "perfect", "open"]),
    rows=st.integers(3, 64),
    cols=st.integers(3, 64),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60)
def test_random_mazes_hang_together_and_keep_to_their_size(
    kind: str, rows: int, cols: int, seed: int
) -> None:
    request = Request(kind=kind, rows=rows, cols=cols, seed=seed)
    found = endpoints.random_map(request, lambda *_: None)["map"]
    assert found == endpoints.random_map(request, lambda *_: None)["map"]
    mdp = eo.maze("\n".join(found) + "\n")
    assert len(found) <= max(rows, 3)
    assert len(found[0]) <= max(cols, 3)
    assert connected_components(eo.graph(mdp))[0] == 1
    assert mdp.n_states == 1 or None not in (mdp.start, mdp.goal)


@given(short=st.integers(9, 54), longer=st.integers(0, 10), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_random_rooms_are_two_to_six_along_the_shorter_side(short: int, longer: int, seed: int) -> None:
    request = Request(kind="rooms", rows=short, cols=short + longer, seed=seed)
    found = endpoints.random_map(request, lambda *_: None)["map"]
    assert len(found) <= short
    assert len(found[0]) <= short + longer
    # The walls between rooms have single doors.
    walls = [i for i, row in enumerate(found) if row.count("#") > len(row) / 2]
    assert 2 <= len(walls) - 1 <= 6
    assert 3 <= walls[1] - walls[0] - 1 <= 9


def test_a_room_more_than_six_along_the_shorter_side_does_not_fit() -> None:
    """Seven rooms of three cells and their walls would be 29 cells."""
    for seed in range(30):
        found = endpoints.random_map(Request(kind="rooms", rows=29, cols=29, seed=seed), lambda *_: None)[
            "map"
        ]
        walls = [i for i, row in enumerate(found) if row.count("#") > len(row) / 2]
        assert walls[1] - walls[0] > 4


def test_episodes_of_a_long_way_may_take_five_times_its_steps() -> None:
    begun = next(endpoints.learn(Request(map="S" + 30 * "." + "G", n_options=2), lambda *_: None))
    assert (begun["shortest"], begun["max_steps"]) == (31, 155)


def test_both_agents_of_a_race_walk_by_the_rules(client: httpx.Client) -> None:
    found = post(client, "race", map=ROOMS, n_options=8, seed=3)
    mdp = eo.maze("four-rooms")
    options = eo.discover(mdp, n_options=8)
    assert (found["start"], found["goal"], found["labels"]) == (mdp.start, mdp.goal, list(options.labels))
    assert found == post(client, "race", map=ROOMS, n_options=8, seed=3)
    assert (found["option_chance"], found["ends_at_goal"], found["at_start"]) == (0.1, [], 8)
    for name, chosen, chance in (
        ("primitive", None, None),
        ("uniform", options, None),
        ("options", options, 0.1),
    ):
        lane = found[name]
        path, by = lane["path"], lane["by"]
        assert path[0] == mdp.start
        assert len(path) == len(by) + 1
        assert mdp.goal not in path[:-1]
        assert lane["reached"] == (path[-1] == mdp.goal)
        assert lane["expected"] == hitting_times(mdp, chosen, option_chance=chance)[mdp.start, mdp.goal]
        for s, t, option in zip(path, path[1:], by, strict=False):
            if option >= 0:
                assert t == mdp.successors[s, options.policy[option, s]]
            else:
                assert t in mdp.successors[s]
    assert max(found["primitive"]["by"]) == -1
    assert max(found["options"]["by"]) >= 0
    # The default race is a lesson: under the uniform choice options lose, seldom chosen they win.
    lanes = post(client, "race", map=ROOMS)
    expected = [lanes[name]["expected"] for name in ("options", "primitive", "uniform")]
    assert expected == pytest.approx([451.24, 1111.35, 1766.55], abs=0.01)


def test_an_option_in_a_race_runs_to_its_end(client: httpx.Client) -> None:
    options = eo.discover(eo.maze("four-rooms"), n_options=8)
    for seed in range(4):
        lane = post(client, "race", map=ROOMS, n_options=8, seed=seed)["uniform"]
        path, by = lane["path"], lane["by"]
        for i in range(1, len(by)):
            if by[i - 1] >= 0 and options.policy[by[i - 1], path[i]] >= 0:
                assert by[i] == by[i - 1]


def test_diffusion_times_are_the_curve_of_the_library(client: httpx.Client) -> None:
    events = lines(client, "measure", map=ROOMS, n_options=8)
    mdp = eo.maze("four-rooms")
    eigen = eo.discover(mdp, n_options=8)
    for method, options in (
        ("eigen", eigen),
        ("bottleneck", eo.discover(mdp, method="bottleneck")),
        ("random", eo.discover(mdp, 8, "random", rng=0)),
    ):
        found = [(e["n"], e["time"]) for e in events if e.get("method") == method]
        assert [n for n, _ in found] == list(range(1, len(options) + 1))
        assert [t for _, t in found] == pytest.approx(diffusion_curve(mdp, options)[1:], rel=1e-8)
    assert events[0]["primitive"] == diffusion_time(mdp)
    with_options = next(e["reach_with"] for e in events if "reach_with" in e)
    for text, chosen in ((events[0]["reach"], None), (with_options, eigen)):
        mean = hitting_times(mdp, chosen).sum(axis=0) / 103
        assert np.array_equal(unpacked(text, "<f4"), mean.astype("<f4"))
    best = best_option_chance(mdp, eigen)
    assert {"best": best.chance, "time": best.diffusion_time, "uniform": best.uniform_diffusion_time} in events
    shown = {e["chance"]: e["time"] for e in events if "chance" in e}
    assert shown[0.1] == diffusion_time(mdp, eigen, option_chance=0.1)


def test_methods_are_compared_by_the_curves_of_the_library(client: httpx.Client) -> None:
    mdp = eo.maze("i-maze")
    text = "\n".join(endpoints.drawn(mdp))
    for method in ("eigen", "covering"):
        chosen = {"n_options": 4, "method": method, "option_chance": 0.2}
        head, *points = lines(client, "compare", map=text, **chosen)
        options = eo.discover(mdp, 4, method)
        assert (head["labels"], head["mean_length"]) == (list(options.labels), options.mean_length.tolist())
        assert np.array_equal(unpacked(head["policies"], "i1").reshape(4, 19), options.policy)
        assert [p["n"] for p in points] == [0, 1, 2, 3, 4]
        assert [p["time"] for p in points] == pytest.approx(
            diffusion_curve(mdp, options, option_chance=0.2), rel=1e-8
        )


def test_a_method_without_options_says_so_and_the_others_go_on(client: httpx.Client) -> None:
    events = lines(client, "measure", map=open_map(4, 4), n_options=2)
    assert "no doorway" in next(e["error"] for e in events if e.get("method") == "bottleneck")
    assert any("best" in e for e in events)


def test_learning_curves_are_those_of_the_library(client: httpx.Client) -> None:
    events = lines(client, "learn", map="S...\n.#..\n...G", n_options=4, seed=5)
    mdp = eo.maze("S...\n.#..\n...G\n")
    assert (events[0]["shortest"], events[0]["max_steps"], events[0]["n"]) == (5, 100, 4)
    runs, episodes = events[-1]["runs"], events[0]["episodes"]
    for method, chosen in (("primitive", None), ("options", eo.discover(mdp, n_options=4))):
        record = q_learning(mdp, chosen, runs=runs, episodes=episodes, max_steps=100, rng=5)
        last = [e for e in events if e.get("method") == method][-1]
        assert last["mean"] == np.round(record.mean(), 4).tolist()


def test_samples_become_the_laplacian(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "SAMPLING_INTERVAL", 0.0)
    head, *looks, end = lines(client, "sample", map=ROOMS, seed=1)
    mdp = eo.maze("four-rooms")
    L = eo.laplacian(eo.graph(mdp), "combinatorial")
    assert end == {"done": True}
    rows, cols, data = unpacked(looks[-1]["gram"], "<i2").reshape(3, -1)
    G = np.zeros((104, 104))
    G[rows, cols] = data
    assert np.array_equal(G, 2 * L.toarray())
    assert sum(len(look["new"]) // 2 for look in looks) == looks[-1]["rows"] == head["transitions"]
    assert looks[-1]["agreement"] == [1.0] * 6
    exact, found = (unpacked(text, "<f4") for text in (head["exact"], looks[-1]["vectors"]))
    assert found == pytest.approx(exact, abs=1e-6)
    counts = [look["rows"] for look in looks]
    assert counts == sorted(counts)
    assert looks[0]["agreement"][0] < 0.9
    shown = [share for look in looks for share in look["agreement"]]
    assert all(share == round(share, 4) for share in shown)
    assert any(share != round(share, 3) for share in shown)


def test_the_options_file_is_what_save_writes(client: httpx.Client, tmp_path: Path) -> None:
    answer = client.post("/api/options", json={"map": ROOMS, "n_options": 6, "operator": "combinatorial"})
    file = tmp_path / "options.safetensors"
    file.write_bytes(answer.content)
    mdp = eo.maze("four-rooms")
    found = eo.load_options(file, mdp)
    wanted = eo.discover(mdp, n_options=6, operator="combinatorial")
    assert np.array_equal(found.policy, wanted.policy)
    assert found.labels == wanted.labels
    assert found.provenance["operator"] == "combinatorial"


# Atari results


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "atari"
    (folder / "freeway").mkdir(parents=True)
    for name in ("freeway/1-where.png", "freeway/1.webm", "secret.png", "freeway/notes.txt"):
        (folder / name).write_bytes(b"bytes of " + name.encode())
    (tmp_path / "outside.png").write_bytes(b"outside")
    option = {
        "label": "option 1",
        "note": "up",
        "heatmap": "freeway/1-where.png",
        "clip": "freeway/1.webm",
        "histogram": "freeway/missing.png",
    }
    bad = {"label": "option 2", "heatmap": "../outside.png", "histogram": "freeway/notes.txt", "clip": 3}
    games = [{"name": "Freeway", "options": [option, bad]}]
    (folder / "index.json").write_text(json.dumps({"format": 1, "games": games}), encoding="utf-8")
    return folder


def test_atari_results_appear_where_there_are_some(client: httpx.Client, results: Path) -> None:
    assert client.get("/api/hello").json()["atari"] is False
    assert client.get("/api/atari").json() == {"games": []}
    with serving(app(atari=results)) as other:
        assert other.get("/api/hello").json()["atari"] is True
        (game,) = other.get("/api/atari").json()["games"]
        first, second = game["options"]
        assert (first["heatmap"], first["clip"], first["histogram"]) == (
            "freeway/1-where.png",
            "freeway/1.webm",
            None,
        )
        assert [second[k] for k in ("heatmap", "histogram", "clip")] == [None, None, None]
        assert other.get("/atari/freeway/1-where.png").content == b"bytes of freeway/1-where.png"
        for name in ("secret.png", "index.json", "freeway/notes.txt", "../outside.png", "%2e%2e/outside.png"):
            complaint(other.get(f"/atari/{name}"), 404)


@pytest.mark.parametrize("text", ["", "[]", '{"format": 2, "games": []}', '{"format": 1, "games": [{}]}'])
def test_a_broken_index_is_named(results: Path, text: str) -> None:
    (results / "index.json").write_text(text, encoding="utf-8")
    with serving(app(atari=results)) as other:
        assert "index.json of the Atari results" in complaint(other.get("/api/atari"), 422)


def test_a_taken_port_is_really_taken() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname(), timeout=60):
        pass
