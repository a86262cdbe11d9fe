"""Every variable: its name, what it does in one sentence, its default. README's table and .env.example are held against this."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """`default` is what happens without it, in words or as the value; `example` is what .env.example shows."""

    name: str
    what: str
    default: str = ""
    secret: bool = False
    group: str = ""
    example: str = ""


def _group(group: str, *rows: tuple[str, str, str, str]) -> tuple[Variable, ...]:
    return tuple(Variable(f"PROXMOX_{name}", what, default, name in _SECRET, group, example) for name, what, default, example in rows)


_SECRET = frozenset({"TOKEN_VALUE", "PROXY", "SSH_PASSWORD", "SSH_KEY_PASSPHRASE", "AUDIT_HMAC_KEY"})

VARIABLES: tuple[Variable, ...] = (
    *_group(
        "Connection",
        ("HOST", "Address of a node, or several members of one cluster (the next is tried when one fails).", "required", "pve.lan"),
        ("PORT", "Port of the API.", "8006", ""),
        ("USER", "User the token belongs to, with realm.", "required", "mcp@pve"),
        ("TOKEN_NAME", "Name of the API token.", "required", "mcp"),
        ("TOKEN_VALUE", "Secret of the API token, a UUID that Proxmox shows once.", "required", "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"),
        ("TOKEN_FILE", "File that holds the secret, instead of PROXMOX_TOKEN_VALUE.", "none", ""),
        ("VERIFY_SSL", "Whether the server's certificate is verified; a path means that CA file.", "true", ""),
        ("CA_FILE", "Certificate authority to trust, such as a node's /etc/pve/pve-root-ca.pem.", "the system's", ""),
        ("TLS_FINGERPRINT", "SHA-256 fingerprint of the only certificate to accept; several (one a member) with commas.", "none", ""),
        ("TIMEOUT", "Seconds for one request.", "30", ""),
        ("MAX_CONCURRENCY", "Requests under way at the same time.", "8", ""),
        ("PROXY", "Proxy for the API, http://[user:password@]host:port; proxies of the environment are not used.", "none", ""),
        ("ENV_FILE", "The .env file to read instead of the ones looked for; only the environment can say this.", "searched", ""),
    ),
    *_group(
        "Safety",
        ("READ_ONLY", "Offer only what reads.", "false", ""),
        ("APPROVAL", "When a person is asked, where the client can ask: off, data_loss or all.", "data_loss", ""),
        ("APPROVAL_FALLBACK", "What happens where the client cannot ask: allow (the flags decide) or deny.", "allow", ""),
        ("ALLOW_VMIDS", "Guests that may be changed, as ids and ranges: 100-199,205.", "all", ""),
        ("ALLOW_NODES", "Nodes that may be changed, separated by commas.", "all", ""),
        ("LIMIT_READS", "Whether reads, too, show only those guests and nodes.", "false", ""),
        ("ALLOW_SECRET_READS", "Whether files that usually hold secrets may be read in guests.", "false", ""),
        ("MAX_WAIT", "Most seconds that one call waits for a task.", "50", ""),
    ),
    *_group(
        "Choice of tools",
        ("TOOLSETS", "Groups of tools to offer, separated by commas.", "all", ""),
        ("TOOLS", "Single tools to offer, separated by commas.", "all", ""),
        ("EXCLUDE_TOOLS", "Tools not to offer, separated by commas.", "none", ""),
    ),
    *_group(
        "Audit",
        ("AUDIT_DIR", "Directory of the audit logs.", "the user's state directory", ""),
        ("AUDIT_HMAC_KEY", "Key that makes the audit logs tamper-evident.", "none", ""),
        ("AUDIT_HMAC_KEY_FILE", "File with that key; further lines are earlier keys, for verifying.", "none", ""),
    ),
    *_group(
        "SSH to nodes",
        ("SSH_HOST", "Node that SSH commands run on when none is named.", "the first host of PROXMOX_HOST", ""),
        ("SSH_PORT", "SSH port of the nodes.", "22", ""),
        ("SSH_USER", "SSH user on the nodes.", "root", ""),
        ("SSH_KEY_PATH", "Private key; without it the SSH agent and the user's own keys are tried.", "none", ""),
        ("SSH_KEY_PASSPHRASE", "Passphrase of that key.", "none", ""),
        ("SSH_PASSWORD", "Password, where no key is used.", "none", ""),
        ("SSH_KNOWN_HOSTS", "File of known host keys; ignore switches the check off.", "the user's ~/.ssh/known_hosts", ""),
        ("SSH_NODES", "SSH address of each node: pve2=10.0.0.2,pve3=pve3.lan:2222.", "none", ""),
        ("SSH_JUMP", "Host to go through, [user@]host[:port].", "none", ""),
        ("SSH_SUDO", "Run commands on nodes through sudo -n.", "false", ""),
        ("SSH_TIMEOUT", "Seconds for an SSH connection.", "30", ""),
        ("SSH_CONFIG", "OpenSSH configuration file to use; true means ~/.ssh/config.", "none", ""),
        ("VM_SSH_HOSTS", "Where vm_ssh_hosts.json is, the register of guests with SSH.", "searched", ""),
        ("ZFS_SEND_DIRS", "Directories on nodes that zfs send may write to, separated by commas.", "none", ""),
    ),
)  # fmt: skip
