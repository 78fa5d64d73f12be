"""Every benchmark in one run, and one table of the results: ``make bench``.

Runs the files of this folder one after the other, each in a process of its own, and writes into ``out/bench``:
`table.md`, `rows.csv`, `results.json`, `chart.png` and `chart.svg`, and the output of each file. The exit code is 1 if
an aim is missed or a file fails. With ``--minutes M`` no file begins after so many minutes; those that are left are in
the table as not measured. ``--docs FILE`` puts the last results between the two markers of a page, and the chart beside
it; nothing is run then.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import chart
import numpy as np
import record
from record import number

HERE = Path(__file__).resolve().parent
# `deep` has a command of its own, make bench-deep, and `screens` measures no times.
NO_BENCHMARKS = {"record", "compare", "chart", "worlds", "deep", "screens"}
FIRST = (
    "machine",
    "simple_options",
    "plain",
    "discovery",
    "solver",
    "spectra",
    "growth",
    "diffusion",
    "learning",
    "gram",
    "wrapper",
    "store",
    "million",
    "parallel",
)
# Seconds after which a file is killed; none should take that long.
TIMEOUT_SECONDS = 1800
NUMBERS = {"ours", "theirs", "we are faster", "measured", "exponent", "wall time", "exit code"}
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
TARGET = re.compile(r"(.*?),? target (.*): (met|MISSED)\s*$")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PACKAGES = (
    "eigenoptions",
    "numpy",
    "scipy",
    "numba",
    "gymnasium",
    "simpleoptions",
    "simpleenvs",
    "ale-py",
    "ray",
)


def benchmarks(folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """The files to run: those named, or all, those of `FIRST` first."""
    found = {path.stem: path for path in sorted(folder.glob("*.py")) if path.stem not in NO_BENCHMARKS}
    unknown = [name for name in only if name not in found]
    if unknown:
        raise SystemExit(f"no benchmark called {', '.join(unknown)}: there are {', '.join(found)}")
    names = [name for name in (*FIRST, *(n for n in found if n not in FIRST)) if name in found]
    return [found[name] for name in names if not only or name in only]


def machine() -> dict[str, Any]:
    """Machine, date and versions, which a reader needs to judge the times."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        model = names[0] if names else model
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": [round(x, 2) for x in os.getloadavg()],
        "python": platform.python_version(),
        "system": platform.system(),
        **versions,
    }


def run(path: Path, out: Path, quick: bool) -> dict[str, Any]:
    """Run one file: its rows, exit code and time. Its output is printed and written to a file."""
    rows = out / f"{path.stem}.jsonl"
    rows.unlink(missing_ok=True)
    env = {**os.environ, "EIGENOPTIONS_ROWS": str(rows), "PYTHONUNBUFFERED": "1"}
    env |= dict.fromkeys(THREADS, "1") | {"PYGAME_HIDE_SUPPORT_PROMPT": "1"}
    text = path.read_text(encoding="utf-8")
    takes_quick = "import record" in text or "--quick" in text
    command = [sys.executable, str(path), *(["--quick"] if quick and takes_quick else [])]
    began = time.perf_counter()
    printed: list[dict[str, Any]] = []
    with (
        open(out / f"{path.stem}.txt", "w", encoding="utf-8") as log,
        subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
        ) as process,
    ):
        limit = threading.Timer(TIMEOUT_SECONDS, process.kill)
        limit.start()
        assert process.stdout is not None
        for line in process.stdout:
            log.write(line)
            printed += [printed_aim(path.stem, found) for found in [TARGET.match(line)] if found]
            print("   ", line, end="", flush=True)
        code = process.wait()
        limit.cancel()
    entries = [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []
    rows.unlink(missing_ok=True)
    spent = time.perf_counter() - began
    return {"part": path.stem, "seconds": spent, "exit": code, "entries": entries or printed}


def printed_aim(part: str, found: re.Match[str]) -> dict[str, Any]:
    """An aim from the line that states it, for benchmarks that write no rows."""
    what, bound, verdict = found.groups()
    return {
        "kind": "aim", "part": part, "what": f"{part}: {what.strip()}",
        "aim": bound, "measured": None, "met": verdict == "met",
    }  # fmt: skip


def measure(
    folder: Path, out: Path, only: Sequence[str], quick: bool, minutes: float = np.inf
) -> dict[str, Any]:
    """Run everything, or what begins within so many minutes; the results."""
    out.mkdir(parents=True, exist_ok=True)
    about = machine() | {"quick": quick}
    files = benchmarks(folder, only)
    parts: list[dict[str, Any]] = []
    for i, path in enumerate(files):
        if sum(part["seconds"] for part in parts) > 60 * minutes:
            left = {
                "kind": "skip",
                "what": f"benchmarks/{path.name}",
                "why": f"{minutes:g} minutes were over",
            }
            parts[-1]["entries"].append(left)
            continue
        print(f"[{i + 1}/{len(files)}] {path.name}", flush=True)
        parts.append(run(path, out, quick))
        spent = sum(part["seconds"] for part in parts)
        print(
            f"[{i + 1}/{len(files)}] {path.name}: {parts[-1]['seconds']:.0f} s, {spent:.0f} s in all",
            flush=True,
        )
        # After each part, so that a killed run leaves its results so far.
        write({"about": about, "parts": parts}, out)
    results = {"about": about, "parts": parts}
    write(results, out)
    return results


def write(results: dict[str, Any], out: Path) -> None:
    """Results as JSON and CSV, the table and the chart."""
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    heads = (
        "part",
        "kind",
        "what",
        "ours",
        "unit",
        "against",
        "theirs",
        "ratio",
        "aim",
        "measured",
        "met",
        "note",
    )
    with open(out / "rows.csv", "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, (*heads, "series", "x", "y", "value", "gap", "most", "why"))
        table.writeheader()
        table.writerows(entries(results))
    (out / "table.md").write_text(f"# Benchmarks\n\n{markdown(results)}", encoding="utf-8")
    chart.draw(results, out)


def entries(results: dict[str, Any], kind: str = "") -> list[dict[str, Any]]:
    return [e for part in results["parts"] for e in part["entries"] if kind in ("", e["kind"])]


def aims(results: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """All aims in one list: those that benchmarks state, and that each of them runs without an error."""
    found = [(e["what"], e["aim"], number(e["measured"]), bool(e["met"])) for e in entries(results, "aim")]
    for part in results["parts"]:
        missed = any(e["kind"] == "aim" and not e["met"] for e in part["entries"])
        # With a missed aim the exit code adds nothing to its row.
        if part["exit"] and not missed:
            found.append((f"benchmarks/{part['part']}.py", "ends well", f"exit code {part['exit']}", False))
    return found


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; columns of numbers to the right."""
    if not rows:
        return "None.\n"
    lines = ["| " + " | ".join(heads) + " |"]
    lines += ["|" + "|".join("--:" if head in NUMBERS else "---" for head in heads) + "|"]
    lines += ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def markdown(results: dict[str, Any]) -> str:
    """The whole table."""
    about = dict(results["about"])
    load = ", ".join(map(str, about.pop("load")))
    spent = sum(part["seconds"] for part in results["parts"])
    quick = " With `--quick`: small problems, the numbers mean little." if about.pop("quick") else ""
    versions = ", ".join(f"{name} {about[name]}" for name in ("python", *PACKAGES))
    text = (
        f"Measured on {about['date']}: {about['cpu']}, {about['cores']} cores, {about['system']}; load average before "
        f"the start {load}; one BLAS thread; {spent / 60:.1f} minutes in all. {versions}.{quick}\n"
    )
    rows = entries(results, "row")
    promised = [(w, a, m, "met" if met else "**missed**") for w, a, m, met in aims(results)]
    text += "\n### Aims\n\n" + table(("what", "aim", "measured", ""), promised)

    def cells(e: dict[str, Any]) -> tuple[str, ...]:
        ratio = f"{number(e['ratio'])}x" if e["ratio"] >= 1 else f"**{number(e['ratio'])}x**"
        return (
            e["what"],
            f"{number(e['ours'])} {e['unit']}",
            e["against"],
            f"{number(e['theirs'])} {e['unit']}",
            ratio,
        )

    heads = ("work", "ours", "instead", "theirs", "we are faster")
    text += "\n### Against what one would use instead\n\n" + table(heads, [cells(e) for e in rows])
    notes = [f"* {e['what']}, {e['against']}: {e['note']}." for e in rows if e["note"]]
    text += ("\n" + "\n".join(notes) + "\n") if notes else ""
    lost = [
        f"* {e['what']}: {e['against']} is {number(1 / e['ratio'])}x faster."
        for e in rows
        if e["ratio"] < 0.95
    ]
    text += "\n### Where we lose\n\n" + ("\n".join(lost) if lost else "In no row of this run.") + "\n"
    agreed = entries(results, "agree")
    if agreed:
        worst = max(e["gap"] for e in agreed)
        text += (
            f"\nAnswers first: {len(agreed)} were compared with theirs; "
            f"the largest difference was {worst:.0e}.\n"
        )
    text += (
        "\n### Growth\n\nExponents are fitted to sizes above 9,000, or else to the larger half.\n\n"
        + growth(results)
    )
    facts = [
        (e["what"], f"{number(e['value'])} {e['unit']}".strip(), e["note"]) for e in entries(results, "fact")
    ]
    text += "\n### Other measurements\n\n" + table(("what", "measured", "note"), facts)
    skipped = [f"* {e['what']}: {e['why']}" for e in entries(results, "skip")]
    text += ("\n### Not measured\n\n" + "\n".join(skipped) + "\n") if skipped else ""
    took = [
        (f"`benchmarks/{p['part']}.py`", f"{p['seconds']:.0f} s", str(p["exit"])) for p in results["parts"]
    ]
    return text + "\n### What was run\n\n" + table(("file", "wall time", "exit code"), took)


def growth(results: dict[str, Any]) -> str:
    """One row a curve, with the exponent of its larger sizes."""
    curves: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for e in entries(results, "point"):
        curves.setdefault((e["series"], e["unit"]), []).append((e["x"], e["y"]))
    rows = []
    for (series, unit), points in curves.items():
        shown = "; ".join(f"{x:,.0f}: {number(y)}" for x, y in sorted(points))
        large = record.tail(points)
        fits = f"{record.exponent(*zip(*large, strict=True)):.2f}" if len(large) > 1 else ""
        rows.append((f"{series}, {unit}", shown, fits))
    return table(("curve", "size: measured", "exponent"), rows)


def into_page(results: dict[str, Any], page: Path, out: Path) -> None:
    """Put the tables between the markers of a page, and the chart among its images."""
    text = page.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise SystemExit(f"{page} needs one line {BEGIN} and one line {END}")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{markdown(results)}\n{END}{after}", encoding="utf-8")
    (page.parent / "images").mkdir(exist_ok=True)
    shutil.copyfile(out / "chart.svg", page.parent / "images" / "benchmarks.svg")


def main(argv: Sequence[str] | None = None) -> int:
    reader = argparse.ArgumentParser(
        description="Every benchmark in one run, and one table of what came out."
    )
    reader.add_argument("--quick", action="store_true", help="small problems, for the tests")
    reader.add_argument("--only", default="", help="names of files without .py, separated by commas")
    reader.add_argument("--minutes", type=float, default=np.inf, help="no file begins after so many minutes")
    reader.add_argument("--folder", type=Path, default=HERE, help="where the benchmarks are")
    reader.add_argument("--out", type=Path, default=record.OUT, help="where the results go")
    reader.add_argument("--docs", type=Path, help="put the last results into this page; run nothing")
    given = reader.parse_args(argv)
    if given.docs:
        kept = given.out / "results.json"
        if not kept.exists():
            raise SystemExit(f"there are no results in {given.out}: run make bench first")
        into_page(json.loads(kept.read_text(encoding="utf-8")), given.docs, given.out)
        return 0
    only = [name for name in given.only.split(",") if name]
    results = measure(given.folder, given.out, only, given.quick, given.minutes)
    print("\n" + markdown(results))
    missed = [what for what, _, _, met in aims(results) if not met]
    print(f"{given.out / 'table.md'}: {len(aims(results)) - len(missed)} of {len(aims(results))} aims met")
    for what in missed:
        print(f"MISSED: {what}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
