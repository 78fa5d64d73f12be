"""The paper's experiments, one file each; see `reproduction.experiment`."""
