"""Keeping to oneself: who may ask the studio's server, and the headers that keep its page from asking anybody else."""

from __future__ import annotations

import ipaddress
import logging
import socket

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("eigenoptions")

MANNERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}
LOCAL = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::", "")


class Manners:
    """Refuses what comes from elsewhere, and puts the headers that keep the page to itself on every answer.

    A page of another site could send requests here through the visitor's browser, or reach this server under a name of
    its own (DNS rebinding). Both show in the headers Host, Origin and Sec-Fetch-Site.
    """

    def __init__(self, app: ASGIApp, host: str = "127.0.0.1") -> None:
        self.app, self.host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def polite(message: Message) -> None:
            if message["type"] == "http.response.start":
                for name, value in MANNERS.items():
                    MutableHeaders(scope=message).setdefault(name, value)
            await send(message)

        reason = self.reason(headers)
        if reason:
            await JSONResponse({"error": reason}, 403)(scope, receive, polite)
            return
        try:
            await self.app(scope, receive, polite)
        except Exception:  # the visitor has been told in one line; further up it would cost the connection
            log.exception("the studio failed")

    def reason(self, headers: Headers) -> str:
        """Why a request is refused, or nothing."""
        name = headers.get("host", "")
        if not self.knows(name):
            return "this server does not answer to that Host: open it by the address it printed"
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{name}":
            return "requests from other origins are refused"
        if headers.get("sec-fetch-site", "same-origin") in ("cross-site", "same-site") and origin is None:
            if headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document":
                return ""  # a link on another page leads here: it can look, but not drive
            return "requests from other sites are refused"
        return ""

    def knows(self, name: str) -> bool:
        """Whether a Host header names this server."""
        host = name.rsplit(":", 1)[0] if name.rsplit("]", 1)[-1].count(":") else name
        host = host.strip("[]").lower()
        if self.host not in EVERYWHERE:
            return host in (*LOCAL, self.host.lower())
        try:
            ipaddress.ip_address(host)  # no name, so nobody can have pointed it here
        except ValueError:
            return host in (*LOCAL, socket.gethostname().lower())
        return True
