"""The studio on this machine: a small web server, and the browser that opens it."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader, RawIOBase
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from threading import BoundedSemaphore
from time import monotonic
from typing import Any

from eigenoptions.studio.folder import write_studio


def serve_studio(
    source: str | Path = "four-rooms",
    *,
    port: int = 8017,
    open_browser: bool = True,
) -> None:
    """Serve the studio on this machine and open it in the browser, until Ctrl-C.

    Parameters
    ----------
    source : str or Path, default="four-rooms"
        The maze that the page opens with, as in `write_studio`.
    port : int, default=8017
        Port of 127.0.0.1. If it is taken, a free one is used.
    open_browser : bool, default=True
        Whether to open the browser, or only to print the address.
    """
    with TemporaryDirectory() as folder:
        write_studio(folder, source)
        server = make_server(folder, port)
        address = f"http://127.0.0.1:{server.server_port}/"
        with server, suppress(KeyboardInterrupt):
            print(f"{address}  (Ctrl-C ends it)", flush=True)
            if open_browser:
                # The server listens already: the request waits until it is served.
                webbrowser.open(address)
            server.serve_forever()


def make_server(
    folder: str | Path,
    port: int = 0,
    *,
    patience: float = 5.0,
    max_threads: int = 32,
) -> ThreadingHTTPServer:
    """Make a server of the files of a folder, which listens on 127.0.0.1 at once.

    Parameters
    ----------
    folder : str or Path
        The files.
    port : int, default=0
        If it is taken or 0, the system chooses a free one: ``server.server_port``.
    patience : float, default=5.0
        Seconds in which a client must have sent its whole request.
    max_threads : int, default=32
        Number of requests that are answered at the same time. Others wait.
    """
    handler = partial(_Handler, directory=str(folder), patience=patience)
    try:
        return _Server(("127.0.0.1", port), handler, max_threads)
    except OSError:
        return _Server(("127.0.0.1", 0), handler, max_threads)


class _Server(ThreadingHTTPServer):
    """A server with one thread per request, and a limit of their number."""

    def __init__(
        self,
        address: tuple[str, int],
        handler: Callable[..., SimpleHTTPRequestHandler],
        max_threads: int,
    ) -> None:
        self._free_threads = BoundedSemaphore(max_threads)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._free_threads.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free_threads.release()


class _RequestBytes(RawIOBase):
    """What a client sends, until its time is over.

    A timeout of the socket alone begins again with each byte, so that a client which
    sends one byte from time to time would occupy a thread for ever.
    """

    def __init__(self, connection: socket, patience: float) -> None:
        self._connection = connection
        self._deadline = monotonic() + patience

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has arrived; raise TimeoutError after the deadline."""
        remaining = self._deadline - monotonic()
        if remaining <= 0:
            raise TimeoutError
        # It also limits how long each part of the answer may take to be received.
        self._connection.settimeout(remaining)
        return self._connection.recv_into(buffer)


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *args: Any, patience: float, **keywords: Any) -> None:
        self._patience = patience
        # The base class answers the request in its constructor.
        super().__init__(*args, **keywords)

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = BufferedReader(_RequestBytes(self.connection, self._patience))

    # Some machines say that scripts are plain text, which browsers refuse to run.
    extensions_map = {  # noqa: RUF012 (the base class has it in this form)
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
    }

    def send_head(self) -> Any:
        """Answer "not found" also where no file can have the name that is asked for."""
        try:
            return super().send_head()
        except ValueError:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""
