"""Build the wheel and the source distribution, and try them outside the repository, as users will (`make package`).

Each extra gets a fresh environment, which is slow, so the suite holds only the light checks (`test_package.py`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "tests" / "user_program.py"
# What must work once the package is installed with an extra; the first is the package alone.
SMOKE = {
    "": "import eigenoptions as eo; assert round(eo.diffusion_time(eo.maze('four-rooms')), 3) == 620.769",
    "studio": "from eigenoptions.studio import serve; import starlette, uvicorn",
    "atari": "from eigenoptions.atari.emulator import Emulator; import ale_py",
    "deep": "import eigenoptions as eo; eo.deep.learn; import torch",
    "sb3": "from eigenoptions.envs.sb3 import SMDPReplayBuffer, OptionsDQN",
    "ray": "import eigenoptions as eo, ray\nwith eo.parallel.using('ray', workers=1): pass",
}
# Files of the wheel without which the package does not work or is not typed.
NEEDED = (
    "eigenoptions/py.typed",
    "eigenoptions/mdp/mazes/four-rooms.txt",
    "eigenoptions/studio/page/index.html",
)


def run(command: Sequence[str | Path], folder: Path) -> str:
    """Run a command outside the repository and return what it prints; stop with its messages if it fails."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    env |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env=env, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(folder: Path, *requirements: str) -> Path:
    """A fresh virtual environment with these requirements; the folder of its programs."""
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    run([programs / "python", "-m", "pip", "install", "--quiet", *requirements], folder)
    return programs


def build(folder: Path) -> tuple[Path, Path]:
    """Wheel and source distribution, built as for a release; the wheel comes out of the source distribution."""
    tools = environment(folder / "tools", "build", "twine", "cffconvert")
    run([tools / "python", "-m", "build", "--quiet", "--outdir", folder / "dist", ROOT], folder)
    run([tools / "twine", "check", "--strict", *(folder / "dist").iterdir()], folder)
    run([tools / "cffconvert", "--validate", "-i", ROOT / "CITATION.cff"], folder)
    (wheel,) = (folder / "dist").glob("*.whl")
    (source,) = (folder / "dist").glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    missing = [name for name in NEEDED if name not in names]
    foreign = [name for name in names if not name.startswith("eigenoptions")]
    if missing or foreign:
        sys.exit(f"the wheel lacks {missing} and should not hold {foreign}")
    return wheel, source


def try_out(folder: Path, requirement: str, code: str) -> None:
    """Install into a fresh environment, and run a smoke test and the commands."""
    programs = environment(folder, requirement)
    run([programs / "python", "-c", code], folder)
    for args in (
        ["--version"],
        ["--help"],
        ["demo", "--json"],
        ["discover", "i-maze", "-n", "2", "--out", "out"],
    ):
        run([programs / "eigenoptions", *args], folder)
    run([programs / "python", PROGRAM], folder)


def check_types(folder: Path, wheel: Path) -> None:
    """Run mypy and pyright on a user's program; both must accept every type that it states."""
    programs = environment(folder, str(wheel), "mypy", "pyright")
    copy = folder / "program.py"
    copy.write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
    run([programs / "mypy", "--strict", copy], folder)
    run([programs / "pyright", "--pythonpath", programs / "python", copy], folder)


def main() -> None:
    """Build, then try every way to install."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extras", default=",".join(SMOKE), help="comma-separated; empty: the package alone")
    chosen = parser.parse_args().extras.split(",")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        begin = time.perf_counter()

        def report(what: str) -> None:
            print(f"{time.perf_counter() - begin:6.0f} s  {what}", flush=True)

        wheel, source = build(folder)
        size = [f"{path.name} {path.stat().st_size / 1e6:.1f} MB" for path in (wheel, source)]
        report(f"built {' and '.join(size)}; metadata and citation are valid")
        for extra in chosen:
            requirement = f"{wheel}[{extra}]" if extra else str(wheel)
            try_out(folder / f"with-{extra}", requirement, SMOKE[extra])
            report(f"wheel{f' with the extra {extra}' if extra else ''} works")
        try_out(folder / "from-source", str(source), SMOKE[""])
        report("source distribution works")
        check_types(folder / "types", wheel)
        report("mypy and pyright accept a user's program")


if __name__ == "__main__":
    main()
