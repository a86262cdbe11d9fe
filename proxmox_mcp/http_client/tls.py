"""Whom we talk to: certificate verification, pinned fingerprints, and what to do about a certificate that is not trusted.

A pin (PROXMOX_TLS_FINGERPRINT) replaces verification by authority, name and date with something narrower: the very certificate. It is
compared in the TLS handshake itself, so a connection to anything else fails before a byte of the request, and so of the token, is sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import ssl
import sys

from proxmox_mcp.config import Member, Settings
from proxmox_mcp.errors import ConfigError, TlsError

_EXPIRED, _NOT_YET_VALID = 10, 9  # X509_V_ERR_* of OpenSSL
_WRONG_NAME = (62, 63, 64)
_NOT_TRUSTED = (18, 19, 20, 21)


class PinMismatch(ssl.SSLCertVerificationError):
    """The handshake was ended because the certificate is not a pinned one; `presented` is its fingerprint."""

    def __init__(self, presented: str) -> None:
        super().__init__(1, "the certificate is not the pinned one")
        self.presented = presented


def fingerprint_of(certificate: bytes) -> str:
    """SHA-256 of a DER certificate as upper-case hex pairs with colons, as `openssl x509 -fingerprint -sha256` prints it."""
    return hashlib.sha256(certificate).digest().hex(":").upper()


def pins(settings: Settings) -> frozenset[str]:
    """The pinned fingerprints: one, or one for each member, separated by commas."""
    return frozenset(pin for pin in settings.tls_fingerprint.replace(" ", "").split(",") if pin)


def client_context(settings: Settings) -> ssl.SSLContext:
    """The context for all connections to the members. Raises ConfigError for an unusable CA file."""
    pinned = pins(settings)
    if pinned or not settings.verify_tls:
        context = _unverified_context()
        if pinned:
            context.sslobject_class = _checking(pinned)  # used by wrap_bio, which is how asyncio streams do TLS
        return context
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as e:
        reason = e.strerror or type(e).__name__
        raise ConfigError(
            f"PROXMOX_CA_FILE {settings.ca_file} cannot be used: {reason}",
            hint="copy /etc/pve/pve-root-ca.pem from a node and name that file",
        ) from None
    if settings.ca_file is None and not _has_system_authorities():
        import certifi

        context.load_verify_locations(certifi.where())
    # Python 3.13 demands extensions that the authority of a Proxmox cluster does not put into its certificates
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _unverified_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _has_system_authorities() -> bool:
    if sys.platform == "win32":
        return True
    paths = ssl.get_default_verify_paths()
    return any(path and os.path.exists(path) for path in (paths.cafile, paths.capath))


def _checking(pinned: frozenset[str]) -> type[ssl.SSLObject]:
    class CheckedObject(ssl.SSLObject):
        """Ends the handshake when the peer's certificate is not a pinned one."""

        def do_handshake(self) -> None:
            super().do_handshake()
            presented = fingerprint_of(self.getpeercert(binary_form=True) or b"")
            if presented not in pinned:
                raise PinMismatch(presented)

    return CheckedObject


async def fetch_fingerprint(member: Member, timeout: float = 5.0) -> str:
    """The fingerprint of the certificate that a member presents; "" when there is none to be had. Nothing but the handshake is sent."""
    try:
        async with asyncio.timeout(timeout):
            _, writer = await asyncio.open_connection(member.host, member.port, ssl=_unverified_context(), server_hostname="")
    except (OSError, ValueError):
        return ""
    try:
        return fingerprint_of(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
    finally:
        writer.transport.abort()


_ON_THE_NODE = "openssl x509 -noout -fingerprint -sha256 -in /etc/pve/local/pve-ssl.pem"
_COMPARE = f"compare it with what `{_ON_THE_NODE}` prints on the node (pveproxy-ssl.pem, where that exists beside it)"


def certificate_error(refused: ssl.SSLCertVerificationError, member: Member, fingerprint: str, tried: str) -> TlsError:
    """The TlsError for a refused certificate, which says how to trust it when it is the right one."""
    pin = f"PROXMOX_TLS_FINGERPRINT={fingerprint}" if fingerprint else "PROXMOX_TLS_FINGERPRINT to its SHA-256 fingerprint"
    trust = f"copy /etc/pve/pve-root-ca.pem from a node and set PROXMOX_CA_FILE to it; or set {pin}, but first {_COMPARE}"
    pinned = isinstance(refused, PinMismatch)
    code, said = (0, "") if pinned else (refused.verify_code, refused.verify_message)
    if pinned:
        what = f"its certificate is not the pinned one; it has the fingerprint {fingerprint}"
        hint = f"if it was renewed on purpose, {_COMPARE} and set PROXMOX_TLS_FINGERPRINT to it; otherwise something else answers there"
    elif code == _EXPIRED:
        what, hint = "its certificate has expired", "renew it on the node (`pvecm updatecerts --force`), or correct this machine's clock"
    elif code == _NOT_YET_VALID:
        what, hint = "its certificate is not valid yet", "compare the clocks of this machine and of the node"
    elif code in _WRONG_NAME:
        what = f"its certificate is for other names than {member.host}"
        hint = f"put a name that the certificate has into PROXMOX_HOST; or set {pin}, but first {_COMPARE}"
    elif code in _NOT_TRUSTED:
        what, hint = "its certificate is not signed by an authority this machine trusts (Proxmox signs its own)", trust
    else:
        what, hint = "its certificate cannot be verified", trust
    return TlsError(f"Cannot connect to {member}: {what}. Nothing was sent", fingerprint=fingerprint, tried=tried, said=said, hint=hint)
