"""What several experiments run: options, diffusion times and learning.

The source of these files is part of the key of every job.
"""
