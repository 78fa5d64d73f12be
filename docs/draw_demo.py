"""Draw docs/images/demo.svg: what ``eigenoptions demo`` shows in a terminal.

    python docs/draw_demo.py            # does the picture show what the program prints?
    python docs/draw_demo.py --write    # draw it anew

The program runs in a pseudo-terminal, which Windows does not have. What it leaves on
the screen is drawn, and its text is compared.
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.style import Style
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "demo.svg"
WIDTH = 80

# What the terminal is told between two frames: delete this line, and lines above it.
_NEXT_FRAME = re.compile("\r?\x1b\\[2K((?:\x1b\\[1A\x1b\\[2K)*)")
_CURSOR = re.compile("\x1b\\[\\?25[hl]")

# The form of the picture. Rich's own asks another host for a font.
_FORM = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" \
clip-path="url(#{unique_id}-clip-terminal)" shape-rendering="crispEdges">
{backgrounds}
<g class="{unique_id}-matrix" id="text">
{matrix}
</g>
</g>
</svg>
"""


def run_in_terminal(command: list[str]) -> str:
    """Run a program in a terminal with colours, and return what it writes."""
    variables = {
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "COLUMNS": str(WIDTH),
        "LINES": "60",
    }
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command,
        stdout=theirs,
        stderr=theirs,
        env={**environment, **variables},
    ) as program:
        os.close(theirs)
        output = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                # Linux says that the other side was closed with an error.
                break
            if not part:
                break
            output += part
    os.close(ours)
    if program.returncode:
        raise SystemExit(output.decode())
    return output.decode()


def read_screen(output: str) -> list[Text]:
    """Return the lines that are left on the screen, with their colours."""
    shown: list[str] = []
    end = 0
    output = _CURSOR.sub("", output).replace("\r\n", "\n")
    for signal in _NEXT_FRAME.finditer(output):
        shown += output[end : signal.start()].split("\n")
        end = signal.end()
        n_lines = 1 + signal[1].count("\x1b[1A")
        del shown[-n_lines:]
    shown += output[end:].split("\n")
    return list(AnsiDecoder().decode("\n".join(shown).rstrip()))


def draw_screen(lines: list[Text]) -> str:
    """Draw lines as a window."""
    console = Console(
        record=True,
        width=WIDTH,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
        legacy_windows=False,
    )
    for line in lines:
        console.print(_fill_blocks(line), soft_wrap=True)
    return console.export_svg(
        title="eigenoptions demo", code_format=_FORM, unique_id="demo"
    )


def _fill_blocks(line: Text) -> Text:
    """Fill the background under block characters, which leave seams in a picture."""
    filled = Text()
    for segment in line.render(Console()):
        style = segment.style or Style()
        for part in re.split("(█+)", segment.text.rstrip("\n")):
            if part.startswith("█"):
                filled.append(" " * len(part), style + Style(reverse=True))
            else:
                filled.append(part, style)
    return filled


def read_picture(picture: str) -> list[str]:
    """Read the text of each line of a picture, without its spaces."""
    rows: dict[str, str] = defaultdict(str)
    root = ElementTree.fromstring(picture)
    for element in root.iterfind(".//*[@id='text']/*"):
        rows[element.attrib["clip-path"]] += element.text or ""
    texts = ["".join(row.split()) for row in rows.values()]
    return [text for text in texts if text]


def main() -> None:
    """Print what differs; exit with 1 if something does and is not drawn anew."""
    demo = [sys.executable, "-m", "eigenoptions", "demo"]
    picture = draw_screen(read_screen(run_in_terminal(demo)))
    if "--write" in sys.argv[1:]:
        PICTURE.write_text(picture, encoding="utf-8")
        return

    shown = read_picture(PICTURE.read_text(encoding="utf-8"))
    printed = read_picture(picture)
    if shown == printed:
        print("the picture shows what the program prints")
        return
    for line in printed:
        if line not in shown:
            print(f"docs/images/demo.svg does not show: {line}")
    raise SystemExit("draw it anew: python docs/draw_demo.py --write")


if __name__ == "__main__":
    main()
