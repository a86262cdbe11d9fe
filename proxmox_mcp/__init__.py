"""proxmox_mcp: an MCP server that runs a Proxmox VE cluster, carefully."""

__version__ = "2.0.0"
