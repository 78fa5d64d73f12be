"""The studio: draw a maze in the browser and see its options at once.

A small server (`server`) and one page (`page/`). A request of the page is checked in `requests` and computed by the
library's public functions in `endpoints`; nothing leaves this machine. Only this package imports the web server.
"""

from __future__ import annotations

try:
    from eigenoptions.studio.server import app, serve
except ModuleNotFoundError as missing:
    if (missing.name or "").split(".")[0] not in ("starlette", "uvicorn", "anyio"):
        raise
    raise ValueError("the studio needs starlette and uvicorn: pip install 'eigenoptions[studio]'") from None

__all__ = ["app", "serve"]
