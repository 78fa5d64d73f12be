"""The studio: draw a maze in the browser and see its options at once.

A small server (`server`) and one page (`page/`). A request of the page is checked in `requests` and computed by the
library's public functions in `endpoints`; nothing leaves this machine. Only this package imports the web server.
`write_static` writes the page as a folder for any web host, which computes small mazes in the browser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eigenoptions.studio.static import write_static

if TYPE_CHECKING:
    from eigenoptions.studio.server import app, serve

__all__ = ["app", "serve", "write_static"]


def __getattr__(name: str) -> Any:
    """`app` and `serve`, which need the web server."""
    if name not in ("app", "serve"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from eigenoptions.studio import server
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] not in ("starlette", "uvicorn", "anyio"):
            raise
        raise ValueError(
            "the studio needs starlette and uvicorn: pip install 'eigenoptions[studio]'"
        ) from None
    return getattr(server, name)
