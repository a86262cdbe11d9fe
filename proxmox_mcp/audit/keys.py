"""The HMAC keys of the audit log: the current one, and older ones that old segments still need."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from pathlib import Path

from proxmox_mcp.errors import ConfigError

Digest = Callable[[bytes], str]  # bytes -> 64 hexadecimal digits


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _hmac_sha256(secret: bytes) -> Digest:
    """HMAC as RFC 2104 has it, from two hash states that hold the key already: half the time of `hmac`, which begins anew each time."""
    block = (secret if len(secret) <= 64 else hashlib.sha256(secret).digest()).ljust(64, b"\0")
    inner, outer = (hashlib.sha256(bytes(byte ^ pad for byte in block)) for pad in (0x36, 0x5C))

    def digest(data: bytes) -> str:
        inside, outside = inner.copy(), outer.copy()
        inside.update(data)
        outside.update(inside.digest())
        return outside.hexdigest()

    return digest


class Keys:
    """The known keys by their ids; `current` is the id that new segments are written with, None without a key.

    An id is 16 hexadecimal digits made from the key; it leads back to the key only by guessing the key itself.
    """

    __slots__ = ("_secrets", "current")

    def __init__(self, secrets: tuple[bytes, ...] = ()) -> None:
        self._secrets = {hmac.digest(secret, b"pve-mcp audit key id", "sha256").hex()[:16]: secret for secret in secrets}
        self.current: str | None = next(iter(self._secrets), None)

    @classmethod
    def none(cls) -> Keys:
        """No key: records are chained with plain SHA-256."""
        return cls()

    @classmethod
    def load(cls, key: str | None, key_file: Path | None) -> Keys:
        """The keys of the settings: `key` first, then the lines of `key_file`, the first of all being the current one.

        Blank lines do not count and space around a key is no part of it. Raises ConfigError when the file cannot be read or holds no key.
        """
        found = [key.strip()] if key and key.strip() else []
        if key_file is not None:
            try:
                lines = key_file.read_text("utf-8-sig").splitlines()
            except OSError as exc:
                raise ConfigError(
                    f"The audit key file {key_file} cannot be read.", said=str(exc.strerror), hint="mend PROXMOX_AUDIT_HMAC_KEY_FILE"
                ) from None
            except ValueError:
                raise ConfigError(f"The audit key file {key_file} is not UTF-8 text.", hint="write one key a line, as text") from None
            from_file = [line.strip() for line in lines if line.strip()]
            if not from_file:
                raise ConfigError(f"The audit key file {key_file} holds no key.", hint="write one key a line, the current one first")
            found += from_file
        return cls(tuple(text.encode("utf-8", "surrogateescape") for text in found))

    def digest(self, key_id: str | None) -> Digest | None:
        """What hashes the records of a segment: HMAC-SHA256, or SHA-256 when it has no key; None when its key is not known here."""
        if key_id is None:
            return _sha256
        secret = self._secrets.get(key_id)
        if secret is None:
            return None
        return _hmac_sha256(secret)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all known keys, the current one first."""
        return tuple(self._secrets)

    @property
    def sealing(self) -> Digest:
        """What hashes the records of new segments."""
        digest = self.digest(self.current)
        assert digest is not None
        return digest

    def __len__(self) -> int:
        return len(self._secrets)

    def __repr__(self) -> str:
        return f"Keys({len(self._secrets)} known, current {self.current})"
