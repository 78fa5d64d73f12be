"""Compiled loops over plain arrays: no classes, no random generators made, no fastmath.

The only door to numba. Every kernel has a slow, readable twin in ``tests/reference.py``.
"""
