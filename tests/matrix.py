"""The whole test suite under other CPU types, threads, interpreters and versions.

``make test-matrix`` runs it (about half an hour on two idle cores) and writes the table
of results to ``out/matrix.md``. A setting that this machine does not have is listed as
"not here". Names of settings on the command line run only these, and the rows of others
stay.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from numpy import show_config

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "out" / "matrix.md"
HEADER = ["| setting | result | minutes |", "|---|---|---|"]

# Other interpreters have no torch: where this was written, only one build can be had,
# for Python 3.11. So they have nothing that needs it.
PACKAGES_WITHOUT_TORCH = [
    "--editable=.[atari]",
    "minigrid",
    "networkx",
    "pandas",
    "jinja2",
    "pytest",
    "pytest-xdist",
    "hypothesis",
    "playwright",
]


# Tests of what only the development environment has: mypy, Sphinx, and packages whose
# answers are compared with ours.
NEED_DEVELOPMENT = ("types", "docs", "oracles")
NEED_TORCH = ("deep", "deep_arena", "incidence", "parallel", "sb3", "transitions")


@dataclass(frozen=True)
class Setting:
    """One row of the table: variables of the environment, or another interpreter."""

    name: str
    variables: dict[str, str] = field(default_factory=dict)
    python: str = ".venv/bin/python"
    # The interpreter for which an environment has to be made first.
    interpreter: str = ""
    # The files of tests that are left out: test_<name>.py.
    without: tuple[str, ...] = ()


def list_settings() -> list[Setting]:
    """All settings, in the order of the table."""
    without_avx512 = list_features(("X86_V4", "AVX512"))
    without_avx2 = list_features(("X86_V3", "X86_V4", "AVX512", "AVX2", "FMA3"))
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    return [
        Setting("as it is"),
        Setting("NumPy without AVX-512", {"NPY_DISABLE_CPU_FEATURES": without_avx512}),
        Setting("NumPy without AVX2", {"NPY_DISABLE_CPU_FEATURES": without_avx2}),
        Setting("BLAS of Prescott", {"OPENBLAS_CORETYPE": "Prescott"}),
        Setting("BLAS of Nehalem", {"OPENBLAS_CORETYPE": "Nehalem"}),
        Setting("BLAS of Haswell", {"OPENBLAS_CORETYPE": "Haswell"}),
        Setting("two threads", {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}),
        Setting("numba for a generic CPU", generic),
        make_setting_of_interpreter("3.12"),
        make_setting_of_interpreter("3.13"),
        Setting(
            "oldest versions",
            python=".venv-oldest/bin/python",
            without=NEED_DEVELOPMENT,
        ),
    ]


def make_setting_of_interpreter(version: str) -> Setting:
    """The row of another Python, of which the environment has no torch."""
    return Setting(
        f"Python {version}",
        python=f".venv-{version}/bin/python",
        interpreter=version,
        without=NEED_DEVELOPMENT + NEED_TORCH,
    )


def list_features(prefixes: tuple[str, ...]) -> str:
    """The names of features that NumPy found in this CPU and that begin like this.

    NumPy refuses to start if it is told to disable what it does not know.
    """
    config = show_config(mode="dicts")
    found = config["SIMD Extensions"].get("found", [])
    return " ".join(name for name in found if name.startswith(prefixes))


def make_environment(setting: Setting) -> bool:
    """Make the virtual environment of another interpreter; False if there is none."""
    folder = ROOT / f".venv-{setting.interpreter}"
    if (folder / ".done").exists():
        return True
    interpreter = shutil.which(f"python{setting.interpreter}")
    # Where pyenv is installed, this is a shim that runs what the variable names.
    env = {**os.environ, "PYENV_VERSION": setting.interpreter}
    if interpreter is None or subprocess.run([interpreter, "-V"], env=env).returncode:
        return False
    subprocess.run([interpreter, "-m", "venv", str(folder)], env=env, check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *PACKAGES_WITHOUT_TORCH], cwd=ROOT, check=True)
    (folder / ".done").touch()
    return True


def run_suite(setting: Setting) -> tuple[str, float]:
    """The last line of pytest, such as "2,107 passed", and minutes."""
    if setting.interpreter and not make_environment(setting):
        return "not here", 0.0
    if setting.variables.get("NPY_DISABLE_CPU_FEATURES") == "":
        return "not here", 0.0

    command = [
        str(ROOT / setting.python),
        *("-m", "pytest", "-n", "auto", "--dist", "loadfile"),
        *("--no-loadscope-reorder", "-q", "-p", "no:cacheprovider"),
    ]
    if setting.python != ".venv/bin/python":
        # Other versions of other packages have warnings of their own. Modules that need
        # what is not installed have no doctests.
        command += ["-o", "filterwarnings=", "-W", "default"]
        command += ["--doctest-ignore-import-errors"]
    command += [f"--ignore=tests/test_{name}.py" for name in setting.without]
    start = time.monotonic()
    run = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **setting.variables},
        stdout=subprocess.PIPE,
        text=True,
    )
    minutes = (time.monotonic() - start) / 60
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", run.stdout, flags=re.MULTILINE)
    for test in failed:
        print(f"  {test}", flush=True)
    last_line = run.stdout.strip().splitlines()[-1].strip("= ")
    result = re.sub(r" in [\d.]+s.*", "", last_line)
    if setting.without:
        result += f"; left out: {', '.join(setting.without)}"
    return result, minutes


def main(names: list[str]) -> int:
    """Run the settings, print each row, and write the table."""
    settings = list_settings()
    unknown = set(names) - {setting.name for setting in settings}
    if unknown:
        known = ", ".join(setting.name for setting in settings)
        print(f"there is no setting {', '.join(unknown)}: choose of {known}")
        return 2

    rows = read_rows()
    has_failed = False
    for setting in settings:
        if names and setting.name not in names:
            continue
        print(f"{setting.name} ...", flush=True)
        result, minutes = run_suite(setting)
        rows[setting.name] = f"| {setting.name} | {result} | {minutes:.1f} |"
        print(rows[setting.name], flush=True)
        has_failed |= "passed" not in result or "failed" in result or "error" in result

        lines = [rows[s.name] for s in settings if s.name in rows]
        head = [
            describe_machine(),
            "",
            "| setting | result | minutes |",
            "|---|---|---|",
        ]
        TABLE.parent.mkdir(exist_ok=True)
        TABLE.write_text("\n".join(head + lines) + "\n")
    return int(has_failed)


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


def describe_machine() -> str:
    """The processor, and the versions of what computes."""
    names = ("numpy", "scipy", "numba", "torch")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in names)
    return f"{read_processor()}; Python {platform.python_version()}, {versions}"


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
