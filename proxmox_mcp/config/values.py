"""From text to a checked value: hosts, fingerprints, ranges, flags. Parsers raise ValueError with the mending step, never the value."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable

from proxmox_mcp.config.settings import Member

_TRUE = frozenset({"true", "1", "yes", "on", "y", "t"})
_FALSE = frozenset({"false", "0", "no", "off", "n", "f"})
_QUOTES = (('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’"))
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NODE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_TOKEN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]+")
LAST_VMID = 999_999_999


def bare(value: str) -> str:
    """Without blanks, a byte order mark and one pair of quotes around it."""
    value = value.strip().strip("\ufeff\u200b").strip()
    for left, right in _QUOTES:
        if len(value) >= 2 and value.startswith(left) and value.endswith(right):
            return value[1:-1].strip()
    return value


def items(value: str) -> list[str]:
    """The parts of a list separated by commas, semicolons or blanks."""
    return [part for part in (bare(p) for p in re.split(r"[,;\s]+", value)) if part]


def flag(value: str) -> bool:
    low = value.lower()
    if low in _TRUE:
        return True
    if low in _FALSE:
        return False
    raise ValueError("write true or false")


def whole(low: int, high: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        if re.fullmatch(r"[0-9]{1,9}", value) and low <= int(value) <= high:
            return int(value)
        raise ValueError(f"write a whole number from {low} to {high}")

    return parse


def seconds(low: float, high: float) -> Callable[[str], float]:
    def parse(value: str) -> float:
        try:
            number = float(re.sub(r"(?i)\s*(?:s|sec|seconds)$", "", value)) if value.isascii() else math.nan
        except ValueError:
            number = math.nan
        if low <= number <= high:
            return number
        raise ValueError(f"write seconds, a number from {low:g} to {high:g}")

    return parse


def choice(*allowed: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        low = value.lower().replace("-", "_")
        if low in allowed:
            return low
        raise ValueError(f"write one of: {', '.join(allowed)}")

    return parse


def names(value: str) -> tuple[str, ...]:
    """Tool and toolset names; whether they exist is for the registry to say, which stops the start where one does not."""
    return tuple(dict.fromkeys(item.lower() for item in items(value)))


def nodes(value: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(items(value)))
    if not found or not all(_NODE.fullmatch(name) for name in found):
        raise ValueError("write node names as Proxmox spells them, separated by commas")
    return found


def vmids(value: str) -> tuple[tuple[int, int], ...]:
    """100-199,205 -> ((100, 199), (205, 205))."""
    ranges = []
    for item in re.split(r"[,;\s]+", re.sub(r"\s*(?:-|–|\.\.)\s*", "-", value)):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", item)
        if not match:
            if item:
                raise ValueError("write guest ids and ranges separated by commas, such as 100-199,205")
            continue
        first, last = int(match[1]), int(match[2] or match[1])
        if not 100 <= first <= last:
            raise ValueError("guest ids begin at 100, and a range goes from the lower to the higher one, such as 100-199")
        ranges.append((first, last))
    if not ranges:
        raise ValueError("write guest ids and ranges separated by commas, such as 100-199,205")
    return tuple(ranges)


def fingerprints(value: str) -> str:
    """One or several SHA-256 fingerprints in any usual spelling, as upper-case hex pairs with colons, separated by commas."""
    found = []
    for part in re.split(r"[,;]\s*", value):
        digits = re.sub(r"(?i)^\s*sha-?256(?:\s+fingerprint)?\s*[=:]", "", part.strip())
        digits = re.sub(r"[:\s-]", "", digits).upper()
        if not digits:
            continue
        if re.fullmatch(r"[0-9A-F]{40}", digits):
            raise ValueError("that is a SHA-1 fingerprint; `openssl x509 -noout -fingerprint -sha256` prints the one that is needed")
        if not re.fullmatch(r"[0-9A-F]{64}", digits):
            raise ValueError("write the SHA-256 fingerprint, 32 hex pairs; `pve-mcp doctor` prints it")
        found.append(":".join(digits[i : i + 2] for i in range(0, 64, 2)))
    if not found:
        raise ValueError("write the SHA-256 fingerprint, 32 hex pairs; `pve-mcp doctor` prints it")
    return ",".join(dict.fromkeys(found))


def proxy(value: str) -> str:
    match = re.fullmatch(r"(?i)(https?|socks5h?)://(?:[^\s/@]+@)?(\[[0-9a-f:.]+\]|[^\s/:@\[\]]+)(?::([0-9]{1,5}))?/?", value)
    if match and (not match[3] or 0 < int(match[3]) < 65536):
        return value.rstrip("/")
    raise ValueError("write http://host:port, with user:password@ before the host where the proxy wants it")


def remote_dirs(value: str) -> tuple[str, ...]:
    """Absolute directories on a node, without their trailing slash."""
    found = tuple(dict.fromkeys(part.strip().rstrip("/") for part in re.split(r"[,;\n]", value) if part.strip()))
    for directory in found:
        if not directory.startswith("/") or not directory.isprintable() or any(p in ("", ".", "..") for p in directory[1:].split("/")):
            raise ValueError("write absolute directories below / separated by commas, without '..'")
    return found


def member(value: str, default_port: int) -> tuple[Member, bool]:
    """One address as people paste it (scheme, port, path, brackets, trailing dot), and whether it named a port."""
    rest = value
    scheme, separator, after = rest.partition("://")
    if separator:
        if scheme.lower() == "http":
            raise ValueError("Proxmox speaks TLS only: write https:// or the bare host name")
        if scheme.lower() != "https":
            raise ValueError("write a host name or address, with https:// at most")
        rest = after
    rest = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    if "@" in rest:
        raise ValueError("write the host without a user; the user belongs into PROXMOX_USER (or PROXMOX_SSH_USER)")
    bracketed = re.fullmatch(r"\[([^\[\]]*)\](?::([0-9]*))?", rest)
    if bracketed:
        host, port_text = bracketed[1], bracketed[2] or ""
    elif rest.count(":") > 1:
        host, port_text = rest, ""
    else:
        host, _, port_text = rest.partition(":")
    host = _host(host)
    if not port_text:
        return Member(host, default_port), False
    if not re.fullmatch(r"[0-9]{1,5}", port_text) or not 0 < int(port_text) < 65536:
        raise ValueError("the port after the host is a number from 1 to 65535")
    return Member(host, int(port_text)), True


def _host(host: str) -> str:
    host = host.strip().rstrip(".")
    if not host:
        raise ValueError("the host name is missing")
    if ":" in host:
        try:
            return str(ipaddress.IPv6Address(host.replace("%25", "%")))
        except ValueError:
            raise ValueError("that is no IPv6 address; write [fe80::1]:8006 or a host name") from None
    if re.fullmatch(r"[0-9.]+", host):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise ValueError("that is no IPv4 address (four numbers up to 255)") from None
    if not host.isascii():
        raise ValueError("write the name in its ASCII form (xn--...)")
    if len(host) > 253 or not _HOST_NAME.fullmatch(host):
        raise ValueError("a host name has letters, digits, dashes and dots")
    return host


def user(value: str) -> str:
    """user@realm; the name may be nearly anything, the realm is what follows the last @."""
    name, at, realm = value.rpartition("@")
    if not at or not name:
        raise ValueError("the realm is missing: write it as root@pam (or ops@pve)")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]+", realm):
        raise ValueError("after the last @ stands the realm, such as pam or pve")
    if re.search(r"[\s:/!]", name) or not name.isprintable() or len(value) > 64:
        raise ValueError("a user name has no blanks, ':', '/' or '!'; write it as root@pam")
    return value


def token_name(value: str) -> str:
    if not _TOKEN_NAME.fullmatch(value):
        raise ValueError("a token name begins with a letter and has letters, digits, '.', '-' and '_'")
    return value


def token_value(value: str) -> str:
    if not value.isascii() or not value.isprintable() or re.search(r"[\s;,\"'=!]", value):
        raise ValueError("the secret has characters that no token secret has; copy the UUID again")
    if re.fullmatch(r"(?i)[x*-]+|x{4,}.*|(?:your|put)[-_ ].*|change-?me", value):
        raise ValueError("it still holds the example; put the secret there that Proxmox showed when the token was made")
    return value


def ssh_nodes(value: str) -> str:
    """pve2=10.0.0.2,pve3=pve3.lan:2222; kept as text."""
    for item in re.split(r"[,;\s]+", value):
        name, equals, address = item.partition("=")
        if item and (not equals or not _NODE.fullmatch(name)):
            raise ValueError("write node=host or node=host:port, separated by commas")
        if item:
            member(address, 22)
    return value


def jump(value: str) -> str:
    """[user@]host[:port]; kept as text. "host" alone names PROXMOX_SSH_HOST nowhere: it is a name like any other."""
    name, at, address = value.rpartition("@")
    if at and (not name or not re.fullmatch(r"[A-Za-z0-9._@+-]+", name) or name.startswith("-")):
        raise ValueError("write [user@]host[:port]")
    member(address, 22)
    return value


def ssh_user(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._][A-Za-z0-9._@\\+-]*", value):
        raise ValueError("write the login name alone")
    return value
