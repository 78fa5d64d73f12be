"""The studio: draw a maze in the browser and watch its skills appear.

A small server (`server`) and one hand-written page (`page/`). What the page asks is checked in `asking` and computed
through the library's public functions in `answers` and `streams`; nothing leaves this machine. This is the only door to
the web server.
"""

from __future__ import annotations

from eigenoptions.studio.server import app, serve

__all__ = ["app", "serve"]
