"""The whole test suite under other CPU types, threads, interpreters and versions.

``make test-matrix`` runs it (about forty minutes on two idle cores) and writes the
table of results to ``out/matrix.md``. Names of settings on the command line run only
these, and the rows of others stay.

Each setting first shows what it changes: a process looks at the instructions, BLAS
kernels, threads, compiler target and versions that are in effect. A setting that this
machine does not have, or that changes nothing here, is listed as such and is not run.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from numpy import show_config

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "out" / "matrix.md"

# Variables that begin like this change what is in effect: only those of a setting stay.
PREFIXES = ("MKL_", "NPY_", "NUMBA_", "OMP_", "OPENBLAS_", "PYTHONPATH")
# The size of a cache is a fact. Where a virtual machine hides it, kernels of OpenBLAS
# end the process without this variable.
FACTS = ("OPENBLAS_L2_SIZE",)

# What the tests import, with nothing that has no build for newer Pythons.
PACKAGES = (
    *("--constraint=constraints.txt", "--editable=.[atari,deep,ray,sb3]"),
    *("minigrid", "networkx", "pandas", "jinja2", "deeptime"),
    *("pytest", "pytest-xdist", "hypothesis", "playwright"),
)
# Where no build of torch can be had, there is nothing that needs it either.
WITHOUT_TORCH = (
    "--editable=.[atari]",
    *("minigrid", "networkx", "pandas", "jinja2", "threadpoolctl"),
    *("pytest", "pytest-xdist", "hypothesis", "playwright"),
)
OLDEST = ("--constraint=tests/oldest.txt", *PACKAGES)
# The oldest Stable-Baselines3 needs a newer torch than `deep` does.
OLDEST_TORCH = (
    *("--constraint=tests/oldest.txt", "--editable=.[deep]", "torch==2.4.0"),
    *("networkx", "pandas", "deeptime", "pytest", "pytest-xdist", "hypothesis"),
)

# Tests of what only the development environment has: mypy, Sphinx, and packages whose
# answers are compared with ours.
FOR_DEVELOPERS = ("tests/test_types.py", "tests/test_docs.py", "tests/test_oracles.py")
NEED_TORCH = (
    *(
        "tests/deep/test_deep.py",
        "tests/studies/test_deep_arena.py",
        "tests/samples/test_incidence.py",
    ),
    *("tests/test_parallel.py", "tests/samples/test_transitions.py"),
    *(
        "tests/agents/test_sb3.py",
        "tests/agents/test_sb3_steps.py",
        "tests/agents/test_sb3_explored.py",
    ),
    *("src/eigenoptions/agents", "src/eigenoptions/deep"),
)

# What is in effect in a process, as JSON. The product ends the process where the CPU
# does not have the instructions of a kernel.
PROBE = """
import json, platform
from importlib import metadata
import numba, numpy, scipy.linalg, threadpoolctl
matrix = numpy.ones((256, 256))
scipy.linalg.inv(matrix @ matrix + numpy.eye(256))
extensions = numpy.show_config(mode="dicts")["SIMD Extensions"]
libraries = threadpoolctl.threadpool_info()
blas = [library for library in libraries if library["internal_api"] == "openblas"]
found = {
    "Python": platform.python_version(),
    "SIMD of NumPy": (extensions["baseline"] + extensions.get("found", []))[-1],
    "BLAS": "/".join(sorted({library["architecture"] for library in blas})),
    "threads": "/".join(sorted({str(library["num_threads"]) for library in blas})),
    "CPU of numba": numba.config.CPU_NAME or "host",
}
for name in ("numpy", "scipy", "numba", "gymnasium", "torch"):
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        found[name] = "none"
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Setting:
    """One row of the table: variables of the environment, or another environment."""

    name: str
    variables: dict[str, str] = field(default_factory=dict)
    # The folder of a virtual environment, which is made of these requirements.
    folder: str = ".venv"
    requirements: tuple[str, ...] = ()
    # Its Python, such as "3.12"; that of this program if it is empty.
    python: str = ""
    # Tests that are left out, and those that alone are run, if there are any.
    without: tuple[str, ...] = ()
    only: tuple[str, ...] = ()


def list_settings() -> list[Setting]:
    """All settings, in the order of the table."""
    without_avx512 = list_features(("X86_V4", "AVX512"))
    without_avx2 = list_features(("X86_V3", "X86_V4", "AVX512", "AVX2", "FMA3"))
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    two_threads = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    return [
        Setting("as it is"),
        Setting("NumPy without AVX-512", {"NPY_DISABLE_CPU_FEATURES": without_avx512}),
        Setting("NumPy without AVX2", {"NPY_DISABLE_CPU_FEATURES": without_avx2}),
        Setting("BLAS of Prescott", {"OPENBLAS_CORETYPE": "Prescott"}),
        Setting("BLAS of Nehalem", {"OPENBLAS_CORETYPE": "Nehalem"}),
        Setting("BLAS of Haswell", {"OPENBLAS_CORETYPE": "Haswell"}),
        Setting("BLAS of SkylakeX", {"OPENBLAS_CORETYPE": "SkylakeX"}),
        Setting("two threads", two_threads),
        Setting("numba for a generic CPU", generic),
        make_setting_of_python("3.12"),
        make_setting_of_python("3.13"),
        Setting(
            "oldest versions",
            folder=".venv-oldest",
            requirements=OLDEST,
            without=FOR_DEVELOPERS,
        ),
        Setting(
            "oldest torch",
            folder=".venv-torch",
            requirements=OLDEST_TORCH,
            only=("tests/deep/test_deep.py", "tests/samples/test_incidence.py"),
        ),
    ]


def make_setting_of_python(version: str) -> Setting:
    """The row of another Python."""
    return Setting(
        f"Python {version}",
        folder=f".venv-{version}",
        requirements=PACKAGES,
        python=version,
        without=FOR_DEVELOPERS,
    )


def list_features(prefixes: tuple[str, ...]) -> str:
    """The names of features that NumPy found in this CPU and that begin like this.

    NumPy warns if it is told to disable what it does not know.
    """
    config = show_config(mode="dicts")
    found = config["SIMD Extensions"].get("found", [])
    return " ".join(name for name in found if name.startswith(prefixes))


def make_environment(setting: Setting) -> str:
    """Make the virtual environment of a setting, unless it is up to date.

    Returns
    -------
    str
        Empty, or what cannot be had: "this Python", "these versions" or "torch".
    """
    if not setting.requirements:
        return ""
    folder = ROOT / setting.folder
    stamp = folder / ".done"
    made_from = [ROOT / "pyproject.toml", Path(__file__)]
    for requirement in setting.requirements:
        if requirement.startswith("--constraint="):
            made_from.append(ROOT / requirement.removeprefix("--constraint="))
    newest = max(file.stat().st_mtime for file in made_from)
    if stamp.exists() and stamp.stat().st_mtime > newest:
        return stamp.read_text()

    # Where pyenv is installed, a program of this name runs what the variable says.
    env = {**os.environ, "PYENV_VERSION": setting.python}
    interpreter = sys.executable
    if setting.python:
        interpreter = shutil.which(f"python{setting.python}") or ""
        if not interpreter or subprocess.run([interpreter, "-V"], env=env).returncode:
            return "this Python"
    else:
        del env["PYENV_VERSION"]
    subprocess.run([interpreter, "-m", "venv", str(folder)], env=env, check=True)

    missing = ""
    if not install(folder, setting.requirements):
        missing = "these versions"
        if setting.requirements is PACKAGES and install(folder, WITHOUT_TORCH):
            missing = "torch"
    if missing != "these versions":
        stamp.write_text(missing)
    return missing


def install(folder: Path, requirements: tuple[str, ...]) -> bool:
    """Install requirements into a virtual environment; say whether it succeeded."""
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    return subprocess.run([*pip, *requirements], cwd=ROOT).returncode == 0


def make_variables(setting: Setting) -> dict[str, str]:
    """The variables of the environment in which a setting runs, and no others' own."""
    kept = {}
    for name, text in os.environ.items():
        if name in FACTS or not name.startswith(PREFIXES):
            kept[name] = text
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return kept | one_thread | setting.variables


def probe(setting: Setting) -> dict[str, str]:
    """What is in effect under a setting; empty if the CPU cannot run it."""
    run = subprocess.run(
        [str(ROOT / setting.folder / "bin" / "python"), "-W", "error", "-c", PROBE],
        env=make_variables(setting),
        stdout=subprocess.PIPE,
        text=True,
    )
    if run.returncode:
        return {}
    found: dict[str, str] = json.loads(run.stdout)
    return found


def run_setting(setting: Setting, usual: dict[str, str]) -> tuple[str, str, bool]:
    """What a setting changes, its result, and whether it failed."""
    missing = make_environment(setting)
    if missing in ("this Python", "these versions"):
        return "", f"not run: {missing} cannot be had here", False
    if setting.variables.get("NPY_DISABLE_CPU_FEATURES") == "":
        return "", "not run: this CPU does not have them", False
    found = probe(setting)
    if not found:
        return "", "not run: this CPU cannot", False
    if setting.variables and found == usual:
        return "", "not run: changes nothing on this CPU", False

    changes = ", ".join(
        f"{name} {value}" for name, value in found.items() if value != usual[name]
    )
    without = setting.without + (NEED_TORCH if missing == "torch" else ())
    result, has_failed = run_suite(setting, without)
    if setting.only:
        result += "; only " + ", ".join(Path(name).stem for name in setting.only)
    if without:
        result += "; without " + ", ".join(Path(name).stem for name in without)
    return changes, result, has_failed


def run_suite(setting: Setting, without: tuple[str, ...]) -> tuple[str, bool]:
    """The counts of pytest, and whether something failed."""
    command = [
        str(ROOT / setting.folder / "bin" / "python"),
        *("-m", "pytest", "-n", "auto", "--dist", "loadfile"),
        *("--no-loadscope-reorder", "-q", "-p", "no:cacheprovider"),
    ]
    if setting.requirements:
        # Other versions of other packages have warnings of their own.
        command += ["-o", "filterwarnings=", "-W", "default"]
    command += [f"--ignore={name}" for name in without]
    command += setting.only
    run = subprocess.run(
        command,
        cwd=ROOT,
        env=make_variables(setting),
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in run.stdout.splitlines():
        if line.startswith(("FAILED", "ERROR")):
            print(f"  {line}", flush=True)

    # pytest ends with 0 only if tests were run, and all of them passed.
    return read_counts(run.stdout), run.returncode != 0


def read_counts(output: str) -> str:
    """The counts in the last line of pytest, such as "2107 passed, 3 skipped"."""
    lines = output.strip().splitlines() or [""]
    counts = re.findall(r"\d+ (?:passed|failed|skipped|errors?)\b", lines[-1])
    return ", ".join(counts) or "ended without a result"


def main(names: list[str]) -> int:
    """Run the settings, print each row, and write the table."""
    settings = list_settings()
    unknown = set(names) - {setting.name for setting in settings}
    if unknown:
        known = ", ".join(setting.name for setting in settings)
        print(f"there is no setting {', '.join(unknown)}: choose of {known}")
        return 2

    usual = probe(settings[0])
    rows = read_rows()
    any_failed = False
    for setting in settings:
        if names and setting.name not in names:
            continue
        print(f"{setting.name} ...", flush=True)
        start = time.monotonic()
        changes, result, has_failed = run_setting(setting, usual)
        minutes = (time.monotonic() - start) / 60
        any_failed |= has_failed
        rows[setting.name] = (
            f"| {setting.name} | {changes} | {result} | {minutes:.0f} |"
        )
        print(rows[setting.name], flush=True)
        write_table([rows[s.name] for s in settings if s.name in rows], usual)
    return int(any_failed)


def write_table(rows: list[str], usual: dict[str, str]) -> None:
    """Write the table, below the processor and what is in effect as it is."""
    in_effect = ", ".join(f"{name} {value}" for name, value in usual.items())
    lines = [
        f"{read_processor()}; {in_effect}",
        "",
        "| setting | changes | result | minutes |",
        "|---|---|---|---|",
        *rows,
    ]
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join(lines) + "\n")


def read_rows() -> dict[str, str]:
    """The rows of the table of an earlier run, by their settings."""
    if not TABLE.exists():
        return {}
    rows = {}
    for line in TABLE.read_text().splitlines():
        name = line.strip("|").split("|")[0].strip()
        if line.startswith("|") and name not in ("setting", "---"):
            rows[name] = line
    return rows


def read_processor() -> str:
    """The name of the processor, where the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = re.search(r"model name\s*: (.+)", cpuinfo.read_text())
        if found:
            return found[1]
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
