"""Results of the Atari part: games, options, pictures and clips of a folder.

Only files that the folder's ``index.json`` names are served. Its layout is described in docs/studio.md.
"""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

FORMAT = 1
# Fields of an option that name a file.
FILE_FIELDS = ("heatmap", "histogram", "clip")
SUFFIXES = (".png", ".gif", ".webp", ".jpg", ".mp4", ".webm")


class Gallery:
    """A folder of results; None for no results."""

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = None if folder is None else Path(folder).resolve()

    @property
    def found(self) -> bool:
        """Whether there are results."""
        return self.folder is not None and (self.folder / "index.json").is_file()

    def index(self) -> dict[str, Any]:
        """Games and their options, with only the files that exist."""
        if self.folder is None or not self.found:
            return {"games": []}
        try:
            stored = json.loads((self.folder / "index.json").read_text(encoding="utf-8"))
            if stored["format"] != FORMAT:
                raise ValueError(f"it has format {stored['format']!r}, this version reads {FORMAT}")
            return {"games": [self._game(game) for game in stored["games"]]}
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            raise ValueError(f"cannot read index.json of the Atari results: {error}") from None

    def file(self, name: str) -> Path | None:
        """The path of a file that the index names, or None."""
        for game in self.index()["games"]:
            for option in game["options"]:
                if self.folder is not None and name in (option[field] for field in FILE_FIELDS):
                    return self.folder / name
        return None

    def _game(self, game: dict[str, Any]) -> dict[str, Any]:
        options = [
            {
                "label": str(option["label"]),
                "note": str(option.get("note", "")),
                **{field: self._servable(option.get(field)) for field in FILE_FIELDS},
            }
            for option in game["options"]
        ]
        return {"name": str(game["name"]), "options": options}

    def _servable(self, name: Any) -> str | None:
        """The name, if it is that of a picture or clip inside the folder; else None."""
        if self.folder is None or not isinstance(name, str) or PurePosixPath(name).suffix not in SUFFIXES:
            return None
        try:
            path = (self.folder / name).resolve()
            return name if path.is_relative_to(self.folder) and path.is_file() else None
        except (ValueError, OSError):
            # A name that no file can have, because of a NUL or its length.
            return None
