"""Time the metrics beside the usual ways to compute them: `python -m benchmarks`."""
