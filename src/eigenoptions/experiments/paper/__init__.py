"""The figures and statements of the paper's tabular part, one file per experiment."""
