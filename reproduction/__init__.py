"""Reproduction of the paper: ``python -m reproduction`` runs its experiments, judges its claims and writes a report."""
