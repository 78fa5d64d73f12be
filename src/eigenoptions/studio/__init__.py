"""The studio: draw a maze in the browser and watch its skills appear.

A small server (`server`) and one hand-written page (`page/`). What the page asks is checked in `asking` and computed
through the library's public functions in `answers` and `streams`; nothing leaves this machine. This is the only door to
the web server.
"""

from __future__ import annotations

try:
    from eigenoptions.studio.server import app, serve
except ModuleNotFoundError as missing:
    if (missing.name or "").split(".")[0] not in ("starlette", "uvicorn", "anyio"):
        raise
    raise ValueError("the studio needs starlette and uvicorn: pip install 'eigenoptions[studio]'") from None

__all__ = ["app", "serve"]
