"""Judges a line for a real shell (host_exec, vm_exec, lxc_exec): is every command in it a read or a harmless change?

No list of bad words: whatever is not recognised as harmless counts as data loss.
"""

from __future__ import annotations

from proxmox_mcp.errors import InvalidArgument
from proxmox_mcp.read_commands.grammar import Grammar, Row
from proxmox_mcp.read_commands.tables import GRAMMAR
from proxmox_mcp.read_commands.types import Limits
from proxmox_mcp.read_commands.words import Operator, Token, Unreadable, Word, split

_SERVICE_WHY = "RESTARTABLE are services known to bear it; any other unit could do anything"
CHANGES = Grammar(
    (
        Row(
            "/usr/bin/systemctl",
            "start|restart|try-restart|reload|reload-or-restart|try-reload-or-restart RESTARTABLE+",
            "--no-pager -q,--quiet --no-block",
            why=_SERVICE_WHY,
        ),
        Row("/usr/bin/systemctl", "daemon-reload|reset-failed", "--no-pager -q,--quiet"),
        Row("/usr/sbin/service", "RESTARTABLE start|restart|try-restart|reload|force-reload|status", style="words", why=_SERVICE_WHY),
        Row("/sbin/rc-service", "RESTARTABLE start|restart|reload|status", style="words", why=_SERVICE_WHY),
        Row("/usr/bin/apt", "update", "-q,--quiet -y,--yes,--assume-yes", why="package lists only"),
        Row("/usr/bin/apt-get", "update", "-q,--quiet -y,--yes,--assume-yes", why="package lists only"),
        Row("/sbin/apk", "update", style="words", why="package lists only"),
        Row("/usr/bin/sleep", "SMALL", style="words"),
        Row("/usr/bin/echo", "TEXT*", style="words"),
        Row("/usr/bin/true"),
    )
)
# After a pipe: they read what the command before them says, and nothing else.
FILTERS = Grammar(
    (
        Row(
            "/usr/bin/grep",
            "PATTERN",
            "-i -v -w -x -c -n -o -q -E -F -P -a -h -A=SMALL -B=SMALL -C=SMALL -m=SMALL --color[=auto|always|never]",
        ),
        Row("/usr/bin/head", "", "-n,--lines=AMOUNT -c,--bytes=AMOUNT -#=AMOUNT"),
        Row("/usr/bin/tail", "", "-n,--lines=AMOUNT -c,--bytes=AMOUNT -#=AMOUNT"),
        Row("/usr/bin/wc", "", "-l -w -c -m -L"),
        Row("/usr/bin/sort", "", "-r -n -h -u -f -b -V -M -k=FIELDS -t=CHAR", why="no -o, -T, --compress-program"),
        Row("/usr/bin/uniq", "", "-c -d -u -i"),
        Row("/usr/bin/cut", "", "-d=CHAR -f=FIELDS -c=FIELDS -b=FIELDS -s"),
        Row("/usr/bin/tac"),
        Row("/usr/bin/cat"),
        Row("/usr/bin/column", "", "-t -s=CHAR"),
    )
)
LISTS = (CHANGES, FILTERS)
_LIMITS = Limits(timeout=900.0, max_bytes=10_000_000)


def harmless(line: str) -> bool:
    """Whether every command of a shell line is one the read grammar accepts or a harmless change (a service restarted, `apt update`).

    Commands may be joined by `;`, `&&`, `||`, `|` and newlines. False for everything a shell would expand, redirect, group or put into
    the background, for assignments, and for whatever cannot be read.
    """
    try:
        return all(_line(split(part, shell=True)) for part in line.split("\n") if part.strip()) and bool(line.strip())
    except Unreadable:
        return False


def _line(tokens: tuple[Token, ...]) -> bool:
    if tokens[-1] == Operator(";"):
        tokens = tokens[:-1]
    before, words = "", list[Word]()
    for token in (*tokens, Operator("")):
        if isinstance(token, Word):
            words.append(token)
        elif not _command(tuple(words), filters=before == "|"):
            return False
        else:
            before, words = token.text, []
    return True


def _command(words: tuple[Word, ...], *, filters: bool) -> bool:
    if any(word.glob for word in words):
        return False
    return any(_accepts(grammar, words) for grammar in (GRAMMAR, CHANGES, *([FILTERS] if filters else [])))


def _accepts(grammar: Grammar, words: tuple[Word, ...]) -> bool:
    try:
        grammar.match_words(words, _LIMITS)
    except InvalidArgument:
        return False
    return True
