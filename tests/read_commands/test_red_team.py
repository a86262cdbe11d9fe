"""Attacks that once worked on the grammar, its wrapper and the judge of shell lines: each stays refused, or harmless."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proxmox_mcp.errors import InvalidArgument
from proxmox_mcp.read_commands import REFUSED, harmless, match, refusal, wrap
from proxmox_mcp.read_commands.far_side import OPENER, SCRIPT
from proxmox_mcp.secrets import mask_text

needs_perl = pytest.mark.skipif(shutil.which("perl") is None, reason="no perl here")


def run(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(wrap(match(line)), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)


# --- a file that is swapped for a link between the check and the use


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    """A directory as a container's root sees it: names in it can become links to the node's own files at any moment."""
    root = tmp_path / "subvol-205-disk-0"
    root.mkdir()
    (root / "app.log").write_text("hello\n")
    (root / "log").mkdir()
    (root / "log/app.log").write_text("hello\n")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/shadow").write_text("node's secret\n")
    return root


@contextmanager
def swapping(path: Path, secret: Path) -> Iterator[None]:
    over = threading.Event()
    link, plain = path.with_name("link"), path.with_name("plain")

    def swap() -> None:
        while not over.is_set():
            link.symlink_to(secret)
            os.replace(link, path)
            plain.write_text("hello\n")
            os.replace(plain, path)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@needs_perl
@pytest.mark.parametrize("program", ["cat", "tail -n 1", "grep -e e"])
def test_a_file_swapped_for_a_link_is_never_shown(guest: Path, program: str) -> None:
    with swapping(guest / "app.log", guest.parent / "etc/shadow"):
        for _ in range(25):
            done = run(f"{program} {guest / 'app.log'}")
            assert "secret" not in done.stdout
            assert done.returncode in (0, 1, REFUSED)


@needs_perl
def test_what_is_opened_is_what_was_judged(guest: Path) -> None:
    secret = guest.parent / "etc"
    (guest / "link").symlink_to(secret / "shadow")
    (guest / "dir").symlink_to(secret)
    (guest / "away").symlink_to(secret)
    for judged in (guest / "link", guest / "dir/shadow", guest / "away", guest / "gone"):
        done = subprocess.run(["perl", "-e", OPENER, "1", "1", str(judged), "cat", str(judged)], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (REFUSED, "")
        assert refusal(done.returncode, done.stderr) == f"{judged}: was changed meanwhile"


@needs_perl
def test_what_guests_can_change_is_read_all_the_same(guest: Path) -> None:
    log = guest / "app.log"
    assert run(f"cat {log}").stdout == "hello\n"
    assert run(f"cat {log} {guest / 'log/app.log'} /etc/hostname").stdout.startswith("hello\nhello\n")
    assert run(f"grep -n {log} -e hello").stdout == "1:hello\n"
    assert run(f"grep {log} {log}").returncode == 1  # the pattern reads like the file, and stays a pattern
    assert run(f"grep -r hello {guest / 'log'}").stdout == "./app.log:hello\n"
    assert run(f"wc -l {log}").stdout == "1 -\n"
    missing = run(f"cat {guest / 'none'}")
    assert missing.returncode == 1
    assert str(guest / "none") in missing.stderr


def test_what_only_root_can_change_keeps_its_name() -> None:
    closed = all(os.stat(place).st_uid == 0 and not os.stat(place).st_mode & 0o022 for place in ("/", "/etc"))
    if not closed:
        pytest.skip("others may write to /etc here")
    assert run("wc -l /etc/passwd").stdout.endswith(" /etc/passwd\n")


# --- the check itself looks, and must not mount


def test_the_check_of_a_tree_stops_where_looking_would_mount(tmp_path: Path) -> None:
    """Below a visible .zfs each look at a snapshot mounts it."""
    snapshot = tmp_path / ".zfs/snapshot/a"
    snapshot.mkdir(parents=True)
    os.utime(tmp_path / ".zfs", (1, 1))
    before = os.stat(tmp_path / ".zfs").st_atime_ns
    done = run(f"du -a {tmp_path}")
    assert done.returncode == REFUSED
    assert f"contains {tmp_path}/.zfs" in done.stderr
    assert os.stat(tmp_path / ".zfs").st_atime_ns == before
    assert "-print -quit" in SCRIPT


def test_a_tree_with_journals_is_searched(tmp_path: Path) -> None:
    (tmp_path / "system.journal").write_bytes(b"\0\0COREDUMP_ENVIRON=SECRET=1\0")
    (tmp_path / "syslog").write_text("an error\n")
    done = run(f"grep -r -e error -e SECRET {tmp_path}")
    assert "an error" in done.stdout
    assert "SECRET=1" not in done.stdout
    assert run(f"cat {tmp_path / 'syslog'}").returncode == 0
    (tmp_path / "innocent").symlink_to("system.journal")
    assert run(f"cat {tmp_path / 'innocent'}").returncode == REFUSED


# --- lines that wrote, or showed secrets


@pytest.mark.parametrize(
    "line",
    [
        # tree reads the next letters as options and the next words as their values: -P /tmp/x, -o /etc/cron.d/x
        "tree -Po /tmp/x /etc/cron.d/x",
        "tree -Io /tmp/x /etc/cron.d/x /tmp",
        "tree -aPo /tmp/x /etc/hosts",
        "tree -L2 /var/lib/vz",
        # a directory of keys shows every key in it, these without their names
        "sysctl net.ipv4",
        "sysctl net",
        "sysctl -n net/ipv6/conf/all",
        "sysctl net.ipv6.conf.eth0",
        "sysctl net.ipv4.",
        "sysctl net/ipv4/.",
        "sysctl net/./ipv4",
        "sysctl net/ipv4/../ipv4",
        "sysctl net/ipv4//tcp_rmem",
        "sysctl -n -a",
        "sysctl -a --values",
        # the environment of a process that dumped core
        "journalctl -F COREDUMP_ENVIRON",
        "journalctl -o json --output-fields=MESSAGE,COREDUMP_ENVIRON",
        "journalctl -o verbose",
        "journalctl -o export -n 5",
        "systemctl status x -o verbose",
        "systemctl status x -o export",
        "cat /var/log/journal/0123/system.journal",
        "cat /run/log/journal/0123/user-1000.journal-old",
        "grep -ra COREDUMP /var/log/journal",
        "grep -r --binary-files=text COREDUMP /var/log/journal",
        # secrets under names that said so
        "cat /etc/pve/domains.cfg",
        "cat /etc/racoon/psk.txt",
        "cat /root/password",
        "cat /root/passwords.txt",
        "cat /root/db_password",
        "cat /root/.pbs_password",
        "cat /etc/ansible/.vault_pass",
        "cat /root/vault_pass.txt",
        "cat /root/token",
        "cat /root/.secrets/certbot/cloudflare.ini",
        "cat /root/.smbcred",
        "cat /etc/smbcredentials",
        "cat /etc/cifs-credentials",
        "cat /root/.wgetrc",
        "cat /root/.curlrc",
        "cat /root/.s3cfg",
        "cat /root/.mc/config.json",
        "cat /root/.acme.sh/account.conf",
        "cat /root/.config/borg/keys/host",
        "cat /root/.local/share/keyrings/login",
        "cat /etc/proftpd/ftpd.passwd",
        "cat /etc/mosquitto/passwd",
        "cat /etc/squid/passwd",
        "cat /etc/dovecot/users",
        "cat /etc/raddb/users",
        "cat /etc/freeradius/3.0/users",
        "cat /etc/sasldb2",
        "cat /var/lib/mysql/mysql/user.MYD",
        "cat /var/lib/postgresql/17/main/base/1/1260",
        "cat /var/lib/docker/containers/x/config.v2.json",
        "md5sum /root/password",
    ],
)
def test_it_is_refused(line: str) -> None:
    with pytest.raises(InvalidArgument):
        match(line)


@pytest.mark.parametrize(
    "line",
    [
        "tree -a -L 2 -P '*.conf' /etc/systemd/system",
        "tree --sort=name -L 1 /var/lib/vz",
        "sysctl -n net.ipv4.ip_forward",
        "sysctl net.ipv6.conf.eth0.forwarding net/ipv4/conf/eth0.100/forwarding",
        "sysctl -a --pattern net.ipv4",
        "journalctl -o json -n 3",
        "journalctl -o short-precise -F _COMM",
        "systemctl status ssh -o cat",
        "cat /etc/passwd",
        "cat /etc/pam.d/common-password",
        "cat /usr/share/doc/passwd/copyright",
        "mpstat -P ALL 1 2",
        "grep -ri error /var/log",
        "md5sum /var/log/journal/0123/system.journal",
    ],
)
def test_its_neighbours_are_not(line: str) -> None:
    match(line)


def test_what_listings_show_of_secrets_is_masked() -> None:
    said = "net.ipv4.tcp_fastopen_key = 1111-2222\\nnet.ipv6.conf.all.stable_secret = fe80::1\\n".replace("\\n", "\n")
    said += '{"COREDUMP_ENVIRON" : "HOME=/root\\nDB_URL=sensitive","COREDUMP_ENVIRON":[83,69,67,82],"MESSAGE":"kept"}\n'
    shown = mask_text(said)
    assert not any(secret in shown for secret in ("1111", "fe80", "sensitive", "83,69"))
    assert "kept" in shown


# --- lines for a shell that seemed harmless


@pytest.mark.parametrize(
    "line",
    [
        "systemctl restart blk-availability",  # its stop unmounts and deactivates every volume
        "systemctl start debug-shell",  # root's shell on a console, without a password
        "systemctl restart networking",  # cuts the guests off
        "systemctl restart rbdmap",
        "systemctl restart target",
        "systemctl restart libvirt-guests",
        "systemctl start rc-local",
        "systemctl start apt-daily-upgrade",
        "systemctl restart docker",
        "systemctl start my-own-script",
        "service sendsigs start",
        "service umountfs start",
        "service single start",
        "rc-service killprocs start",
        "tree -Po /tmp/x /etc/cron.d/x",
    ],
)
def test_it_is_not_harmless(line: str) -> None:
    assert not harmless(line)


@pytest.mark.parametrize(
    "line",
    [
        "systemctl restart pveproxy pvedaemon.service pvestatd",
        "systemctl restart php8.2-fpm postgresql@17-main",
        "systemctl reload apache2",
        "service mariadb restart",
        "systemctl restart qemu-guest-agent prometheus-node-exporter",
    ],
)
def test_well_known_services_are(line: str) -> None:
    assert harmless(line)
