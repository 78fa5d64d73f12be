"""The paper's figures and claims: one file per experiment, found by `reproduction.all_experiments`."""
