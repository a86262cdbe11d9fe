"""The one table of secret paths: what it says, and that the shell of the far side says the same."""

from __future__ import annotations

import shutil
import subprocess
from random import Random

import pytest

from proxmox_mcp.read_commands import far_side, paths
from proxmox_mcp.read_commands.paths import Kind, fault, judge
from tests.read_commands.lists import ACCEPTED, REFUSED

SHELLS = [shell for shell in (("dash",), ("busybox", "sh")) if shutil.which(shell[0])] or [("sh",)]


@pytest.mark.parametrize("path", [path.replace("*", "one") for path in paths._KNOWN])
def test_every_known_place_is_a_secret(path: str) -> None:
    assert judge(path, Kind.META)
    parts = path.split("/")[1:-1]
    for depth in range(len(parts) + 1):
        directory = "/" + "/".join(parts[:depth])
        assert judge(directory, Kind.GREP), directory
        assert judge(directory, Kind.TREE), directory


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize(
    "path",
    [
        "hosts",
        "",
        "/a/../b",
        "/a/./b",
        "//a",
        "/a//b",
        "/a/..",
        "/.",
        "/a*",
        "/a?",
        "/$a",
        "/a\\b",
        "/a`b",
        "/a<b",
        "/a|b",
        "/a\nb",
        "/é",
        "/a\x00",
    ],
)
def test_only_canonical_absolute_paths(kind: Kind, path: str) -> None:
    assert fault(path, kind)


@pytest.mark.parametrize("kind", list(Kind))
def test_a_trailing_slash_is_for_directories(kind: Kind) -> None:
    assert (fault("/var/log/", kind) is None) is (kind in {Kind.META, Kind.TREE, Kind.GREP})
    assert (fault("/", kind) is None) is (kind is Kind.META)
    assert fault("/var/log//", kind)
    assert fault("/root/.ssh/", kind)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/network",
        "/etc/pve/qemu-server",
        "/etc/pve/nodes/pve1/qemu-server",
        "/var/log",
        "/usr/share",
        "/var/lib/vz",
        "/boot",
        "/etc/apt",
    ],
)
def test_directories_that_may_be_searched(path: str) -> None:
    assert judge(path, Kind.GREP) is None
    assert judge(path, Kind.TREE) is None


@pytest.mark.parametrize("path", ["/proc/meminfo", "/proc", "/proc/sys/vm", "/sys", "/sys/class/net", "/dev", "/dev/disk"])
def test_no_search_in_the_kernels_file_systems(path: str) -> None:
    assert judge(path, Kind.GREP)


def test_a_guests_data_may_be_measured_but_not_shown() -> None:
    for path in (
        "/var/lib/vz/images/101/vm-101-disk-0.raw",
        "/mnt/pve/nas/dump/vzdump-lxc-205-x.tar.zst",
        "/var/lib/vz/snippets/user.yaml",
    ):
        assert judge(path, Kind.FILE)
        assert judge(path, Kind.SUM) is None
        assert judge(path, Kind.META) is None
    assert judge("/mnt/pve/nas/dump/vzdump-lxc-205-x.log", Kind.FILE) is None


def test_devices_are_judged_by_the_far_side_and_by_their_names() -> None:
    assert judge("/dev/sda", Kind.DEVICE) is None
    assert judge("/dev/sda", Kind.SUM)
    assert judge("/etc/shadow", Kind.DEVICE)


def test_patterns_are_plain_for_both_readers() -> None:
    for pattern in (*paths.SECRET, *paths.PRIVATE, *paths.PUBLIC, *paths.CONTENT, *paths.LISTED, *paths.UNLISTED):
        assert set(pattern) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/*?[]._-"), pattern


def _paths() -> list[str]:
    """Paths of all kinds: those of the lists, examples of every pattern, and broken ones."""
    rnd = Random(5)
    found = {word.strip("'\"") for line in (*ACCEPTED, *REFUSED) for word in line.split() if word.strip("'\"").startswith("/")}
    for pattern in (*paths.SECRET, *paths.PRIVATE, *paths.PUBLIC, *paths.CONTENT, *paths.LISTED, *paths.UNLISTED):
        plain = pattern.replace("[0-9]", "7").replace("[0-9.]", ".")
        found |= {plain.replace("*", fill) for fill in ("", "x", "a/b", "/srv/x", "1")}
    found |= {path + rnd.choice(["x", "/x", ".bak", "~", ".pub", "/.ssh/x"]) for path in sorted(found) if rnd.random() < 0.5}
    found |= {
        "/a b/etc/shadow",
        "/a'b/.ssh/x",
        '/a"b.key',
        "/$(id).key",
        "/-x",
        "/a;b.pem",
        "/a:/dev/b",
        "/a:/proc/b",
        "/[x].key",
        "/a\\b/id_rsa",
    }
    return sorted(path for path in found if path.startswith("/") and path.isascii() and "\n" not in path)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_the_far_side_judges_as_this_side_does(shell: tuple[str, ...]) -> None:
    asked = [(kind, path) for kind in Kind for path in _paths() if kind not in paths.RECURSIVE or not judge(path, Kind.TREE)][::2]
    script = far_side.JUDGE + (
        "no() { verdict=no; }\n"
        'while IFS= read -r kind && IFS= read -r path; do verdict=yes; judge "$kind" "$path" "$path"; echo $verdict; done'
    )
    text = "".join(f"{kind}\n{path}\n" for kind, path in asked)
    done = subprocess.run([*shell, "-c", script], input=text, capture_output=True, text=True, check=True)
    there = done.stdout.split()
    here = ["no" if judge(path, kind) else "yes" for kind, path in asked]
    assert len(there) == len(asked) > 2000
    assert [question for question, here_, there_ in zip(asked, here, there, strict=True) if here_ != there_] == []
    assert {"yes", "no"} == set(here)


CANONICAL = "the path is not canonical: no .., ., // or trailing /"
TREES = {Kind.TREE, Kind.GREP}


@pytest.mark.parametrize(
    ("path", "words", "kinds"),
    [
        ("hosts", "an absolute path is expected", set(Kind)),
        ("/a*", "a path holds none of * ? $ ` < > | and backslash; no shell expands it", set(Kind)),
        ("/a/../b", CANONICAL, set(Kind)),
        ("/etc/", CANONICAL, {Kind.FILE, Kind.SUM, Kind.DEVICE}),
        ("/", CANONICAL, {Kind.FILE, Kind.SUM, Kind.DEVICE}),
        ("/", "is or contains a secret path: name a smaller directory", TREES),
        ("/etc", "is or contains a secret path: name a smaller directory", TREES),
        ("/etc/pve/priv/x", "holds secrets, or opening it has effects", set(Kind)),
        ("/etc/x.key", "looks like a private key or a credential", set(Kind) - {Kind.DEVICE}),
        ("/mnt/images/100/x", "holds a guest's data", {Kind.FILE, Kind.GREP}),
        ("/var/log/journal/a/system.journal", "is a journal: journalctl shows it", {Kind.FILE}),
        ("/dev/sda", "is a device", {Kind.FILE, Kind.SUM, Kind.GREP}),
        ("/sys/class/net", "is not one of the listed files of /proc and /sys", {Kind.FILE, Kind.SUM, Kind.GREP}),
        ("/proc/meminfo", "is not one of the listed files of /proc and /sys", {Kind.GREP}),
        ("/proc/meminfo", "is or contains a secret path: name a smaller directory", {Kind.TREE}),
        ("/etc/hosts", "", set(Kind)),
    ],
)
def test_what_a_path_is_refused_for_and_by_whom(path: str, words: str, kinds: set[Kind]) -> None:
    assert {kind for kind in Kind if (fault(path, kind) or "") == words} == kinds
