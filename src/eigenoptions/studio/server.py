"""The studio's server: the page, endpoints that answer in JSON, and streams of JSON lines.

By default it listens on this machine only. Requests of other sites are refused (see `security`), the size of bodies is
limited, bad input gets a 4xx response with one line, and work is stopped when its client has disconnected.
"""

from __future__ import annotations

import asyncio
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
import anyio.from_thread
import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HTTPRequest
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from eigenoptions.mdp import MDP, maze
from eigenoptions.studio import endpoints
from eigenoptions.studio.gallery import Gallery
from eigenoptions.studio.requests import MAX_BODY_BYTES, Request, parse
from eigenoptions.studio.security import ALL_INTERFACES, LocalOnly

log = logging.getLogger("eigenoptions")

PAGE = Path(__file__).parent / "page"
MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
DEFAULT_PORT, PORTS_TRIED = 8017, 100
# Requests that compute at the same time, and streams besides them.
MAX_WORKERS = 2
# Seconds that the head, and then the body, of a request may take to arrive.
MAX_REQUEST_SECONDS = 10.0
# Codes of the system's errors that a port is taken or reserved (Linux, macOS, Windows).
PORT_TAKEN = (13, 48, 98, 10013, 10048)
FAILURE = "the studio failed: the terminal shows the error"

Endpoint = Callable[[HTTPRequest], Awaitable[Response]]
Work = Callable[[Request, endpoints.Alive], Any]


# Errors of a request, which are answered with one line.
BAD_INPUT = (ValueError, ArithmeticError, MemoryError)


def alive(*_: object) -> None:
    """Called by work in a thread: it is cancelled, by an exception, if the client of the request has disconnected."""
    anyio.from_thread.check_cancelled()


def app(mdp: MDP | None = None, *, host: str = "127.0.0.1", atari: str | Path | None = None) -> LocalOnly:
    """The studio as an ASGI application.

    Parameters
    ----------
    mdp
        Maze that the page opens with; None for four rooms.
    host
        Address it is served at: requests that name another host are refused.
    atari
        Folder with results of the Atari part, if there are any; see docs/studio.md for its layout.
    """
    gallery = Gallery(atari)
    first = None if mdp is None else endpoints.drawn(mdp)
    limiter, streams = anyio.CapacityLimiter(MAX_WORKERS), anyio.CapacityLimiter(MAX_WORKERS)

    async def hello(request: HTTPRequest) -> Response:
        return JSONResponse({**endpoints.describe(), "maze": first, "atari": gallery.found})

    async def games(request: HTTPRequest) -> Response:
        return JSONResponse(gallery.index())

    async def game_file(request: HTTPRequest) -> Response:
        file = gallery.file(request.path_params["name"])
        if file is None:
            raise HTTPException(404, "no such file in the Atari results")
        return FileResponse(file)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        threading.Thread(target=_warm_up, daemon=True).start()
        yield

    posts = {
        **{name: _answer(*endpoint, limiter) for name, endpoint in endpoints.ANSWERS.items()},
        **{name: _stream(*endpoint, streams) for name, endpoint in endpoints.STREAMS.items()},
    }
    files = [file for file in sorted(PAGE.iterdir()) if file.suffix in MEDIA_TYPES]
    routes = [
        Route("/", _static(PAGE / "index.html")),
        *(Route(f"/{file.name}", _static(file)) for file in files),
        Route("/api/hello", hello),
        Route("/api/atari", games),
        Route("/atari/{name:path}", game_file),
        *(Route(f"/api/{name}", endpoint, methods=["POST"]) for name, endpoint in posts.items()),
    ]
    handlers = dict.fromkeys((HTTPException, *BAD_INPUT, ClientDisconnect, Exception), _error_response)
    return LocalOnly(Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers), host)


def serve(
    source: str | Path = "four-rooms",
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    browser: bool = True,
    atari: str | Path | None = None,
) -> None:
    """Run the studio until Ctrl-C.

    Parameters
    ----------
    source
        Maze that the page opens with: a name, a path or the text of a map, as in `maze`.
    host, atari
        As in `app`.
    port
        Port to listen on; if it is taken, the next free one is used.
    browser
        Open the page in the browser.
    """
    studio = app(maze(source), host=host, atari=atari)
    listener = listen(host, port)
    shown = "127.0.0.1" if host in ALL_INTERFACES else f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}/"
    print(f"{address}  (Ctrl-C to stop)", flush=True)
    config = uvicorn.Config(studio, log_level="error", http=Impatient, ws="none", access_log=False)
    config.timeout_graceful_shutdown = 2
    if browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    level = log.level
    # The page shows what the library notes about a maze.
    log.setLevel(logging.ERROR)
    try:
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])
    finally:
        log.setLevel(level)
        listener.close()


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on the first free port from `port` on."""
    if not 0 <= port <= 65535:
        raise ValueError(f"port must be in 0..65535, got {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, min(port + PORTS_TRIED, 65536)):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
            listener.listen(128)
            return listener
        except OSError as error:
            listener.close()
            if error.errno not in PORT_TAKEN:
                raise OSError(f"cannot listen at {host}: {error.strerror or error}") from None
    raise OSError(f"no free port from {port} to {number}: give another with --port")


def _answer(work: Work, names: tuple[str, ...], limiter: anyio.CapacityLimiter) -> Endpoint:
    """An endpoint that responds with what `work` returns: a JSON object, or the bytes of a file."""

    async def endpoint(http: HTTPRequest) -> Response:
        begin = time.perf_counter()
        request = parse(await _body(http), *names)
        found = await _unless_disconnected(http, partial(work, request, alive), limiter)
        if isinstance(found, bytes):
            return Response(found, media_type="application/octet-stream")
        spent = {**found.pop("ms", {}), "total": 1000 * (time.perf_counter() - begin)}
        timing = ", ".join(f"{name};dur={ms:.2f}" for name, ms in spent.items())
        return JSONResponse(found, headers={"server-timing": timing})

    return endpoint


def _stream(work: Work, names: tuple[str, ...], limiter: anyio.CapacityLimiter) -> Endpoint:
    """An endpoint that responds with the events of `work`, one JSON line each."""

    async def endpoint(http: HTTPRequest) -> Response:
        request = parse(await _body(http), *names)
        return StreamingResponse(_lines(work(request, alive), limiter), media_type="application/x-ndjson")

    return endpoint


def _static(file: Path) -> Endpoint:
    async def endpoint(request: HTTPRequest) -> Response:
        return FileResponse(file, media_type=MEDIA_TYPES[file.suffix])

    return endpoint


async def _body(request: HTTPRequest) -> bytes:
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, f"send application/json, not {kind[:40] or 'nothing'!r}")
    body = bytearray()
    with anyio.move_on_after(MAX_REQUEST_SECONDS):
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                limit = f"{MAX_BODY_BYTES // 1024} kB"
                raise HTTPException(413, f"the request is larger than {limit}: draw a smaller maze")
        return bytes(body)
    raise HTTPException(
        408, f"the request did not arrive within {MAX_REQUEST_SECONDS:g} seconds: send it again"
    )


class Impatient(H11Protocol):
    """HTTP that closes connections whose request does not arrive: those of a client that never ends it would stay."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait(True)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request, and go on waiting while its head is not complete."""
        super().data_received(data)
        self._wait(self.cycle is None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._wait(False)
        super().connection_lost(exc)

    def _wait(self, on: bool) -> None:
        if on and self._waiting is None:
            self._waiting = self.loop.call_later(MAX_REQUEST_SECONDS, self.transport.close)
        elif not on and self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


async def _unless_disconnected(
    request: HTTPRequest, work: Callable[[], Any], limiter: anyio.CapacityLimiter
) -> Any:
    """The result of work in a thread, which is cancelled when the client does not wait any more."""
    with anyio.CancelScope() as scope:

        async def watch() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            scope.cancel()

        watcher = asyncio.create_task(watch())
        try:
            return await anyio.to_thread.run_sync(work, limiter=limiter)
        finally:
            watcher.cancel()
    raise ClientDisconnect


async def _lines(events: Iterator[Any], limiter: anyio.CapacityLimiter) -> AsyncIterator[bytes]:
    """Events, each computed in a thread, as lines of JSON; an error is the last line."""

    def next_line() -> bytes:
        try:
            event = next(events, None)
        except BAD_INPUT as error:
            event = {"error": _one_line(error)}
        except Exception:
            log.exception("the studio failed")
            event = {"error": FAILURE}
        return b"" if event is None else json.dumps(event).encode() + b"\n"

    while line := await anyio.to_thread.run_sync(next_line, limiter=limiter):
        yield line


def _one_line(error: BaseException | str) -> str:
    return " ".join(str(error).split()) or type(error).__name__


async def _error_response(request: HTTPRequest, error: Exception) -> Response:
    if isinstance(error, ClientDisconnect):
        return Response(status_code=499)
    if isinstance(error, HTTPException):
        return JSONResponse({"error": _one_line(error.detail)}, error.status_code, error.headers)
    if isinstance(error, BAD_INPUT):
        return JSONResponse({"error": _one_line(error)}, 422)
    return JSONResponse({"error": FAILURE}, 500)


def _warm_up() -> None:
    """Load compiled kernels before the first request needs them."""
    endpoints.picture(Request(map="\n".join(endpoints.drawn(maze("four-rooms")))), lambda *_: None)
