"""Adapters for agents of other libraries, one file or folder per library.

`eigenoptions.agents.sb3` serves Stable-Baselines3. Nothing is imported here: each
needs the library that it serves.
"""
