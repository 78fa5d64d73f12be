"""How fast the studio answers, from a run with the browser: ``python benchmarks/studio.py``.

A maze is opened, walls are drawn by mouse, and for each edit two times are read: the server's own (its Server-Timing
header, which the page shows too) and the whole way in the browser, from sending the maze to the last pixel drawn. Also
the size of the first page load. The same for the page without a server, which computes in the browser. Without
starlette, playwright or chromium nothing is measured, which is reported.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import record

from eigenoptions.mdp.maps import open_map, perfect_map, rooms_map

LIMITS = {"15 x 15": 100, "50 x 50": 1000}  # milliseconds of server time
MOST_LOADED = 300  # kB
MOST_STATIC = 1000  # kB
EDITS = 12
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
LOADED = "performance.getEntries().reduce((n, e) => n + (e.transferSize || 0), 0)"


def mazes() -> dict[str, list[str]]:
    """Kinds of maze, as text, by size."""
    if record.QUICK:
        return {"15 x 15": [rooms_map(2, 2, 6)]}
    return {
        "15 x 15": [open_map(15, 15), rooms_map(2, 2, 6), perfect_map(7, 7)],
        "50 x 50": [open_map(50, 50), rooms_map(4, 4, 11), perfect_map(24, 24)],
    }


def linked(text: str) -> str:
    """A map as the page's address writes it."""
    rows = text.split("\n")
    bits = np.packbits([c != "#" for c in "".join(rows)], bitorder="little").tobytes()
    return f"{len(rows)}x{len(rows[0])}.{base64.urlsafe_b64encode(bits).decode().rstrip('=')}.."


def edits(page: Any, address: str, text: str) -> tuple[list[float], list[float], int]:
    """Server time and time in the browser of each edit, and the number of states."""
    page.goto("about:blank")
    page.goto(f"{address}#n=64&m={linked(text)}")
    page.wait_for_selector("html[data-ready]")
    page.click("[data-tool=wall]")
    box = page.locator("#board").bounding_box()
    rows = text.split("\n")
    free = [(y, x) for y, row in enumerate(rows) for x, c in enumerate(row) if c != "#"]
    server, whole = [], []
    for y, x in free[:: len(free) // EDITS][1 : EDITS + 1]:
        before = page.locator("html").get_attribute("data-ready")
        page.mouse.click(
            box["x"] + (x + 0.5) * box["width"] / len(rows[0]),
            box["y"] + (y + 0.5) * box["height"] / len(rows),
        )
        page.wait_for_function("(old) => document.documentElement.dataset.ready !== old", arg=before)
        page.wait_for_timeout(150)
        server.append(float(page.locator("#timing").get_attribute("data-server")))
        whole.append(float(page.locator("#timing").get_attribute("data-picture")))
    return server, whole, len(free)


class Quiet(SimpleHTTPRequestHandler):
    """A file server that prints nothing."""

    def log_message(self, *args: Any) -> None:
        """Print nothing."""


def without_server(page: Any) -> None:
    """Size of the static page, and the time from an edit to the picture in the browser."""
    from eigenoptions.studio import write_static

    with TemporaryDirectory() as folder:
        size = sum(file.stat().st_size for file in write_static(folder)) / 1000
        record.aim("studio without a server, all files", size, most=MOST_STATIC, unit="kB")
        with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as files:
            threading.Thread(target=files.serve_forever, daemon=True).start()
            worst = 0.0
            for text in mazes()["15 x 15"]:
                _, whole, states = edits(page, f"http://127.0.0.1:{files.server_port}/", text)
                worst = max(worst, median(whole))
                print(
                    f"{'static':>8} {states:>7} {'':>18} {'':>6} {LIMITS['15 x 15']:>6} {median(whole):>15.1f}"
                )
            limit = LIMITS["15 x 15"]
            record.aim("studio without a server, edit to picture, 15 x 15", worst, most=limit, unit="ms")
            files.shutdown()


def main() -> int:
    try:
        import starlette  # noqa: F401
        from playwright.sync_api import sync_playwright
    except ImportError as missing:
        record.skip("studio", f"{missing.name} is not installed (pip install 'eigenoptions[dev]')")
        return 0
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        record.skip("studio", "there is no chromium")
        return 0
    command = [sys.executable, "-c", "import sys; from eigenoptions.cli import main; sys.exit(main())"]
    args = ["studio", "--no-browser", "--port", "0"]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen([*command, *args], stdout=subprocess.PIPE, encoding="utf-8", env=env) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[0]
        try:
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(executable_path=browser, args=FLAGS)
                page = chromium.new_page(viewport={"width": 1400, "height": 920})
                page.goto(address)
                page.wait_for_selector("html[data-ready]")
                loaded = page.evaluate(LOADED) / 1000
                record.aim(
                    "studio, first page load, first picture included", loaded, most=MOST_LOADED, unit="kB"
                )
                heads = f"{'server ms: median':>18} {'worst':>6} {'limit':>6} {'in the browser':>15}"
                print(f"{'maze':>8} {'states':>7} {heads}")
                for size, texts in mazes().items():
                    worst = 0.0
                    for text in texts:
                        mine, whole, states = edits(page, address, text)
                        worst = max(worst, median(mine))
                        print(
                            f"{size:>8} {states:>7} {median(mine):>18.1f} {max(mine):>6.1f} {LIMITS[size]:>6} "
                            f"{median(whole):>15.1f}"
                        )
                    record.aim(
                        f"studio, edit to picture, {size}, server", worst, most=LIMITS[size], unit="ms"
                    )
                without_server(page)
                chromium.close()
        finally:
            server.send_signal(signal.SIGINT)
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
