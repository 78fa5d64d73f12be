"""Purposes and options: records, the solver, execution, fitting, files."""

from eigenoptions.options.purposes import eigenpurposes
from eigenoptions.options.records import TERMINATE, Option, OptionSet, Purpose

__all__ = ["TERMINATE", "Purpose", "Option", "OptionSet", "eigenpurposes"]
