"""The paper's figures and claims: one file per experiment, found by `eigenoptions.experiments.all_experiments`."""
