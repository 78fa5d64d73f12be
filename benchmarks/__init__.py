"""Benchmarks: ratios against what a user would write instead.

``python -m benchmarks [NAME ...]`` runs all benchmarks, or those that are named, and
prints one table. Both sides run in turns in one process. A ratio above 1 means that the
library is faster. Before anything is timed, both sides must give the same answer.
"""
