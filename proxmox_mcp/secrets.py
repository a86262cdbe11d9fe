"""What must never be shown: masks for tokens, passwords and keys in requests, answers, command lines, logs and errors.

Two nets: names and shapes (`password=...`, a private key block) and the secrets this process itself was given (`register`), which are
replaced wherever they appear. Invisible characters can split a word: clean first (`text.clean`), then mask.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import quote, quote_plus

from proxmox_mcp import text

MARK = "***"

# Parameter names of the API (and of nearby tools), compared without case and with "_" as "-".
_SECRET_WORDS = frozenset(
    {"password", "passwd", "passphrase", "cipassword", "secret", "token", "apitoken", "apikey", "ticket", "vncticket"}
    | {"csrfpreventiontoken", "keyring", "keys", "otp", "credential", "credentials", "tfa-challenge"}
)
_HARMLESS_LAST = frozenset({"id", "name", "file", "path", "dir", "url", "type", "expire", "length", "policy"})
_PUBLIC_KEYS = frozenset({"pubkey", "master-pubkey", "public-key", "ssh-public-key", "host-key"})
_LONG_PUBLIC = frozenset({"sshkeys", "ssh-public-keys", "ssh-keys"})
_PUBLIC_CHARS = 40


def is_secret_name(name: str) -> bool:
    """Whether a parameter of this name carries a secret: password, cipassword, token, secret, encryption-key ... (`tokenid` does not)."""
    plain = name.lower().replace("_", "-")
    if plain in _PUBLIC_KEYS or plain in _LONG_PUBLIC:
        return False
    words = plain.split("-")
    if words[-1] in _HARMLESS_LAST:
        return False
    return plain in _SECRET_WORDS or not _SECRET_WORDS.isdisjoint(words) or plain.endswith(("key", "password", "secret", "token"))


def _mask_value(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if is_secret_name(name):
        return MARK
    if isinstance(value, str):
        return text.clean(value, _PUBLIC_CHARS) if name.lower().replace("_", "-") in _LONG_PUBLIC else mask_text(value)
    if isinstance(value, Mapping):
        return mask_params(value)
    if isinstance(value, (list, tuple)):
        return [_mask_value("", item) for item in value]
    return value


def mask_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that may be shown: secret values as MARK, public SSH keys shortened, other texts through `mask_text`."""
    return {name: _mask_value(name, value) for name, value in params.items()}


class Known:
    """Secrets by value, replaced wherever they appear; what could be a piece of other words only where it stands alone: one below 6
    characters, and one of up to 12 letters ("proxmox" in `proxmox_list_vms`). Those below 4 characters never: replacing "a" or "42" would
    garble every text and tell the reader what the secret is."""

    def __init__(self) -> None:
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, secret: str) -> None:
        """Remember a secret in the spellings it takes on its way: as it is, percent- and form-encoded, in JSON, in a shell line."""
        for plain in {secret, secret.strip()}:
            if len(plain) < 4:
                continue
            self._forms |= {
                plain,
                quote(plain, safe="", errors="replace"),
                quote_plus(plain, errors="replace"),
                json.dumps(plain)[1:-1],
                json.dumps(plain, ensure_ascii=False)[1:-1],
                shlex.quote(plain).strip("'") or plain,
            }
        self._pattern = None

    def mask(self, s: str) -> str:
        """`s` with every known secret replaced by MARK."""
        if not self._forms:
            return s
        if self._pattern is None:
            longest_first = sorted(self._forms, key=lambda form: (-len(form), form))
            self._pattern = re.compile("|".join(map(_alone, longest_first)))
        return self._pattern.sub(MARK, s)


def _alone(form: str) -> str:
    """The pattern of one form of a secret: with its borders, if it could be a piece of something else."""
    word = form.isalpha() and len(form) <= 12
    if len(form) >= 6 and not word:
        return re.escape(form)
    beside = "[A-Za-z0-9_]" if word else "[A-Za-z0-9]"
    # what looks like a letter before it may be the end of an escape: a line break in JSON, a colon in a URL
    return rf"(?:(?<!{beside})|(?<=\\[bfnrt])|(?<=%[0-9A-Fa-f]{{2}})){re.escape(form)}(?!{beside})"


_known = Known()


def register(secret: str) -> None:
    """Tell this process one of its own secrets (token value, SSH password, passphrase, HMAC key): no text shows it from now on."""
    _known.add(secret)


# What a caller passed as a secret (a new container's password): masked in this call alone. Registered for good, a "password" of
# "running" would blank out that word in every later answer.
_passed: ContextVar[Known | None] = ContextVar("passed", default=None)


@contextmanager
def passed(values: Iterable[str]) -> Iterator[None]:
    """While this lasts, and for whatever runs on behalf of this call, `mask_text` replaces these values too."""
    known = Known()
    for value in values:
        known.add(value)
    token = _passed.set(known)
    try:
        yield
    finally:
        _passed.reset(token)


@contextmanager
def none_passed() -> Iterator[None]:
    """For what a plan itself says: it hides its secrets by name, and a "password" that reads like a node must not blank that node out."""
    with passed(()):
        yield


OPTION_NAME = r"--?(?:[a-z]+-)*(?:password|passwd|passphrase|cipassword|secret|token|api-?key|secret-?key|keyring|user-pass)"
_NAME = (
    r"(?:password|passwd|passphrase|secret|(?<!pveapi)token(?:[_-](?:value|secret))?|(?:[_-]|mysql_|auth)pwd|_pass|keyring|ticket"
    r"|(?:api|access|secret|private|encryption|hmac|auth|client|shared|pre-?shared|signing|fastopen)[_-]?key)"
)
_QUOTED = r"""(?:(")(?:[^"\\\n]|\\.)*|(')[^'\n]*|(\\")(?:[^"\\\n]|\\(?!"))*"""
_BARE = r"""|(?:[^\s\\,;&"'{}\[\]<>]|\\(?!n))+)"""


def _keep_name_and_quote(match: re.Match[str]) -> str:
    return match[1] + next(filter(None, match.groups()[1:]), "") + MARK


def _mark_rest(match: re.Match[str]) -> str:
    return match[1] + MARK


def _mark(match: re.Match[str]) -> str:
    return MARK


_NEXT_LINE = r"[ \t]*(?:\r?\n|\\[nr])+[ \t]*"
SHAPES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (
        # lines of key material (a log may put something before each), known headers and the end: what follows a key that was cut off, or
        # a mere beginning, must not vanish with it
        re.compile(
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----"
            r"(?:(?:[\s\\]*|[ \t]*(?:\n|\\n)[^\n\\]{0,80}?[ \t])[A-Za-z0-9+/=]{20,}"
            r"|[\s\\]*(?:Proc-Type|DEK-Info|Comment|Version): [^\n\\\"]{0,120})*+"
            rf"(?:(?:{_NEXT_LINE}[A-Za-z0-9+/=]*)*"
            rf"(?:(?:{_NEXT_LINE}[^\n\\]{{0,100}})?(?:{_NEXT_LINE}[^\n\\]{{0,80}}?)?-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z))?"
        ),
        _mark,
    ),
    (re.compile(r"(PVEAPIToken(?:=|%3D|\s+)[^\s=%,;]+(?:%(?!3D)[0-9A-F]{2}[^\s=%,;]*)*(?:=|%3D))[^\s,;&\"'<>]+", re.I), _mark_rest),
    (re.compile(r"\b((?:proxy-)?authorization\b\W{1,4}(?:bearer|basic|digest)\s+)[^\s,;\"'<>]+", re.I), _mark_rest),
    (re.compile(r"\b([Bb]earer\s+)[A-Za-z0-9._~+/=-]{8,}"), _mark_rest),
    (re.compile(r"\b((?:PVE|PVEVNC|PMG|PBS):[^\s:@]+(?:@[^\s:]+)?:[0-9A-F]{8}:)[^\s,;&\"'<>]+"), _mark_rest),
    (re.compile(r"(://[^\s/@:\"'<>]*:)[^\s/@\"'<>]+(?=@)"), _mark_rest),
    # the environment of a process that dumped core, in the journal's JSON
    (re.compile(r'("COREDUMP_ENVIRON"\s*:\s*)(?:"(?:[^"\\\n]|\\.)*"?|\[[^\]]*\]?)'), _mark_rest),
    (re.compile(r"\$(?:1|2[abxy]?|5|6|7|y|gy|argon2id?|pbkdf2[\w-]*|scrypt)\$[./A-Za-z0-9$=,+-]{8,}"), _mark),
    # name=value anywhere; "name": "value"; name: value only at the start of a line or string, for prose says "set user password: failed"
    (re.compile(rf"({_NAME}[ \t]*(?:=|%3D)[ \t]*)(?!\*\*\*|PVEAPIToken\S+(?:=|%3D)\*\*\*)" + _QUOTED + _BARE, re.I), _keep_name_and_quote),
    (re.compile(rf"({_NAME}\\?[\"'][ \t]*(?::|=>)[ \t]*)(?!.?\*\*\*)" + _QUOTED + ")", re.I), _keep_name_and_quote),
    # PHP's constants; elements of XML
    (re.compile(rf"(\bdefine\([ \t]*[\"']\w{{0,40}}?{_NAME}[\"'][ \t]*,[ \t]*)(?!.?\*\*\*)" + _QUOTED + ")", re.I), _keep_name_and_quote),
    (re.compile(rf"(<[\w:.-]{{0,40}}?{_NAME}(?:[ \t][^<>\n]{{0,200}})?>)(?!\*\*\*)[^<>\n]+(?=</)", re.I), _mark_rest),
    (
        re.compile(rf"((?:^|[\"'{{]|\\n)[ \t-]{{0,40}}[\w.-]{{0,40}}?{_NAME}[ \t]*:[ \t]+)(?!\*\*\*)" + _QUOTED + _BARE, re.I | re.M),
        _keep_name_and_quote,
    ),
    # name value, alone on its line as in storage.cfg, domains.cfg, frr.conf
    (
        re.compile(
            r"(^[ \t]*(?:neighbor[ \t]+\S+[ \t]+|enable[ \t]+)?[\w.-]{0,40}?"
            r"(?:password|passphrase|secret|psk|token|api_?key|client[_-]key|bindpw|rootpw|requirepass|masterauth)[ \t]+(?:\d[ \t]+)?)"
            r"(?!\*\*\*)([\"']?)[^\s\"']+(?=[\"']?;?[ \t]*$)",
            re.I | re.M,
        ),
        _keep_name_and_quote,
    ),
    (re.compile(r"((?<![\w-])" + OPTION_NAME + r"[ \t]+)(?!-|\*\*\*)" + _QUOTED + _BARE, re.I), _keep_name_and_quote),
)
# One cheap look decides whether a text needs the searches at all.
_SUSPECT = re.compile(
    r"(?i)pass|secret|psk|bindpw|rootpw|masterauth|coredump_e|token|ticket|key|bearer|authorization|pwd|-----begin|://|\$(?:[1-7yg]|2[abxy]|arg|pbk|scr)|(?:PVE|PMG|PBS|PVEVNC):"
)


class Masked(str):
    """Text whose secrets are hidden already, by rules that know better what it is."""

    __slots__ = ()


def mask_known(s: str) -> str:
    """`s` without this process's own secrets and those of this call; what merely looks like a secret stays."""
    s = _known.mask(s)
    passed_here = _passed.get()
    return s if passed_here is None else passed_here.mask(s)


def mask_text(s: str) -> str:
    """`s` without known secrets and without what looks like one: API tokens, `password=...`, bearer tokens, tickets, private key
    blocks, password hashes, user info in URLs."""
    if isinstance(s, Masked):
        return s
    s = mask_known(s)
    if _SUSPECT.search(s):
        for pattern, replacement in SHAPES:
            s = pattern.sub(replacement, s)
    return s
