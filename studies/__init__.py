"""Studies beyond the paper: ``python -m studies`` lists them."""
