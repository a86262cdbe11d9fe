"""Minutes of mixed calls through the real server, while its cluster and its wires break: `python -m tests.soak`. Not part of CI."""
