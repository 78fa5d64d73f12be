"""The study of Atari games (Section 5.2 and Appendix E).

``python -m reproduction atari GAME`` studies Freeway, Montezuma's Revenge or
Ms. Pac-Man; the sizes of a study are in `settings`. The report judges stored results of
full runs (``results/``), unless it is asked to play the games anew.
"""

from reproduction.atari.command import main

__all__ = ["main"]
