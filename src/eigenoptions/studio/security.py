"""Access control: which requests the studio's server answers, and the headers that restrict its page to this server."""

from __future__ import annotations

import ipaddress
import logging
import re
import socket

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("eigenoptions")

SECURITY_HEADERS = {
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
# Host and port of a Host header; an IPv6 address is in brackets.
HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::[0-9]{1,5})?")
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
ALL_INTERFACES = ("0.0.0.0", "::", "")


class LocalOnly:
    """Refuses requests of other sites, and adds the security headers to every response.

    A page of another site could send requests through the visitor's browser, or reach this server under a host name of
    its own (DNS rebinding). Both are visible in the headers Host, Origin and Sec-Fetch-Site.
    """

    def __init__(self, app: ASGIApp, host: str = "127.0.0.1") -> None:
        self.app, self.host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                for name, value in SECURITY_HEADERS.items():
                    MutableHeaders(scope=message).setdefault(name, value)
            await send(message)

        reason = self.refusal(Headers(scope=scope))
        if reason:
            await JSONResponse({"error": reason}, 403)(scope, receive, send_with_headers)
            return
        try:
            await self.app(scope, receive, send_with_headers)
        except Exception:
            # The response has been sent; if the error went on, the connection would be closed.
            log.exception("the studio failed")

    def refusal(self, headers: Headers) -> str:
        """Why a request is refused; empty if it is not."""
        name = headers.get("host", "")
        if not self.is_own_host(name):
            return "this server does not answer to that Host: open it by the address it printed"
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{name}":
            return "requests from other origins are refused"
        if headers.get("sec-fetch-site", "same-origin") in ("cross-site", "same-site") and origin is None:
            # A link on another page may lead here: opening the page changes nothing.
            if headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document":
                return ""
            return "requests from other sites are refused"
        return ""

    def is_own_host(self, name: str) -> bool:
        """Whether a Host header names this server."""
        found = HOST.fullmatch(name.lower())
        if found is None:
            return False
        host = found["address"] or found["name"]
        if self.host not in ALL_INTERFACES:
            return host in (*LOCAL_HOSTS, self.host.lower())
        try:
            # An IP address is no name that another site could point here.
            ipaddress.ip_address(host)
        except ValueError:
            return host in (*LOCAL_HOSTS, socket.gethostname().lower())
        return True
