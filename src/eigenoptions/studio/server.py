"""The studio's server: a page, a few addresses that answer in JSON, and good manners.

It listens on this machine only, unless told otherwise. Requests from other sites are refused (Host and Origin), bodies
are limited, bad input gets a 4xx with one line, and work whose reader has gone away (a newer edit came) is stopped.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from eigenoptions.mdp import MDP, maze
from eigenoptions.studio import answers, streams
from eigenoptions.studio.gallery import Gallery
from eigenoptions.studio.requests import (
    MOST_BYTES,
    MOST_CELLS,
    MOST_MEASURED,
    MOST_OPTIONS,
    MOST_SHOWN,
    Ask,
    read,
)
from eigenoptions.studio.security import EVERYWHERE, Manners

log = logging.getLogger("eigenoptions")

PAGE = Path(__file__).parent / "page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
PORT, TRIES = 8017, 100
WORKERS = 2
MAZE = ("map",)
PICTURE = ("map", "operator", "gamma", "shown")
SKILLS = ("map", "operator", "gamma", "n_options", "seed")

Alive = Callable[[], None]
Work = Callable[[Ask, Alive], Any]


class Gone(Exception):  # noqa: N818
    """Nobody waits for the answer any more."""


def app(mdp: MDP | None = None, *, host: str = "127.0.0.1", atari: str | Path | None = None) -> Manners:
    """The studio as an ASGI application.

    Parameters
    ----------
    mdp
        The maze the page opens with; None for four rooms.
    host
        The address it is served at: requests that name another are refused.
    atari
        Folder with results of the Atari part, if there are any; see docs/studio.md for its layout.
    """
    gallery = Gallery(atari)
    first = None if mdp is None else answers.drawn(mdp)
    limiter = anyio.CapacityLimiter(WORKERS)

    async def hello(request: Request) -> Response:
        return JSONResponse(
            {
                "mazes": answers.built_in(),
                "maze": first,
                "limits": {
                    "cells": MOST_CELLS,
                    "shown": MOST_SHOWN,
                    "options": MOST_OPTIONS,
                    "measured": MOST_MEASURED,
                },
                "atari": gallery.found,
            }
        )

    def at_once(work: Work, *names: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            begin = time.perf_counter()
            ask = read(await _body(request), *names)
            found = await _unless_gone(request, partial(work, ask), limiter)
            spent = {**(found.pop("ms", None) or {}), "total": 1000 * (time.perf_counter() - begin)}
            timing = ", ".join(f"{name};dur={ms:.2f}" for name, ms in spent.items())
            return JSONResponse(found, headers={"server-timing": timing})

        return answer

    def bit_by_bit(work: Work, *names: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            ask = read(await _body(request), *names)
            return StreamingResponse(_lines(partial(work, ask), limiter), media_type="application/x-ndjson")

        return answer

    async def options(request: Request) -> Response:
        ask = read(await _body(request), *SKILLS)
        data = await _unless_gone(request, lambda alive: answers.options_file(ask), limiter)
        return Response(data, media_type="application/octet-stream")

    async def games(request: Request) -> Response:
        return JSONResponse(gallery.index())

    async def picture(request: Request) -> Response:
        file = gallery.file(request.path_params["name"])
        if file is None:
            raise HTTPException(404, "no such file in the Atari results")
        return FileResponse(file)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        threading.Thread(target=_warm, daemon=True).start()
        yield

    files = [Route(f"/{file.name}", _static(file)) for file in sorted(PAGE.iterdir()) if file.suffix in TYPES]
    posts = {
        "/api/maze": at_once(answers.normal, *MAZE),
        "/api/random": at_once(answers.random_maze, "kind", "rows", "cols", "seed"),
        "/api/picture": at_once(answers.picture, *PICTURE),
        "/api/race": at_once(answers.race, *SKILLS),
        "/api/measure": bit_by_bit(streams.measure, *SKILLS),
        "/api/learn": bit_by_bit(streams.learn, *SKILLS),
        "/api/sample": bit_by_bit(streams.sample, "map", "seed"),
        "/api/options": options,
    }
    routes = [
        Route("/", _static(PAGE / "index.html")),
        *files,
        Route("/api/hello", hello),
        Route("/api/atari", games),
        Route("/atari/{name:path}", picture),
        *(Route(path, endpoint, methods=["POST"]) for path, endpoint in posts.items()),
    ]
    inner = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={
            HTTPException: _refused,
            ValueError: _wrong,
            ArithmeticError: _wrong,
            MemoryError: _wrong,
            Gone: _gone,
            ClientDisconnect: _gone,
            Exception: _broken,
        },
    )
    return Manners(inner, host)


def serve(
    source: str | Path = "four-rooms",
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    browser: bool = True,
    atari: str | Path | None = None,
) -> None:
    """Run the studio until Ctrl-C.

    Parameters
    ----------
    source
        The maze the page opens with: a name, a path or the text of a map, as `maze` takes it.
    host, atari
        As for `app`.
    port
        Where to listen; if it is taken, the next free one is.
    browser
        Open the page.
    """
    studio = app(maze(source), host=host, atari=atari)
    listener = listen(host, port)
    number = listener.getsockname()[1]
    shown = "127.0.0.1" if host in EVERYWHERE else f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{number}/"
    print(f"{address}  (Ctrl-C to stop)", flush=True)
    config = uvicorn.Config(studio, log_level="error", ws="none", access_log=False)
    config.timeout_graceful_shutdown = 2
    if browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    level = log.level
    log.setLevel(logging.ERROR)  # that a maze is in pieces is said on the page
    try:
        with suppress(KeyboardInterrupt):  # the way to end it
            uvicorn.Server(config).run(sockets=[listener])
    finally:
        log.setLevel(level)
        listener.close()


def listen(host: str, port: int) -> socket.socket:
    """A socket at the first free port from `port` on."""
    if not 0 <= port <= 65535:
        raise ValueError(f"port must be in 0..65535, got {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, min(port + TRIES, 65536)):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
            listener.listen(128)
            return listener
        except OSError as error:
            listener.close()
            if error.errno not in (13, 48, 98, 10013, 10048):  # taken, or not allowed
                raise OSError(f"cannot listen at {host}: {error.strerror or error}") from None
    raise OSError(f"no free port from {port} to {number}: give another with --port")


async def _body(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, f"send application/json, not {kind[:40] or 'nothing'!r}")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise HTTPException(
                413, f"the request is larger than {MOST_BYTES // 1024} kB: draw a smaller maze"
            )
    return bytes(body)


async def _unless_gone(request: Request, work: Callable[[Alive], Any], limiter: anyio.CapacityLimiter) -> Any:
    """The result of work in a thread; when the reader goes away, `alive` raises `Gone` in there."""
    gone = threading.Event()

    def alive() -> None:
        if gone.is_set():
            raise Gone

    def run() -> Any:
        alive()
        return work(alive)

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone.set()

    result, failure = None, None
    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        try:
            result = await anyio.to_thread.run_sync(run, limiter=limiter)
        except Exception as error:  # out of the group as it is, not wrapped
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return result


async def _lines(
    work: Callable[[Alive], Iterator[Any]], limiter: anyio.CapacityLimiter
) -> AsyncIterator[bytes]:
    """Events of work in a thread, each as a line of JSON; what goes wrong is the last line."""
    gone = threading.Event()
    send, receive = anyio.create_memory_object_stream[bytes](4)

    def alive() -> None:
        if gone.is_set():
            raise Gone

    def emit(event: Any) -> None:
        alive()
        try:
            anyio.from_thread.run(send.send, json.dumps(event).encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise Gone from None

    def run() -> None:
        try:
            for event in work(alive):
                emit(event)
        except Gone:
            return
        except (ValueError, ArithmeticError, MemoryError) as error:
            emit({"error": _one_line(error)})
        except Exception:
            log.exception("the studio failed")
            emit({"error": "something went wrong here; the terminal says what"})

    async def produce() -> None:
        async with send:
            await anyio.to_thread.run_sync(run, limiter=limiter)

    async with anyio.create_task_group() as group, receive:
        try:
            group.start_soon(produce)
            async for line in receive:
                yield line
        finally:
            gone.set()
            receive.close()


def _static(file: Path) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return FileResponse(file, media_type=TYPES[file.suffix])

    return answer


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


async def _wrong(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": _one_line(error)}, 422)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": _one_line(Exception(error.detail))}, error.status_code, error.headers)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=499)


async def _broken(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "something went wrong here; the terminal says what"}, 500)


def _warm() -> None:
    """Load compiled kernels before the first request needs them."""
    rooms = "\n".join(answers.built_in()[0]["map"])
    answers.picture(Ask(map=rooms), lambda: None)
