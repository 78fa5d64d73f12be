"""Adapters for agents of other libraries, one file per library.

`eigenoptions.agents.sb3` serves Stable-Baselines3. Nothing is imported here: each file
needs the library that it serves.
"""
