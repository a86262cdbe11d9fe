"""Tests of what is shipped around the package: the .mcpb bundle, server.json, the image's recipe."""
