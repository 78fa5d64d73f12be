"""Atari games (Section 5.2 and Appendix E): Freeway, Montezuma's Revenge and Ms. Pac-Man."""

from __future__ import annotations

from typing import Any

EXPERIMENTS: tuple[Any, ...] = ()
