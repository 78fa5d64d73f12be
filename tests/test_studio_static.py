"""The studio without a server: what the page computes in the browser is what the library computes."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions.cli import main
from eigenoptions.evaluation import best_option_chance, diffusion_curve, hitting_times
from eigenoptions.mdp.maps import open_map, perfect_map, rooms_map
from eigenoptions.spectra import OPERATORS
from eigenoptions.studio import write_static
from eigenoptions.studio.endpoints import drawn

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if BROWSER is None:
    pytest.skip("no chromium on this machine: the page is not tested", allow_module_level=True)

from playwright.sync_api import Page, expect, sync_playwright  # noqa: E402

SECOND = 1000.0
MAPS = {
    **{name: "\n".join(drawn(eo.maze(name))) for name in ("four-rooms", "i-maze")},
    "symmetric": rooms_map(2, 2, 5, centred=True),
    "corridors": perfect_map(4, 6),
    "open": open_map(9, 6),
    "pieces": "...#...\n.S.#..G",
}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The static page in a browser, served by nothing but a file server; it may not complain in the console."""
    folder = tmp_path_factory.mktemp("static")
    assert main(["studio", "--static", str(folder)]) == 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    troubles: list[str] = []
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=BROWSER, args=flags, timeout=300 * SECOND)
        found = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        found.set_default_timeout(300 * SECOND)
        found.on("console", lambda m: troubles.append(m.text) if m.type in ("error", "warning") else None)
        found.on("pageerror", lambda error: troubles.append(str(error)))
        found.goto(f"http://127.0.0.1:{server.server_port}/")
        found.wait_for_selector("html[data-ready]")
        yield found
        browser.close()
    server.shutdown()
    server.server_close()
    assert troubles == []


def in_page(page: Page, script: str, given: Any = None) -> Any:
    """The value of a script with the engine's modules at hand."""
    imports = "".join(
        f"Object.assign(m, await import('./{name}.js'));" for name in ("algebra", "model", "methods", "walks")
    )
    engine = "const {ANSWERS, STREAMS} = await import('./engine.js');"
    return page.evaluate(f"async (given) => {{ const m = {{}}; {imports} {engine} {script} }}", given)


def test_the_folder_is_small_and_complete(tmp_path: Path) -> None:
    files = write_static(tmp_path / "page", "i-maze")
    assert sum(file.stat().st_size for file in files) < 1_000_000
    hello = json.loads((tmp_path / "page" / "hello.json").read_text())
    assert hello["maze"] == drawn(eo.maze("i-maze"))


@pytest.mark.parametrize("name", list(MAPS))
def test_eigenvectors_and_policies_are_those_of_the_library(page: Page, name: str) -> None:
    mdp = eo.maze(MAPS[name] + "\n")
    cases = [*((operator, 0.9) for operator in OPERATORS), ("normalized", 0.5)]
    found = in_page(
        page,
        """return given[1].map(([operator, gamma]) => {
            const p = ANSWERS.picture({map: given[0], operator, gamma, shown: 12});
            return {...p, vectors: [...p.vectors], policies: [...p.policies], values: [...p.values],
                moves: null, components: p.components && [...p.components]}; })""",
        [MAPS[name], cases],
    )
    for (operator, gamma), page_says in zip(cases, found, strict=True):
        zeros = page_says["pieces"]
        sp = eo.spectrum(eo.graph(mdp), min(zeros + 12, mdp.n_states), operator)
        options = eo.solve(mdp, eo.eigenpurposes(sp), gamma)
        assert zeros == sp.n_zero
        assert page_says["labels"] == list(options.labels)
        assert page_says["eigenvalues"] == pytest.approx(sp.values[zeros:], rel=1e-9)
        assert page_says["vectors"] == pytest.approx(sp.vectors[:, zeros:].T.ravel(), abs=1e-6)
        assert page_says["policies"] == options.policy.ravel().tolist()
        assert page_says["values"] == pytest.approx(options.value.ravel(), abs=1e-6)
        assert page_says["mean_length"] == pytest.approx(options.mean_length)


@pytest.mark.parametrize("method", ["eigen", "bottleneck", "covering"])
@pytest.mark.parametrize("chance", [None, 0.1])
def test_methods_and_diffusion_times_are_those_of_the_library(
    page: Page, method: str, chance: float | None
) -> None:
    for name in ("i-maze", "symmetric"):
        mdp = eo.maze(MAPS[name] + "\n")
        options = eo.discover(mdp, None if method == "bottleneck" else 6, method)
        body = {"map": MAPS[name], "method": method, "n_options": 6, "operator": "normalized", "gamma": 0.9}
        head, *points = in_page(
            page,
            "return [...STREAMS.compare(given)].map((e) => e.policies ? {...e, policies: [...e.policies]} : e)",
            {**body, "option_chance": chance, "seed": 0},
        )
        assert head["labels"] == list(options.labels)
        assert head["policies"] == options.policy.ravel().tolist()
        curve = diffusion_curve(mdp, options, option_chance=chance)
        assert [p["n"] for p in points] == list(range(len(curve)))
        for point, exact in zip(points, curve, strict=True):
            # In double precision alone, what is far beyond the chart cannot be computed.
            assert point["time"] == pytest.approx(exact, rel=1e-6) or (point["time"] is None and exact > 1e7)


def test_the_best_chance_and_what_the_browser_cannot_compute(page: Page) -> None:
    mdp = eo.maze("i-maze")
    best = best_option_chance(mdp, eo.discover(mdp, 8))
    body = {"map": MAPS["i-maze"], "n_options": 8, "operator": "normalized", "gamma": 0.9, "seed": 0}
    events = in_page(page, "return [...STREAMS.measure(given)]", {**body, "option_chance": None})
    assert events[-1]["best"] == pytest.approx(best.chance, rel=0.02)
    assert events[-1]["time"] == pytest.approx(best.diffusion_time, rel=1e-5)
    assert events[-1]["uniform"] == pytest.approx(best.uniform_diffusion_time, rel=1e-6)
    script = "try { ANSWERS[given[0]](given[1]); } catch (error) { return error.message; }"
    for path, text, words in (
        ("maze", "S..\n.?G", "unknown character '?' at line 2 column 2"),
        ("maze", "\n", "the map is empty"),
        ("maze", "SS", "2 starts"),
        ("picture", open_map(30, 30), "at most 500 states, got 900"),
        ("picture", "S", "nowhere to go"),
    ):
        assert words in in_page(page, script, [path, {"map": text, "operator": "normalized", "shown": 4}])


def test_walks_learning_samples_and_maps_obey_the_rules(page: Page) -> None:
    text = "S..\n.#.\n..G"
    mdp = eo.maze(text + "\n")
    expected = hitting_times(mdp, eo.discover(mdp, 4), option_chance=0.3)[mdp.start, mdp.goal]
    found = in_page(
        page,
        """const t = m.table(m.read(given)), rand = m.random(1);
        const {policies} = m.discover(t, "eigen", {many: 4, operator: "normalized", gamma: 0.9});
        const rows = [0, 1, 2, 3].map((o) => policies.subarray(o * t.n, (o + 1) * t.n));
        const lengths = Array.from({length: 4000}, () => m.walk(t, rows, 0.3, 4000, rand).by.length);
        const returns = m.learn(t, rows, 0.3, {episodes: 300, steps: 40, rand});
        const kinds = ["rooms", "perfect", "open"];
        const maps = kinds.map((kind) => ANSWERS.random({kind, rows: 17, cols: 15, seed: 3}).map);
        let last; for await (const e of STREAMS.sample({map: given, seed: 2})) last = e.steps ? e : {...last, ...e};
        return {mean: lengths.reduce((a, b) => a + b) / 4000, end: returns.slice(-50), maps,
            gram: [...last.gram], agreement: last.agreement, done: last.done}""",
        text,
    )
    assert found["mean"] == pytest.approx(expected, rel=0.1)
    assert np.mean(found["end"]) > 0.9
    rows, cols, data = np.reshape(found["gram"], (3, -1))
    G = np.zeros((8, 8))
    G[rows, cols] = data
    assert np.array_equal(G, 2 * eo.laplacian(eo.graph(mdp), "combinatorial").toarray())
    assert (found["done"], found["agreement"]) == (True, [1.0] * 6)
    for built in found["maps"]:
        assert len(built) <= 17
        assert len(built[0]) <= 15
        assert eo.spectrum(eo.graph(eo.maze("\n".join(built) + "\n")), 2).n_zero == 1


def test_a_person_draws_measures_and_races(page: Page) -> None:
    page.click("[data-tool=wall]")
    box = page.locator("#board").bounding_box()
    assert box is not None
    page.locator("#board").click(position={"x": 3.5 * box["width"] / 13, "y": 3.5 * box["height"] / 13})
    expect(page.locator("#states")).to_have_text("103 states", timeout=300 * SECOND)
    page.select_option("#builtin", "i-maze")
    page.click("#tab-measure")
    page.wait_for_selector("#measure[data-state=done]")
    assert "Moves only: 246 steps" in page.inner_text("#curve-note")
    page.click("#tab-race")
    page.wait_for_selector("#race[data-state=ready]")
    page.click("#race-go")
    page.wait_for_selector("#race[data-state=finished]")
    page.click("#tab-take")
    expect(page.locator("#save")).to_be_hidden()
