"""Mutants: small wrong changes of the library, and whether the tests notice them.

``python -m tests.mutants`` draws places of the code at random, changes one of them at a time (Cosmic Ray makes the
changes) in a copy of the repository, and runs the doctests of the module and the test files that `TESTS` names for
it. Results go to a file, one line per mutant; the same command continues where it stopped.

The module is also the plugin of pytest that keeps a mutant cheap: within each file the fastest tests come first, as far
as earlier mutants have measured them, and after `--budget` CPU seconds what is left is not run.
"""

from __future__ import annotations

import argparse
import ast
import collections
import difflib
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

try:
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names
except ModuleNotFoundError:
    get_operator = None  # the tests of a mutant do not need it

ROOT = Path(__file__).parent.parent
PACKAGE = "src/eigenoptions"
# Parts of the repository that tests read.
COPIED = (
    "src",
    "tests",
    "docs",
    "examples",
    "benchmarks",
    *(path.name for path in ROOT.glob("*.*")),
    "Makefile",
)
# CPU seconds of the tests of one mutant: an endless loop ends here.
MAX_SECONDS = 150

# Where numbers are colours, sizes and places on a page, and people judge them.
DRAWN = ("plots/", "atari/charts", "experiments/atari/pictures", "experiments/page", "_sketch")

# Test files by the beginning of a module's path; the longest beginning counts, the cheapest file comes first.
TESTS = {
    "": "test_registries test_wrong_kind",
    "__": "test_architecture test_reliability",
    "_checks": "test_checks test_wrong_kind test_mdp test_reliability",
    "_kernels/__init__": "test_reliability",
    "_kernels/diffusion": "test_evaluation",
    "_kernels/elimination": "test_evaluation",
    "_kernels/gains": "test_ram test_lockstep",
    "_kernels/learning": "test_learning",
    "_kernels/passages": "test_kernels",
    "_kernels/planning": "test_kernels test_planning",
    "_kernels/residual": "test_kernels test_spectra",
    "_kernels/rows": "test_gram",
    "_kernels/walking": "test_evaluation test_sampling",
    "_registration": "test_envs test_architecture",
    "atari/": "test_atari test_ram test_lockstep test_atari_options test_charts",
    "atari/lockstep": "test_ram test_lockstep test_atari_options",
    "atari/options": "test_atari_options test_atari_command test_lockstep",
    "atari/slow_features": "test_paper_atari_jobs",
    "cli/": "test_cli test_cli_environments test_registries test_reliability",
    "cli/paper": "test_cli test_atari_command test_paper test_reliability",
    "cli/studio": "test_cli test_studio",
    "deep/": "test_deep",
    "discovery/": "test_discovery test_methods test_sampling test_registries",
    "discovery/experience": "test_sampling test_acting test_discovery",
    "discovery/hierarchy": "test_methods",
    "discovery/methods/": "test_methods test_registries test_discovery",
    "discovery/online": "test_cycle test_acting",
    "discovery/samples": "test_sampling test_gram test_large",
    "discovery/trained": "test_deep",
    "envs/": "test_envs test_collect test_wrapper",
    "envs/collecting": "test_collect",
    "envs/mazes": "test_envs",
    "envs/minigrid": "test_envs",
    "envs/running": "test_wrapper test_acting test_stopping",
    "envs/sampler": "test_collect test_sampling",
    "envs/sb3": "test_sb3",
    "envs/spaces": "test_wrapper test_sb3",
    "envs/wrapper": "test_wrapper test_stopping test_sb3",
    "evaluation/": "test_evaluation test_large",
    "experiments/atari/": "test_paper_atari test_atari test_atari_command test_paper_atari_jobs",
    "experiments/": "test_claims test_paper",
    "experiments/store": "test_store test_claims",
    "features": "test_features test_storage test_acting",
    "files": "test_storage test_reliability",
    "learning": "test_learning",
    "mdp/": "test_mdp test_sketch test_discovery",
    "options/": "test_options test_planning test_storage",
    "options/fitted": "test_acting test_cycle",
    "options/linear": "test_acting test_stopping test_sampling test_storage",
    "options/lookahead": "test_acting",
    "options/reader": "test_storage test_acting test_reliability",
    "options/stopping": "test_stopping test_wrapper",
    "options/walks": "test_evaluation test_learning test_large test_methods",
    "parallel/": "test_parallel test_large",
    "parallel/cluster": "test_parallel test_ray",
    "spectra/": "test_spectra test_representations test_gram",
    "spectra/canonical": "test_spectra",
    "spectra/gram": "test_gram test_reliability",
    "spectra/rows": "test_gram",
    "spectra/representations": "test_representations test_methods",
    "studio/": "test_studio test_reliability",
}
# A change to another operator of the same kind; others (`>>` for `+`) mostly end in a TypeError at once.
KINDS = (
    {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"},
    {"BitAnd", "BitOr", "BitXor"},
    {"Lt", "LtE", "Gt", "GtE", "Eq", "NotEq"},
    {"Is", "IsNot"},
    {"In", "NotIn"},
    {"UAdd", "USub"},
)


# Seconds of each test, measured while mutants are tested.
TIMES = "EIGENOPTIONS_TEST_TIMES"
BUDGET = "EIGENOPTIONS_TEST_BUDGET"
_times: dict[str, float] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the fastest tests of each file first; what is not known yet counts as fast."""
    path = Path(os.environ[TIMES])
    if path.exists():
        _times.update(json.loads(path.read_text()))
    files = list(dict.fromkeys(item.path for item in items))
    slow = float(os.environ[BUDGET]) / 3
    known = {item.nodeid: _times.get(item.nodeid, 0.1) for item in items}
    items.sort(key=lambda item: (known[item.nodeid] > slow, files.index(item.path), known[item.nodeid]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure a test; leave it out if the budget is used up or if the test alone would use it."""
    begun = time.process_time()
    left = float(os.environ[BUDGET]) - begun
    item.stash[_SKIPPED] = left < 0 or _times.get(item.nodeid, 0.0) > max(left, 1.0)
    try:
        return (yield)
    finally:
        if not item.stash[_SKIPPED]:
            _times[item.nodeid] = round(time.process_time() - begun, 2)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what the budget does not allow."""
    if item.stash[_SKIPPED]:
        pytest.skip("the budget of this mutant is used up")


def pytest_sessionfinish() -> None:
    """Keep the seconds for the next mutant."""
    path = Path(os.environ[TIMES])
    path.with_suffix(".new").write_text(json.dumps(_times))
    path.with_suffix(".new").replace(path)


_SKIPPED = pytest.StashKey[bool]()


def wanted(operator: str) -> bool:
    """Whether a change keeps to the kind of the operator. Decorators stay: without @njit code is only slower."""
    pair = re.search(r"/Replace\w*Operator_(\w+?)_(\w+)$", operator)
    if pair:
        return any({pair[1], pair[2]} <= kind for kind in KINDS) or "Delete" in pair[2]
    return "RemoveDecorator" not in operator and not get_operator(operator).arguments()


def unread(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Spans that are not run, or that decide nothing: annotations, imports for types, decorators, public names."""
    spans: list[ast.AST | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg | ast.AnnAssign):
            spans.append(node.annotation)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            spans += [node.returns, *node.decorator_list]
        if isinstance(node, ast.ClassDef):
            spans += node.decorator_list
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            spans.append(node)
    return [((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset)) for n in spans if n is not None]  # type: ignore


def places(module: Path, operators: dict[str, Any]) -> dict[tuple[int, int], list[tuple[str, int]]]:
    """Places of a module that can be changed: the changes of each, as operator and occurrence."""
    source = module.read_text()
    nodes, skipped = list(ast_nodes(get_ast(source))), unread(source)
    found: dict[tuple[int, int], list[tuple[str, int]]] = collections.defaultdict(list)
    for name, operator in operators.items():
        spots = (spot for node in nodes for spot in operator.mutation_positions(node))
        for occurrence, (start, _) in enumerate(spots):
            if not any(low <= start < high for low, high in skipped):
                found[start].append((name, occurrence))
    return found


def mutant_of(source: str, operator: str, occurrence: int) -> str | None:
    """The changed source, or None if it means the same or is no Python: Cosmic Ray takes any star for a product."""
    mutant = mutate_code(source, get_operator(operator)(), occurrence)
    try:
        same = mutant is None or ast.dump(ast.parse(mutant)) == ast.dump(ast.parse(source))
    except SyntaxError:
        return None
    return None if same else mutant


def sample(count: int, seed: int, only: str, kept: Path) -> list[tuple[str, int, str, int]]:
    """`count` places drawn without replacement, each with one change: path, line, operator and occurrence.

    The search takes half a minute, so the sample is kept in a file.
    """
    name = json.dumps([count, seed, only])
    if kept.exists() and (found := json.loads(kept.read_text())).get(name):
        return [tuple(mutant) for mutant in found[name]]
    every = []
    operators = {name: get_operator(name)() for name in operator_names() if wanted(name)}
    for module in sorted((ROOT / PACKAGE).rglob("*.py")):
        path = module.relative_to(ROOT / PACKAGE).as_posix()
        if re.search(only, path) and not path.startswith(DRAWN):
            every += [
                (path, place[0], changes) for place, changes in sorted(places(module, operators).items())
            ]
    rng = random.Random(seed)
    rng.shuffle(every)
    print(f"{len(every):,} places", flush=True)
    drawn = ((path, line, *rng.choice(changes)) for path, line, changes in every)
    chosen = list(islice((m for m in drawn if mutant_of((ROOT / PACKAGE / m[0]).read_text(), *m[2:])), count))
    kept.write_text(json.dumps({name: chosen}))
    return chosen


def tests_of(path: str) -> list[str]:
    """The module, for its doctests, and its test files."""
    start = max((start for start in TESTS if path.startswith(start)), key=len)
    return [f"{PACKAGE}/{path}", *(f"tests/{name}.py" for name in TESTS[start].split())]


def forget_compiled(kernels: Path, name: str) -> None:
    """Remove the compiled code of a kernel and of those that call it: Numba notices changes of one file only."""
    stale, before = {name}, set()
    while stale != before:
        before = set(stale)
        for path in kernels.glob("*.py"):
            if any(f"_kernels.{other} import" in path.read_text() for other in stale):
                stale.add(path.stem)
    for path in (kernels / "__pycache__").glob("*.nb*"):
        if path.name.split(".")[0].rsplit("-", 1)[0] in stale:
            path.unlink()


def keep_compiled(root: Path, *others: Path) -> None:
    """Copy compiled kernels to other trees whose kernels are the same files, so that they are compiled once."""
    for path in (root / PACKAGE / "_kernels" / "__pycache__").glob("*.nb*"):
        for other in others:
            target = other / path.relative_to(root)
            if not target.exists() or target.stat().st_mtime < path.stat().st_mtime:
                target.parent.mkdir(exist_ok=True)
                shutil.copy2(path, target)


def run(root: Path, tests: list[str], times: Path, budget: float) -> tuple[str, str, float]:
    """Outcome ("survived", "killed" or "time"), the test that failed, and CPU seconds."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(root / "src"), str(root))),
        TIMES: str(times),
        BUDGET: str(budget),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CI": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "tests.mutants"]
    command.append("--hypothesis-profile=mutants")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*command, *tests],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS + 5)),
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    by = failed[1] if failed else done.stdout[-200:] + done.stderr[-200:]
    if done.returncode == 0:
        return "survived", "", seconds
    return ("time" if done.returncode < 0 and seconds > MAX_SECONDS - 5 else "killed"), by, seconds


def attempt(pristine: Path, chosen: tuple[str, str, int], times: Path, budget: float) -> dict[str, object]:
    """Run the tests of one mutant in a copy of the repository made of hard links."""
    path, operator, occurrence = chosen
    module = pristine / PACKAGE / path
    source = module.read_text()
    mutant = mutant_of(source, operator, occurrence)
    assert mutant is not None
    with tempfile.TemporaryDirectory() as made:
        root = Path(made) / "mutant"
        shutil.copytree(pristine, root, copy_function=os.link)
        (root / PACKAGE / path).unlink()
        (root / PACKAGE / path).write_text(mutant)
        if path.startswith("_kernels/"):
            forget_compiled(root / PACKAGE / "_kernels", Path(path).stem)
        outcome, by, seconds = run(root, tests_of(path), times, budget)
        if not path.startswith("_kernels/"):
            keep_compiled(root, pristine)
    lines = difflib.ndiff(source.splitlines(), mutant.splitlines())
    change = [line for line in lines if line[:2] in ("- ", "+ ")]
    return {"outcome": outcome, "by": by, "seconds": round(seconds, 1), "change": change}


def main() -> None:
    """Run until the mutants or the seconds are used up; print what came of them."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--count", type=int, default=200, help="places to change")
    reader.add_argument("--seed", type=int, default=2017)
    reader.add_argument("--only", default="", help="regular expression of module paths")
    reader.add_argument("--seconds", type=float, default=3600.0, help="no mutant begins after these")
    reader.add_argument("--budget", type=float, default=15.0, help="CPU seconds of the tests of a mutant")
    reader.add_argument("--out", type=Path, default=ROOT / "out" / "mutants.jsonl")
    reader.add_argument("--again", action="store_true", help="run the survivors of the file again")
    given = reader.parse_args()
    times = given.out.with_suffix(".times")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    done = {tuple(row["mutant"]): row for row in rows}
    end = time.monotonic() + given.seconds
    with tempfile.TemporaryDirectory() as made:
        pristine = Path(made) / "pristine"
        pristine.mkdir()
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, pristine / name)
        drawn = sample(given.count, given.seed, given.only, given.out.with_suffix(".sample"))
        for path, line, operator, occurrence in drawn:
            old = done.get((path, operator, occurrence))
            if time.monotonic() > end:
                break
            if old and not (given.again and old["outcome"] == "survived"):
                continue
            result = attempt(pristine, (path, operator, occurrence), times, given.budget)
            row = {"mutant": (path, operator, occurrence), "line": line, **result}
            done[path, operator, occurrence] = row
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{row['outcome']:9}{path}:{line} {' -> '.join(row['change'])}", flush=True)
        keep_compiled(pristine, ROOT)
        check(pristine, list(done.values()), times)
    print(json.dumps(collections.Counter(row["outcome"] for row in done.values())))


def check(pristine: Path, rows: list[dict[str, object]], times: Path) -> None:
    """Say which tests that killed a mutant also fail without one: these kills do not count."""
    killers = sorted(
        {str(row["by"]) for row in rows if row["outcome"] == "killed" and "::" in str(row["by"])}
    )
    outcome, by, _ = run(pristine, killers, times, 1e9) if killers else ("survived", "", 0.0)
    if outcome != "survived":
        print(f"fails without a mutant, so that its kills do not count: {by}", flush=True)


if __name__ == "__main__":
    main()
