"""Writers of what is shipped beside the code: `python -m scripts.generate` writes all of it, `python -m scripts.bundle` the .mcpb."""
