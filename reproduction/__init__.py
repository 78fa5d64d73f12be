"""Reproduction of the paper: ``python -m reproduction`` runs its experiments.

It judges the paper's claims and writes a report.
"""
