"""What README claims, measured: `python -m benchmarks` prints the table, each figure beside what it is compared with in the same run."""
