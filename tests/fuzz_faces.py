"""Requests to the studio, and jobs of `parallel`: in this process, and now and then in two others."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import Any

import httpx
import numpy as np
from tests.fuzz_given import LINE, Calls, Given, entered

import eigenoptions as eo

# Right values of every field; one example damages some of them.
FIELDS: dict[str, Any] = {
    "map": f"{LINE}\n.#..",
    "operator": "combinatorial",
    "gamma": 0.5,
    "shown": 2,
    "n_options": 2,
    "option_chance": None,
    "method": "eigen",
    "seed": 1,
    "kind": "rooms",
    "rows": 5,
    "cols": 5,
}
MAPS = (
    "",
    "S",
    "#",
    "....",
    "S..G",
    "2,3\n...\n...",
    "G\nS",
    ".#.",
    "\x00",
    "S" * 65,
    ".\n" * 70,
    "four-rooms",
    "../x",
)


@cache
def studio() -> Any:
    from eigenoptions.studio import app

    return app()


def sent(path: str, body: bytes, **headers: str) -> httpx.Response:
    async def request() -> httpx.Response:
        transport = httpx.ASGITransport(studio(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8017") as client:
            return await client.post(
                f"/api/{path}", content=body, headers={"content-type": "application/json"} | headers
            )

    return asyncio.run(request())


def answered(path: str, body: bytes, **headers: str) -> object:
    """What a request gives: a refusal as a ValueError, a failure of the server as a RuntimeError."""
    from eigenoptions.studio.server import FAILURE

    answer = sent(path, body, **headers)
    if answer.status_code >= 500 or FAILURE in answer.text:
        raise RuntimeError(answer.text)
    if answer.status_code >= 400:
        raise ValueError(answer.json()["error"])
    if "json" not in answer.headers["content-type"]:
        return answer.content
    last = json.loads(answer.text.splitlines()[-1])
    if isinstance(last, dict) and "error" in last:
        raise ValueError(last["error"])
    return last


def asked(x: Given, path: str, names: tuple[str, ...]) -> object:
    """A request with right values but for one or two of its fields, or one that is no request."""
    values = {name: FIELDS[name] for name in names}
    odd = [x.a, x.b, float(x.values[0]) if len(x.values) else "", MAPS[x.seed % len(MAPS)]]
    for value in odd[: x.seed % 3]:
        values[names[int(x.rng.integers(len(names)))]] = value
    if "map" in values and x.seed % 5 == 0:
        values["map"] = MAPS[int(x.rng.integers(len(MAPS)))]
    if x.seed % 11 == 0:
        values[str(x.a)] = x.b
    body = json.dumps(values).encode()
    if x.seed % 7 == 0:
        damaged = bytearray(body)
        damaged[int(x.rng.integers(len(body)))] = int(x.rng.integers(256))
        body = bytes(damaged)
    return answered(path, body)


def requests(x: Given) -> object:
    """One address of the studio, with this example's values."""
    from eigenoptions.studio.endpoints import ANSWERS, STREAMS

    every = {**ANSWERS, **STREAMS}
    path = sorted(every)[int(x.rng.integers(len(every)))]
    return asked(x, path, every[path][1])


def twice(job: Any, more: Any = 0) -> Any:
    return 2 * job + more


def mapped(x: Given, engine: str) -> object:
    """Jobs of any kind: the same results as of a loop, or the error of the first job that fails."""
    jobs = [x.a, x.b, x.values, x.seed]
    shared = {"more": x.b} if x.seed % 2 else None
    try:
        expected = [twice(job, **(shared or {})) for job in jobs]
    except Exception as error:
        expected = error
    try:
        found = eo.parallel.pmap(twice, jobs, engine, shared=shared, workers=2)
    except Exception as error:
        if type(error) is not type(expected):
            raise RuntimeError(f"{error!r} instead of {expected!r}") from error
        raise
    if isinstance(expected, Exception):
        raise RuntimeError(f"{found!r} instead of {expected!r}")
    np.testing.assert_equal(found, expected)
    return found


# Requests, which are no calls of a public name.
REQUESTS = [
    requests,
    lambda x: answered("maze", b"{}", host=str(x.a).strip() or "x"),
    lambda x: answered("picture", str(x.a).encode(), origin=f"http://{x.b}"),
]
CALLS: Calls = {
    "parallel.pmap": [
        lambda x: mapped(x, "serial"),
        lambda x: eo.parallel.pmap(x.a, [x.b]),
        lambda x: eo.parallel.pmap(twice, [1, 2], x.a),
        lambda x: eo.parallel.pmap(twice, x.a, workers=x.b),
        lambda x: eo.parallel.pmap(twice, [1], "serial", shared=x.a),
    ],
    "parallel.using": [
        lambda x: entered(eo.parallel.using(x.a, x.b)),
        lambda x: entered(eo.parallel.using("processes", x.a)),
    ],
}
SLOW: Calls = {"parallel.pmap": [lambda x: mapped(x, "processes")]}
