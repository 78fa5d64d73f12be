"""Mutants: small wrong changes of the library, and whether the tests notice them.

``python -m tests.mutants`` draws places of the code at random, changes one of them at a time (Cosmic Ray makes the
changes) in a copy of the repository, and runs the doctests of the module and the test files that `TESTS` names for
it. Results go to a file, one line per mutant; the same command continues where it stopped.

What keeps a mutant cheap: every run is a fork of this process, which has imported the large libraries once; within
each file the fastest tests come first, as far as earlier runs have measured them; and after `--budget` CPU seconds what
is left is not run.
"""

from __future__ import annotations

import argparse
import ast
import collections
import difflib
import hashlib
import importlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

try:
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names
except ModuleNotFoundError:
    # The suite imports this module in search of doctests, without the extra.
    get_operator = None

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
# Imported before the first fork; of those that are not installed the tests are left out anyway.
PRELOADED = """numpy scipy.sparse.linalg scipy.sparse.csgraph scipy.linalg scipy.stats scipy.ndimage numba gymnasium
    hypothesis matplotlib.figure mpl_toolkits.mplot3d rich.console joblib safetensors.numpy torch stable_baselines3
    sb3_contrib minigrid ale_py tyro starlette.applications"""

# A test that takes so many times as long as without a mutant, and so many seconds more, has an endless loop. Changed
# kernels are compiled by the first test that calls them.
MAX_SLOWDOWN, MAX_EXTRA_CPU_SECONDS, MAX_COMPILE_SECONDS, MAX_EXTRA_SECONDS = 5, 10, 60, 300

# Where numbers are colours, sizes and places on a page, and people judge them.
DRAWN = ("plots/", "atari/charts", "experiments/atari/pictures", "experiments/page", "_sketch")
# The library; the experiments are a sample of their own (--only "^experiments/").
LIBRARY = "^(?!experiments/)"

# Test files by the beginning of a module's path; the longest beginning counts, the cheapest file comes first.
TESTS = {
    "": "test_registries test_wrong_kind",
    "__": "test_architecture test_reliability",
    "_checks": "test_checks test_wrong_kind test_mdp test_reliability test_forged_files",
    "_kernels/__init__": "test_reliability",
    "_kernels/decisions": "test_vector",
    "_kernels/diffusion": "test_evaluation test_option_chance test_estimate",
    "_kernels/elimination": "test_evaluation test_option_chance test_estimate",
    "_kernels/frontier": "test_frontier",
    "_kernels/gains": "test_ram test_lockstep",
    "_kernels/learning": "test_kernels test_learning",
    "_kernels/passages": "test_kernels",
    "_kernels/planning": "test_kernels test_planning",
    "_kernels/spectra": "test_kernels test_spectra test_basis",
    "_kernels/rows": "test_gram",
    "_kernels/walking": "test_kernels test_evaluation test_option_chance test_estimate test_sampling",
    "_registration": "test_envs test_architecture",
    "atari/": "test_atari test_ram test_lockstep test_atari_options test_charts",
    "atari/games": "test_atari test_charts test_atari_options",
    "atari/lockstep": "test_ram test_lockstep test_atari_options",
    "atari/options": "test_atari_options test_atari_command test_lockstep",
    "atari/slow_features": "test_slow_features test_paper_atari_jobs",
    "cli/": "test_cli test_cli_measure test_cli_input test_cli_environments test_registries "
    "test_reliability test_forged_files",
    "cli/experiments": "test_arena test_arena_agents test_atari_command test_cli test_cli_input test_paper "
    "test_reliability",
    "cli/studio": "test_cli test_cli_input test_studio test_studio_input",
    "deep/": "test_deep",
    "discovery/": "test_discovery test_methods test_cycle test_hierarchy test_sampling test_registries",
    "discovery/__init__": "test_discovery test_wrong_results test_methods test_cycle test_hierarchy test_registries",
    "discovery/experience": "test_sampling test_acting test_discovery",
    "discovery/frontier": "test_frontier test_cycle",
    "discovery/hierarchy": "test_hierarchy",
    "discovery/methods/": "test_methods test_registries test_discovery",
    "discovery/online": "test_cycle test_acting",
    "discovery/samples": "test_sampling test_gram test_large",
    "discovery/trained": "test_deep",
    "envs/": "test_envs test_collect test_wrapper test_wrong_results",
    "envs/batch": "test_collect test_vector test_wrapper",
    "envs/collecting": "test_collect",
    "envs/fit": "test_wrong_kind test_wrapper test_vector test_wrong_results",
    "envs/mazes": "test_envs test_vector",
    "envs/minigrid": "test_envs test_sketch test_wrong_results",
    "envs/running": "test_wrapper test_acting test_stopping",
    "envs/sampler": "test_collect test_sampling",
    "envs/sb3": "test_sb3",
    "envs/spaces": "test_option_space test_wrapper test_sb3",
    "envs/training": "test_arena_agents",
    "envs/vector": "test_vector test_wrapper",
    "envs/wrapper": "test_wrapper test_option_space test_stopping test_sb3",
    "evaluation/": "test_evaluation test_option_chance test_estimate test_large",
    "experiments/atari/": "test_paper_atari test_atari test_atari_command test_paper_atari_jobs",
    "experiments/": "test_claims test_paper",
    "experiments/store": "test_store test_store_faults test_claims",
    "features": "test_features test_storage test_acting",
    "files": "test_storage test_reliability test_forged_files",
    "learning": "test_learning test_reliability",
    "mdp/": "test_mdp test_sketch test_data test_reliability test_wrong_results test_discovery",
    "options/": "test_options test_planning test_storage",
    "options/fitted": "test_acting test_cycle",
    "options/linear": "test_acting test_stopping test_sampling test_storage",
    "options/lookahead": "test_acting",
    "options/reader": "test_storage test_acting test_forged_files",
    "options/stopping": "test_stopping test_wrapper",
    "options/walks": "test_evaluation test_option_chance test_estimate test_learning test_large test_cycle",
    "parallel/": "test_parallel test_faults test_large",
    "parallel/cluster": "test_parallel test_ray",
    "spectra/": "test_spectra test_basis test_representations test_gram",
    "spectra/canonical": "test_spectra test_basis",
    "spectra/gram": "test_gram test_reliability test_forged_files",
    "spectra/rows": "test_gram",
    "spectra/representations": "test_representations test_methods test_cycle test_hierarchy",
    "studio/": "test_studio test_studio_input test_reliability",
    "studio/gallery": "test_reliability test_studio test_atari_command",
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


class Cheap:
    """Plugin of pytest for one run: order, budget and time limits of the tests."""

    def __init__(self, times: Path, budget: float, extra: int = MAX_COMPILE_SECONDS) -> None:
        self.path, self.budget, self.extra = times, budget, extra
        self.times: dict[str, float] = json.loads(times.read_text()) if times.exists() else {}
        self.measured: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put the fastest tests first, those of the first file before others; what is not known yet counts as fast."""
        files = list(dict.fromkeys(item.path for item in items))
        known = {item.nodeid: self.times.get(item.nodeid, 0.1) for item in items}

        def order(item: pytest.Item) -> tuple[int, int, float]:
            seconds = known[item.nodeid]
            return sum(seconds > limit for limit in (0.05, 0.3, 1, 3)), files.index(item.path), seconds

        items.sort(key=order)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measure a test, and end the process if it takes far longer than it should."""
        begun, known = cpu_seconds(), self.times.get(item.nodeid, self.budget)
        left = self.budget - begun
        item.stash[_SKIPPED] = left < 0 or self.times.get(item.nodeid, 0.0) > max(left, 1.0)
        limit = int(time.process_time() + MAX_SLOWDOWN * known + self.extra)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        signal.alarm(int(4 * MAX_SLOWDOWN * known) + MAX_EXTRA_SECONDS)
        try:
            return (yield)
        finally:
            signal.alarm(0)
            if not item.stash[_SKIPPED]:
                self.measured[item.nodeid] = round(cpu_seconds() - begun, 2)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Leave out what the budget does not allow."""
        if item.stash[_SKIPPED]:
            pytest.skip("the budget of this mutant is used up")

    def pytest_sessionfinish(self) -> None:
        """Keep the seconds for the next mutant."""
        known = json.loads(self.path.read_text()) if self.path.exists() else {}
        made = self.path.with_suffix(f".{os.getpid()}")
        made.write_text(json.dumps(known | self.measured))
        made.replace(self.path)


_SKIPPED = pytest.StashKey[bool]()


def cpu_seconds() -> float:
    """CPU seconds of this process and of those it has started and waited for."""
    return sum(os.times()[:4])


def wanted(operator: str) -> bool:
    """Whether a change keeps to the kind of the operator. Decorators stay: without @njit code is only slower."""
    pair = re.search(r"/Replace\w*Operator_(\w+?)_(\w+)$", operator)
    if pair:
        return any({pair[1], pair[2]} <= kind for kind in KINDS) or "Delete" in pair[2]
    return "RemoveDecorator" not in operator and not get_operator(operator).arguments()


def ignored(tree: ast.AST) -> Iterator[ast.AST | None]:
    """Parts of a module that are not run, or that no test is to notice.

    Annotations and code for type checkers (`TYPE_CHECKING`, `assert`); decorators; the text of errors, warnings, logs
    and `__repr__`; and `strict=` of zip, which like an assertion never decides anything in right code.
    """
    for node in ast.walk(tree):
        texts = False
        if isinstance(node, ast.arg | ast.AnnAssign):
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (node.returns, *node.decorator_list)
            texts = node.name in ("__repr__", "__str__")
        elif isinstance(node, ast.ClassDef):
            yield from node.decorator_list
        elif isinstance(node, ast.Assert) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ):
            yield node
        elif isinstance(node, ast.Raise):
            texts = True
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func).rsplit(".")[-1]
            texts = called in ("warn", "warning", "info", "debug", "error", "print")
            yield from (word.value for word in node.keywords if (called, word.arg) == ("zip", "strict"))
        if texts:
            yield from (part for part in ast.walk(node) if isinstance(part, ast.JoinedStr))


def unread(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Spans of the parts that are `ignored`."""
    found = (node for node in ignored(ast.parse(source)) if node is not None)
    return [((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset)) for n in found]  # type: ignore


@dataclass(frozen=True)
class Mutant:
    """A change: place and operator, which name it in all versions of the code, and the occurrence of the operator."""

    name: tuple[str, str, int, int, str]
    occurrence: int

    @property
    def path(self) -> str:
        """The module."""
        return self.name[0]


def places(
    path: str, source: str, operators: dict[str, Any]
) -> dict[tuple[str, str, int, int], list[tuple[str, int]]]:
    """Places of a module that can be changed: the changes of each, as operator and occurrence.

    A place is a path, the text of a line, a column of it and a count of equal lines, so that it stays the same when
    other lines change.
    """
    lines, skipped, seen = source.splitlines(), unread(source), collections.Counter()
    counts = [seen.update([line.strip()]) or seen[line.strip()] for line in lines]
    nodes = list(ast_nodes(get_ast(source)))
    found: dict[tuple[str, str, int, int], list[tuple[str, int]]] = collections.defaultdict(list)
    for name, operator in operators.items():
        spots = (spot for node in nodes for spot in operator.mutation_positions(node))
        for occurrence, (start, _) in enumerate(spots):
            if not any(low <= start < high for low, high in skipped):
                text = lines[start[0] - 1]
                column = start[1] - len(text) + len(text.lstrip())
                found[path, text.strip(), column, counts[start[0] - 1]].append((name, occurrence))
    return found


def mutant_of(source: str, operator: str, occurrence: int) -> str | None:
    """The changed source, or None if it means the same or is no Python: Cosmic Ray takes any star for a product."""
    mutant = mutate_code(source, get_operator(operator)(), occurrence)
    try:
        same = mutant is None or ast.dump(ast.parse(mutant)) == ast.dump(ast.parse(source))
    except SyntaxError:
        return None
    return None if same else mutant


def drawn_from(*key: object) -> str:
    """A random number that only the key decides, as text."""
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()


def sample(count: int, seed: int, only: str) -> list[Mutant]:
    """`count` places drawn without replacement, each with one change.

    Every place has a random number of its own, and the smallest are drawn: a commit that changes other lines leaves
    the sample as it is.
    """
    operators = {name: get_operator(name)() for name in sorted(operator_names()) if wanted(name)}
    every = {}
    for module in sorted((ROOT / PACKAGE).rglob("*.py")):
        path = module.relative_to(ROOT / PACKAGE).as_posix()
        if re.search(only, path) and not path.startswith(DRAWN):
            every |= places(path, module.read_text(), operators)
    print(f"{len(every):,} places", flush=True)
    return list(islice(mutants(every, seed), count))


def mutants(every: dict[tuple[str, str, int, int], list[tuple[str, int]]], seed: int) -> Iterator[Mutant]:
    """One mutant per place, in the random order of the seed."""
    for place in sorted(every, key=lambda place: drawn_from(seed, *place)):
        source = (ROOT / PACKAGE / place[0]).read_text()
        for operator, occurrence in sorted(
            every[place], key=lambda change: drawn_from(seed, *place, *change[:1])
        ):
            if mutant_of(source, operator, occurrence):
                yield Mutant((*place, operator), occurrence)
                break


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


def keep_compiled(root: Path, other: Path) -> None:
    """Copy compiled kernels to another tree whose kernels are the same files, so that they are compiled once."""
    compiled = other / PACKAGE / "_kernels" / "__pycache__"
    compiled.mkdir(exist_ok=True)
    known = {path.name.split(".py3")[0] for path in compiled.glob("*.nb*")}
    for path in (root / PACKAGE / "_kernels" / "__pycache__").glob("*.nb*"):
        # Index and code of one kernel belong together: those of another tree are numbered otherwise.
        if path.name.split(".py3")[0] not in known:
            shutil.copy2(path, compiled)


@dataclass
class Run:
    """Tests in a tree, in a process of its own; `log` is what pytest prints."""

    root: Path
    log: Path
    pid: int = 0

    def start(self, arguments: list[str], cheap: Cheap, *, write_bytecode: bool = False) -> Run:
        """Fork, and run pytest with these arguments."""
        self.pid = os.fork()
        if self.pid:
            return self
        code = 70
        try:
            os.setsid()
            for number, target in (
                (os.open(os.devnull, os.O_RDONLY), 0),
                (self._opened(), 1),
                (self._opened(), 2),
            ):
                os.dup2(number, target)
            os.chdir(self.root)
            os.environ["PYTHONPATH"] = os.pathsep.join((str(self.root / "src"), str(self.root)))
            os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
            sys.dont_write_bytecode = not write_bytecode
            sys.path[:] = [
                str(self.root / "src"),
                str(self.root),
                *(p for p in sys.path if p not in OWN_PATHS),
            ]
            sys.argv = ["pytest"]
            for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "eigenoptions")]:
                del sys.modules[name]
            importlib.invalidate_caches()
            quiet = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile=mutants"]
            quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
            code = int(pytest.main([*quiet, *arguments], plugins=[cheap]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)

    def _opened(self) -> int:
        return os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def outcome(self, status: int) -> tuple[str, str]:
        """ "survived", "killed" or "time", and the test that failed."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        if status == 0:
            return "survived", ""
        text = self.log.read_text(errors="replace")
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", text, re.M)
        slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM)
        return ("time" if slow else "killed"), failed[1] if failed else text[-300:]


OWN_PATHS = {"", str(ROOT), str(ROOT / "src"), os.getcwd()}


def mutated(pristine: Path, root: Path, mutant: Mutant) -> list[str]:
    """Make a copy of the repository, of hard links, with one change; the lines that differ."""
    path, source = mutant.path, (pristine / PACKAGE / mutant.path).read_text()
    changed = mutant_of(source, mutant.name[-1], mutant.occurrence)
    assert changed is not None
    shutil.copytree(pristine, root, copy_function=os.link)
    (root / PACKAGE / path).unlink()
    (root / PACKAGE / path).write_text(changed)
    if path.startswith("_kernels/"):
        forget_compiled(root / PACKAGE / "_kernels", Path(path).stem)
    lines = difflib.unified_diff(source.splitlines(), changed.splitlines(), lineterm="", n=0)
    return [
        f"{line[0]} {line[1:].strip()}"
        for line in lines
        if line[0] in "+-" and line[:3] not in ("---", "+++")
    ]


def prepare(made: Path, times: Path, log: Path) -> Path:
    """A copy of the repository with bytecode and compiled kernels; stops if its tests cannot be collected."""
    pristine = made / "pristine"
    pristine.mkdir()
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, pristine / name)
    kernels = [test for start in TESTS if start.startswith("_kernels/") for test in TESTS[start].split()]
    warm_up = [f"tests/{test}.py" for test in dict.fromkeys(kernels)]
    compiled = any((pristine / PACKAGE / "_kernels" / "__pycache__").glob("*.nbi"))
    for arguments, budget in ((["--collect-only", "tests"], 1e9), (warm_up, 0.0 if compiled else 120.0)):
        run = Run(pristine, log).start(arguments, Cheap(times, budget), write_bytecode=True)
        outcome, by = run.outcome(os.waitpid(run.pid, 0)[1])
        if outcome != "survived":
            raise SystemExit(f"the tests fail without a mutant, see {log}: {by}")
    keep_compiled(pristine, ROOT)
    return pristine


def function_of(test: str) -> str:
    """A test without its parameters, which may hold spaces."""
    return test.split("[")[0]


def failures(pristine: Path, rows: list[dict[str, Any]], times: Path, log: Path) -> set[str]:
    """Tests that killed a mutant and fail without one too: these kills do not count."""
    killed = [row["by"] for row in rows if row["outcome"] == "killed" and "::" in row["by"]]
    if not killed:
        return set()
    log.unlink(missing_ok=True)
    run = Run(pristine, log).start(sorted({function_of(test) for test in killed}), Cheap(times, 1e9))
    code = os.waitstatus_to_exitcode(os.waitpid(run.pid, 0)[1])
    if code not in (0, 1):
        raise SystemExit(f"the tests that killed mutants could not be run without one, see {log}")
    return {
        function_of(test)
        for test in re.findall(r"^(?:FAILED|ERROR) (\S+)", log.read_text(errors="replace"), re.M)
    }


def equivalent() -> dict[tuple[str, ...], str]:
    """Changes that cannot be noticed, as path and changed lines, with the reason."""
    listed = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())["equivalent"]
    return {(change["path"], *change["change"]): change["reason"] for change in listed}


def summary(rows: list[dict[str, Any]], failing: set[str]) -> str:
    """Numbers of killed, equivalent and surviving mutants, and the survivors."""
    reasons = equivalent()
    counts, lines = collections.Counter(), []
    for row in rows:
        noticed = row["outcome"] != "survived" and function_of(row["by"]) not in failing
        reason = reasons.get((row["name"][0], *row["change"]))
        counts["killed" if noticed else "equivalent" if reason else "survived"] += 1
        if not noticed and not reason:
            lines.append(f"survived: {row['name'][0]} {' -> '.join(row['change'])}")
    lines += [f"fails without a mutant, so that its kills do not count: {test}" for test in sorted(failing)]
    of_all, of_rest = (counts["killed"] / max(1, n) for n in (len(rows), len(rows) - counts["equivalent"]))
    numbers = ", ".join(f"{counts[key]} {key}" for key in ("killed", "equivalent", "survived"))
    ratios = f"{of_all:.1%} killed of all, {of_rest:.1%} of those that are not equivalent"
    return "\n".join([*lines, f"{len(rows)} mutants: {numbers}; {ratios}"])


def tried(to_do: list[Mutant], given: argparse.Namespace, pristine: Path) -> Iterator[dict[str, Any]]:
    """Try mutants, `given.workers` at a time, until they or the seconds are used up."""
    end, times = time.monotonic() + given.seconds, given.out.with_suffix(".times")
    queue, running = iter(to_do), {}
    while True:
        for mutant in islice(queue, given.workers - len(running) if time.monotonic() < end else 0):
            root = pristine.with_name(drawn_from(mutant.name)[:16])
            change = mutated(pristine, root, mutant)
            kernel = mutant.path.startswith("_kernels/")
            # Compiling takes about as long as the tests.
            cheap = Cheap(times, given.budget * (1 + kernel), *(() if kernel else (MAX_EXTRA_CPU_SECONDS,)))
            run = Run(root, root / "log").start(["-x", *tests_of(mutant.path)], cheap)
            running[run.pid] = run, {"name": mutant.name, "change": change}
        if not running:
            return
        pid, status, used = os.wait4(-1, 0)
        run, row = running.pop(pid)
        row["outcome"], row["by"] = run.outcome(status)
        row["seconds"] = round(used.ru_utime + used.ru_stime, 1)
        yield row
        if not row["name"][0].startswith("_kernels/"):
            keep_compiled(run.root, pristine)
        shutil.rmtree(run.root)


def main() -> None:
    """Run until the mutants or the seconds are used up; print what came of them."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--count", type=int, default=200, help="places to change")
    reader.add_argument("--seed", type=int, default=2017)
    reader.add_argument("--only", default=LIBRARY, help="regular expression of module paths")
    reader.add_argument("--seconds", type=float, default=3600.0, help="no mutant begins after these")
    reader.add_argument("--budget", type=float, default=15.0, help="CPU seconds of the tests of a mutant")
    reader.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="mutants at a time")
    reader.add_argument("--out", type=Path, default=ROOT / "out" / "mutants.jsonl")
    reader.add_argument("--again", action="store_true", help="run the survivors of the file again")
    given = reader.parse_args()
    times, log = given.out.with_suffix(".times"), given.out.with_suffix(".log")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    done = {tuple(row["name"]): row for row in rows}
    drawn = sample(given.count, given.seed, given.only)
    again = {name for name, row in done.items() if given.again and row["outcome"] == "survived"}
    to_do = [mutant for mutant in drawn if mutant.name not in done or mutant.name in again]
    os.environ.update(CI="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MPLBACKEND="Agg")
    for name in PRELOADED.split():
        with suppress(ImportError):
            importlib.import_module(name)
    with tempfile.TemporaryDirectory() as made:
        pristine = prepare(Path(made), times, log)
        for row in tried(to_do, given, pristine):
            done[row["name"]] = row
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(
                f"{row['outcome']:9}{row['seconds']:6} {row['name'][0]} {' -> '.join(row['change'])}",
                flush=True,
            )
        last = [done[mutant.name] for mutant in drawn if mutant.name in done]
        print(summary(last, failures(pristine, last, times, log)))


if __name__ == "__main__":
    main()
