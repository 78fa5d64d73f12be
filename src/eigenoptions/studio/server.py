"""The studio on this machine: a small web server, and the browser that opens it."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
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


def make_server(folder: str | Path, port: int = 0) -> ThreadingHTTPServer:
    """Make a server of the files of a folder, which listens on 127.0.0.1 at once.

    If `port` is taken or 0, the system chooses a free one: ``server.server_port``.
    """
    handler = partial(_Handler, directory=str(folder))
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError:
        return ThreadingHTTPServer(("127.0.0.1", 0), handler)


class _Handler(SimpleHTTPRequestHandler):
    # Some machines say that scripts are plain text, which browsers refuse to run.
    extensions_map = {  # noqa: RUF012 (the base class has it in this form)
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
    }

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""
