"""All numba code: loops over plain arrays, which are loaded when they are used.

A kernel takes arrays and records of arrays (`NamedTuple`, which numba accepts). There
are no classes and no fastmath, so a kernel gives the same bytes on every machine.
"""
