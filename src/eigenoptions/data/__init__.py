"""Recorded experience, and readers of the kinds of data that people have."""

from eigenoptions.data.columns import ColumnReport, check_columns
from eigenoptions.data.transitions import Transitions

__all__ = ["ColumnReport", "Transitions", "check_columns"]
