"""How cost grows: 10^2 to 10^6 states, 1 to 1,024 options; fitted exponents: ``python benchmarks/growth.py``.

Every size runs in a process of its own, so that its peak memory can be read. k = 32 eigenvectors and their 62
options, as in the aim: at most n^1.3 from 10^4 to 10^6 states on tilings of rooms. Beside ours, what SciPy and NumPy
need for the same eigenvectors, as far as one would wait for them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import record
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import eigsh, splu

import eigenoptions as eo
from eigenoptions.mdp import maps

K = 32
MOST = 1.3  # the exponent that is promised
SIDES = {  # rooms, crossings or cells along a side: about 10^2, 10^3, 10^4, 10^4.5, 10^5, 10^5.5, 10^6 states
    "rooms": (1, 3, 10, 18, 31, 56, 100),
    "perfect maze": (7, 22, 71, 126, 224, 400),  # a million of them are in million.py
    "open room": (10, 32, 100, 178, 316),
}
if record.QUICK:
    SIDES = {"rooms": (1, 2, 3), "perfect maze": (7, 12)}
SCIPY_UP_TO, NUMPY_UP_TO = 100_000, 2_000


def text(kind: str, side: int) -> str:
    make = {"rooms": maps.rooms_map, "perfect maze": maps.perfect_map, "open room": maps.open_map}
    return make[kind](side, side)


def measure(kind: str, side: int) -> dict[str, Any]:
    """Every step at one size: seconds, memory, and entries of the sparse factor."""
    eo.discover(eo.maze(maps.rooms_map(3, 3)), 4)  # compiled before the clock starts, both ways to a spectrum
    eo.discover(eo.maze(maps.perfect_map(20, 20)), 4)
    base = record.peak()
    map_text = text(kind, side)
    reading, mdp = record.clock(lambda: eo.maze(map_text))
    n = mdp.n_states
    repeat = 5 if n < 20_000 else 2 if n < 200_000 else 1
    graph, W = record.seconds(lambda: eo.graph(mdp), repeat)
    spectrum, sp = record.seconds(lambda: eo.spectrum(W, min(K, n)), repeat)
    after_spectrum = record.peak()
    purposes = eo.eigenpurposes(sp)
    options, solved = record.seconds(lambda: eo.solve(mdp, purposes), repeat)
    after_options = record.peak()
    found = {"n": n, "reading": reading, "graph": graph, "spectrum": spectrum, "options": options}
    found |= {"n_options": len(solved), "GB": after_options - base, "GB spectrum": after_spectrum - base}
    L = eo.laplacian(W)
    symmetric = {"SymmetricMode": True}
    shifted = csc_array(L + 1e-6 * eye_array(n))
    factor = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)
    found["fill"] = int(factor.nnz) // 2 - n
    if n <= SCIPY_UP_TO and kind == "rooms":
        found["scipy"], (values, _) = record.seconds(
            lambda: eigsh(L, k=min(K, n - 1), sigma=-1e-3), min(repeat, 2)
        )
        gap = np.abs(np.sort(values) - sp.values[: len(values)]).max()
        found["scipy gap"] = float(gap)
    if n <= NUMPY_UP_TO and kind == "rooms":
        found["numpy"], (values, _) = record.seconds(lambda: np.linalg.eigh(L.toarray()), min(repeat, 2))
        found["numpy gap"] = float(np.abs(values[: len(sp.values)] - sp.values).max())
    return found


def states() -> None:
    for kind, sides in SIDES.items():
        sizes = []
        for side in sides:
            command = [sys.executable, __file__, "--at", kind, str(side)]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, encoding="utf-8")
            found = json.loads(done.stdout.splitlines()[-1])
            for peer in ("scipy", "numpy"):
                if peer in found:
                    record.agree(
                        f"eigenvalues, {kind}, {found['n']:,} states, {peer}", found[f"{peer} gap"], 1e-11
                    )
                    record.point(f"spectrum, {kind}, {peer}", found["n"], found[peer])
            if "scipy" in found and found["n"] < 20_000:  # where we may lose; larger ones are in discovery.py
                what = f"spectrum k={K}, {kind}, {found['n']:,} states"
                record.row(what, found["spectrum"], found["scipy"], "SciPy eigsh(sigma=-1e-3)")
            for step in ("reading", "graph", "spectrum", "options"):
                record.point(f"{step}, {kind}, ours", found["n"], found[step])
            for what, peak in (("spectrum", found["GB spectrum"]), ("options", found["GB"])):
                record.point(f"peak memory after the {what}, {kind}", found["n"], max(peak, 1e-3), "GB")
            record.point(f"factor, {kind}", found["n"], found["fill"], "entries")
            sizes.append(found)
        fit(kind, sizes)


def fit(kind: str, sizes: list[dict[str, Any]]) -> None:
    """The exponent of all steps together over the larger sizes, and the aim; the table fits each step."""
    n, whole = zip(
        *record.tail((s["n"], s["graph"] + s["spectrum"] + s["options"]) for s in sizes), strict=True
    )
    total, span = record.exponent(n, whole), f"{n[0]:,} to {n[-1]:,} states"
    if kind == "rooms" and not record.QUICK:
        what = f"growth of graph, spectrum (k={K}) and options, {kind}, {span}"
        record.aim(what, total, most=MOST, unit="exponent")
    else:
        record.fact(f"exponent of graph, spectrum (k={K}) and options, {kind}", total, "", span)


def options() -> None:
    """1 to 1,024 options of one tiling of rooms; the eigenvectors for the most of them also by SciPy."""
    mdp = eo.maze(text("rooms", 2 if record.QUICK else 10))
    W = eo.graph(mdp)
    eo.discover(mdp, 2)
    name = f"rooms, {mdp.n_states:,} states"
    for count in (1, 4, 16) if record.QUICK else (1, 4, 16, 64, 256, 1024):
        k = (count + 1) // 2 + 1
        repeat = 3 if count <= 64 else 1
        finding, sp = record.seconds(lambda k=k: eo.spectrum(W, k), repeat)
        record.point(f"spectrum by options, {name}", count, finding)
        purposes = eo.eigenpurposes(sp)[:count]
        solving, solved = record.seconds(lambda purposes=purposes: eo.solve(mdp, purposes), 3)
        assert len(solved) == count
        record.point(f"solve by options, {name}", count, solving)
    theirs, (values, _) = record.clock(lambda: eigsh(eo.laplacian(W), k=k, sigma=-1e-3))
    record.agree(f"{k} eigenvalues, {name}, scipy", float(np.abs(np.sort(values) - sp.values).max()), 1e-11)
    record.row(f"spectrum k={k}, {name}", finding, theirs, "SciPy eigsh(sigma=-1e-3)")


def diffusion() -> None:
    """All pairs, exactly; with options also where a linear solver has no digits and elimination takes over."""
    sides = (1, 2) if record.QUICK else (1, 2, 3, 4, 5)
    for side in sides:
        mdp = eo.maze(text("rooms", side))
        skills = eo.discover(mdp, 64)
        if side == sides[0]:
            eo.diffusion_time(mdp, skills)  # compiled before the clock starts
        spent, _ = record.seconds(lambda mdp=mdp: eo.diffusion_time(mdp))
        record.point("diffusion time, rooms, no option", mdp.n_states, spent)
        if side <= 3:
            spent, _ = record.seconds(lambda mdp=mdp, skills=skills: eo.diffusion_time(mdp, skills))
            record.point("diffusion time, rooms, 64 options", mdp.n_states, spent)


def main() -> int:
    if "--at" in sys.argv:
        kind, side = sys.argv[sys.argv.index("--at") + 1 :][:2]
        print(json.dumps(measure(kind, int(side))))
        return 0
    states()
    options()
    diffusion()
    return record.verdict()


if __name__ == "__main__":
    sys.exit(main())
