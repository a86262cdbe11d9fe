"""The async client of the REST API: paths, encoding, TLS, errors (the only importer of httpx)."""

from __future__ import annotations

from proxmox_mcp.http_client.client import HttpClient
from proxmox_mcp.http_client.paths import Repeat, encode, path_of

__all__ = ["HttpClient", "Repeat", "encode", "path_of"]
