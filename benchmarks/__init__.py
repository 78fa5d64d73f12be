"""Benchmarks: ratios against what a user would write instead, taken in turns in one process.

``python -m benchmarks [NAME ...]`` runs all, or those that are named, and prints one table. A ratio above 1 means that
the library is faster. Before anything is timed, both sides must give the same answer.
"""
