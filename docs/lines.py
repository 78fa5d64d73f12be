"""Print the lines of each part of the repository beside its budget, which stands in a table of CONTRIBUTING.md."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def count_lines(path: str) -> int:
    """Lines of the tracked Python files (of the studio's page: all files) below a path."""
    pattern = (
        f"{path}*"
        if path.endswith("page/")
        else path
        if path.endswith(".py")
        else f"{path}*.py"
    )
    names = subprocess.check_output(
        ["git", "ls-files", pattern], cwd=ROOT, text=True
    ).split()
    return sum(
        len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in names
    )


def main() -> None:
    """Print the table."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \|.*\| ([\d,]+) \|", text, flags=re.MULTILINE)
    for path, budget in rows:
        lines, limit = count_lines(path), int(budget.replace(",", ""))
        print(f"{path:36}{lines:8,}{limit:8,}{'  over' if lines > limit else ''}")


if __name__ == "__main__":
    main()
