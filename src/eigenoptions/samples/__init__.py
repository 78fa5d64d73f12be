"""Recorded experience: readers, feature maps, and options that are fitted to it."""

from eigenoptions.samples.columns import ColumnReport, check_columns
from eigenoptions.samples.transitions import Transitions

__all__ = ["ColumnReport", "Transitions", "check_columns"]
