"""Recorded experience, and readers of the kinds of data that people have."""

from eigenoptions.data.transitions import Transitions

__all__ = ["Transitions"]
