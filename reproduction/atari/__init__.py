"""Atari games (Section 5.2 and Appendix E)."""
