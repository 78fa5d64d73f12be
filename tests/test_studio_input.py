"""Bad requests to the studio, other sites, and faults of its own: one line each, and the server stays up."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eigenoptions.cli import main
from eigenoptions.mdp.maps import open_map
from eigenoptions.studio import app, endpoints
from eigenoptions.studio.requests import MAX_BODY_BYTES, Request
from eigenoptions.studio.security import LocalOnly
from eigenoptions.studio.server import MAX_WORKERS, listen
from tests.test_studio import PIECES, ROOMS, complaint, lines, post, serving


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with serving(app()) as found:
        yield found


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("picture", {"map": "a"}, "unknown character 'a' at line 1 column 1"),
        ("picture", {"map": ""}, "the map is empty"),
        ("picture", {"map": "##\n##"}, "no free cell"),
        ("picture", {"map": "S"}, "nowhere to go"),
        ("picture", {"map": "SS"}, "2 starts"),
        ("picture", {"map": ".#.#.\n#####"}, "nowhere to go"),
        ("picture", {}, "the map is empty"),
        ("picture", {"map": 3}, "map must be text, got 3"),
        ("picture", {"map": "." * 65}, "at most 64 x 64 cells, got 1 x 65"),
        ("picture", {"map": ".\n" * 90}, "at most 64 x 64 cells, got 90 x 1"),
        ("picture", {"map": ROOMS, "gamma": 1}, "gamma must be in [0, 0.999], got 1"),
        ("picture", {"map": ROOMS, "gamma": True}, "gamma must be in [0, 0.999], got True"),
        ("picture", {"map": ROOMS, "gamma": "0.9"}, "gamma must be in [0, 0.999], got '0.9'"),
        ("picture", {"map": ROOMS, "shown": 65}, "shown must be a whole number in 1..64, got 65"),
        ("picture", {"map": ROOMS, "shown": 10**400}, "shown must have at most 60 characters, got 401"),
        ("picture", {"map": ROOMS, "operator": "magic"}, "operator must be one of normalized"),
        ("picture", {"map": ROOMS, "seed": 1}, "unknown field 'seed'"),
        ("race", {"map": "S.."}, "no goal (G)"),
        ("race", {"map": "S.#G"}, "cannot be reached"),
        ("options", {"map": ROOMS, "n_options": 0}, "n_options must be a whole number in 1..128"),
        ("race", {"map": ROOMS, "option_chance": 1}, "option_chance must be in [0, 0.999], got 1"),
        ("random", {"rows": 2}, "rows must be a whole number in 3..64, got 2"),
        ("random", {"kind": "cave"}, "kind must be one of rooms, perfect, open, got 'cave'"),
    ],
)
def test_bad_requests_get_one_line(client: httpx.Client, path: str, body: dict[str, Any], words: str) -> None:
    assert words in complaint(client.post(f"/api/{path}", json=body), 422)


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("measure", open_map(30, 30), "for at most 700 states, got 900"),
        ("measure", PIECES, "2 components with no path between them, so the diffusion time is infinite"),
        ("learn", "..G", "no start (S)"),
        ("learn", "S.#.G", "no path leads from the start to the goal"),
        ("sample", PIECES, "2 components with no path between them"),
        ("compare", PIECES, "diffusion time is infinite"),
        ("sample", open_map(40, 40), "for at most 1000 states"),
    ],
)
def test_streams_end_with_what_went_wrong(client: httpx.Client, path: str, text: str, words: str) -> None:
    assert words in lines(client, path, map=text)[-1]["error"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "must be a JSON object, got list"),
        (b"null", "must be a JSON object"),
        (b'{"gamma": NaN}', "NaN is not a JSON number"),
        (b'{"gamma": 1e999}', "gamma must be in [0, 0.999], got inf"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"map": "\\ud800"}', "unknown character"),
        (b'{"shown": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"' + b"x" * 5000 + b'": 1}', "unknown field"),
    ],
)
def test_malformed_bodies_get_one_line(client: httpx.Client, body: bytes, words: str) -> None:
    answer = client.post("/api/picture", content=body, headers={"content-type": "application/json"})
    assert words in complaint(answer, 422)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    [
        "map",
        "operator",
        "gamma",
        "shown",
        "n_options",
        "seed",
        "kind",
        "rows",
        "cols",
        "option_chance",
        "method",
        "other",
    ]
)
MAPS = st.text(alphabet="#X. SG\n,1é", max_size=60)
PATHS = st.sampled_from(
    ["maze", "random", "picture", "race", "measure", "learn", "sample", "options", "compare"]
)


@given(path=PATHS, body=st.dictionaries(NAMES, JSON | MAPS, max_size=4))
@settings(max_examples=150)
def test_no_object_brings_the_server_down(client: httpx.Client, path: str, body: dict[str, Any]) -> None:
    answer = client.post(
        f"/api/{path}", content=json.dumps(body), headers={"content-type": "application/json"}
    )
    assert answer.status_code in (200, 422)
    if answer.status_code == 422:
        complaint(answer)


@given(path=PATHS, body=st.binary(max_size=200))
@settings(max_examples=100)
def test_no_bytes_bring_the_server_down(client: httpx.Client, path: str, body: bytes) -> None:
    complaint(client.post(f"/api/{path}", content=body, headers={"content-type": "application/json"}), 422)


def test_sizes_kinds_methods_and_addresses_are_checked(client: httpx.Client) -> None:
    headers = {"content-type": "application/json"}
    huge = b'{"map": "' + b"." * MAX_BODY_BYTES + b'"}'
    assert "larger than 256 kB" in complaint(client.post("/api/picture", content=huge, headers=headers), 413)
    plain = client.post("/api/picture", content=b"{}", headers={"content-type": "text/plain"})
    assert "send application/json, not 'text/plain'" in complaint(plain, 415)
    complaint(client.post("/api/picture", content=b"{}"), 415)
    complaint(client.get("/api/picture"), 405)
    for path in ("/api/none", "/../server.py", "/%2e%2e/server.py", "/page/index.html", "/atari/x.png"):
        complaint(client.get(path), 404)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 200),
        ({"host": "localhost:8017"}, 200),
        ({"host": "[::1]:8017"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example:8017"}, 403),
        ({"host": ""}, 403),
        ({"origin": "http://localhost:8017", "host": "localhost:8017"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:9"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, 403),
    ],
)
def test_other_sites_cannot_drive_it(client: httpx.Client, headers: dict[str, str], code: int) -> None:
    assert client.get("/api/hello", headers=headers).status_code == code


def test_who_may_be_named_when_it_listens_everywhere() -> None:
    everywhere = LocalOnly(app(), "0.0.0.0")
    assert everywhere.is_own_host("192.168.1.7:8017")
    assert everywhere.is_own_host("[fe80::1]:8017")
    assert not everywhere.is_own_host("evil.example:8017")
    assert LocalOnly(app(), "box.local").is_own_host("Box.local:8017")


def test_a_fault_of_ours_is_one_line_too_and_the_server_stays_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("secret words")

    with serving(app()) as client:
        with monkeypatch.context() as patch:
            patch.setattr(endpoints, "_spectrum", fail)
            answer = client.post("/api/picture", json={"map": ROOMS})
            assert complaint(answer, 500) == "the studio failed: the terminal shows the error"
            assert answer.headers["content-security-policy"]
        assert client.post("/api/picture", json={"map": ROOMS}).status_code == 200


def test_work_ends_when_its_client_disconnects(monkeypatch: pytest.MonkeyPatch) -> None:
    """All workers get work without an end; the next requests are answered because their clients have gone."""

    def endless(request: Request, alive: endpoints.Alive) -> dict[str, Any]:
        while True:
            alive()
            time.sleep(0.01)

    def stream(request: Request, alive: endpoints.Alive) -> Iterator[dict[str, Any]]:
        yield {"primitive": 1}
        yield endless(request, alive)

    monkeypatch.setitem(endpoints.STREAMS, "measure", (stream, ("map",)))
    monkeypatch.setitem(endpoints.ANSWERS, "race", (endless, ("map",)))
    with serving(app()) as client:
        for _ in range(MAX_WORKERS):
            with client.stream("POST", "/api/measure", json={"map": ROOMS}) as answer:
                assert "primitive" in next(answer.iter_lines())
            with pytest.raises(httpx.ReadTimeout):
                client.post("/api/race", json={"map": ROOMS}, timeout=0.5)
        post(client, "picture", map=ROOMS, shown=3)
        assert lines(client, "compare", map="...", n_options=1)[-1]["n"] == 1


def test_a_port_in_use_gives_the_next_free_one() -> None:
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with listen("127.0.0.1", port) as second:
            assert port < second.getsockname()[1] <= port + 100
    with pytest.raises(ValueError, match=r"port must be in 0\.\.65535, got 70000"):
        listen("127.0.0.1", 70_000)
    with pytest.raises(OSError, match="cannot listen at 203"):
        listen("203.0.113.7", 8017)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nowhere"], "no maze called 'nowhere'"),
        (["--port", "70000"], "port must be in 0..65535, got 70000"),
        (["--host", "203.0.113.7"], "cannot listen at 203.0.113.7"),
    ],
)
def test_the_command_refuses_in_one_line(
    capsys: pytest.CaptureFixture[str], args: list[str], words: str
) -> None:
    assert main(["studio", "--no-browser", *args]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert words in seen.err
    assert seen.err.count("\n") == 1


def test_a_missing_part_is_named() -> None:
    script = (
        "import sys; sys.modules['starlette'] = None; from eigenoptions.cli import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "studio"], capture_output=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 2
    assert (
        done.stderr == "error: the studio needs starlette and uvicorn: pip install 'eigenoptions[studio]'\n"
    )
