"""Lines for a real shell: which count as harmless."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxmox_mcp.read_commands import harmless
from tests.read_commands.lists import ACCEPTED, REFUSED

HARMLESS = [
    "zpool status",
    "systemctl restart pveproxy",
    "systemctl reload nginx.service",
    "systemctl --no-pager restart pvedaemon pveproxy",
    "systemctl start chrony && systemctl status chrony",
    "service nginx restart",
    "service ssh status",
    "rc-service nginx restart",
    "systemctl daemon-reload",
    "systemctl restart systemd-journald",
    "apt update",
    "apt-get update -qq",
    "apt-get -y update && apt list --upgradable",
    "apk update",
    "uptime; free -h; df -h",
    "uptime;",
    "zpool status || echo failed",
    "dmesg -T | tail -n 50",
    "journalctl -u pveproxy -n 100 | grep -i error | head -5",
    "ps aux | grep kvm | wc -l",
    "cat /etc/hosts | sort -u | uniq -c",
    "lsblk -J\nzfs list\n",
    "\n  qm list\n\n  pct list  \n",
    "grep -E 'shutdown|reboot' /var/log/syslog",
    "grep 'a;b && c > d' /var/log/syslog",
    "systemctl restart nginx && sleep 2 && systemctl is-active nginx",
    "echo 'done; really'",
    "true",
    "/usr/bin/systemctl restart nginx",
]
NOT_HARMLESS = [
    "",
    "  \n\t",
    "rm -rf /x",
    "zpool status; rm -rf /x",
    "zpool status && zpool destroy tank",
    "zpool status\nzpool destroy tank",
    "zpool status\r\nzpool destroy tank",
    "systemctl stop pveproxy",
    "systemctl disable x",
    "systemctl mask x",
    "systemctl start poweroff.target",
    "systemctl start reboot.target",
    "systemctl restart systemd-reboot.service",
    "systemctl start systemd-poweroff",
    "systemctl restart pve-guests",
    "systemctl restart pve-cluster",
    "systemctl restart corosync",
    "systemctl restart watchdog-mux",
    "systemctl start pve-container@205",
    "systemctl restart srv.mount",
    "systemctl restart 'ngin*'",
    "systemctl restart ngin*",
    "systemctl restart -H pve2 nginx",
    "systemctl restart --root=/x nginx",
    "systemctl restart",
    "service",
    "service nginx stop",
    "service --status-all",
    "apt upgrade",
    "apt update && apt upgrade -y",
    "apt -o Dir::Bin::dpkg=/tmp/x update",
    "apt-get install -y x",
    "apt-get update -o APT::Update::Pre-Invoke::=/x",
    "cat /etc/shadow",
    "cat /etc/hosts > /tmp/x",
    "cat /etc/hosts >> /tmp/x",
    "cat < /etc/hosts",
    "echo x > /etc/hosts",
    "echo $(rm -rf /x)",
    "echo `rm -rf /x`",
    'echo "$(rm -rf /x)"',
    'echo "`rm -rf /x`"',
    'echo "$HOME"',
    "echo $HOME",
    "(uptime)",
    "{ uptime; }",
    "uptime &",
    "uptime & rm -rf /x",
    "uptime |& rm x",
    "A=b uptime",
    "PATH=/tmp uptime",
    "! uptime",
    "uptime # and more",
    "uptime;;",
    "; uptime",
    "uptime && ",
    "uptime ||",
    "uptime |",
    "| uptime",
    "uptime ; ; uptime",
    "cat 'open",
    'cat "open',
    "cat /etc/hosts\\",
    "ls /tmp/*",
    "ls ~",
    "ls /a{b,c}",
    "for i in 1; do uptime; done",
    "if uptime; then uptime; fi",
    "while true; do uptime; done",
    "time uptime",
    "exec uptime",
    "eval uptime",
    "source /x",
    ". /x",
    "sudo uptime",
    "nohup uptime",
    "env uptime",
    "sh -c uptime",
    "uptime | sh",
    "uptime | tee /etc/hosts",
    "uptime | xargs rm",
    "uptime | sort -o /etc/hosts",
    "uptime | sort --compress-program=/x",
    "uptime | grep -f /etc/shadow",
    "uptime | head /etc/shadow",
    "uptime | cat /etc/shadow",
    "grep x",
    "sort -u",
    "tail -f /var/log/syslog",
    "sleep 999999",
    "qm start 101",
    "саt /etc/hosts",
    "uptime\x00",
    "uptime\u00a0; rm x",
    "find /var/log -delete",
    "sysctl vm.swappiness=1",
    "blkid -c /etc/passwd",
    "sleep",
]


@pytest.mark.parametrize("line", HARMLESS)
def test_harmless(line: str) -> None:
    assert harmless(line) is True


@pytest.mark.parametrize("line", NOT_HARMLESS)
def test_not_harmless(line: str) -> None:
    assert harmless(line) is False


def test_a_read_command_is_harmless_unless_a_shell_would_change_its_words() -> None:
    changed = [line for line in ACCEPTED if not harmless(line)]
    assert all(set(line) & set('*?["') for line in changed)
    assert len(changed) < len(ACCEPTED) / 10


@pytest.mark.parametrize("separator", [";", " && ", " || ", "\n", " | "])
def test_one_bad_command_spoils_the_line(separator: str) -> None:
    for bad in ("rm -rf /x", "qm stop 101", "zfs destroy tank/x", "cat /etc/shadow", "nosuch"):
        assert not harmless(f"uptime{separator}{bad}")
        assert not harmless(f"{bad}{separator}uptime")
        assert not harmless(f"uptime{separator}{bad}{separator}uptime")


def test_refused_reads_are_not_harmless_but_for_several_commands_larger_limits_and_listed_changes() -> None:
    several = ["ls /etc;id", "ls /etc||id", "cat /etc/hosts\nid"]
    large = ["tail -n 300000 /var/log/syslog", "tail -n 1M /var/log/syslog", "head -c 201K /etc/hosts", "zpool iostat tank 10 10"]
    large += ["zpool iostat 1 100", "arcstat 1 60", "free -s 1 -c 60", "vmstat 1 40", "iostat 10 10"]
    changes = ["echo x", "systemctl start pveproxy", "systemctl reset-failed", "apt-get update"]
    assert sorted(line for line in REFUSED if harmless(line)) == sorted(several + large + changes)


@given(
    st.lists(
        st.sampled_from(
            [
                "uptime",
                "rm",
                "-rf",
                "/x",
                ";",
                "&&",
                "||",
                "|",
                "&",
                "\n",
                "'",
                '"',
                "$",
                "(",
                ")",
                "\\",
                "systemctl",
                "restart",
                "nginx",
                " ",
            ]
        ),
        max_size=9,
    )
)
@settings(max_examples=400, deadline=None)
def test_a_line_that_names_rm_is_never_harmless_unless_it_is_text(parts: list[str]) -> None:
    line = " ".join(parts)
    if "rm" in parts and not {"'", '"'} & set(parts):
        assert not harmless(line)
    elif harmless(line):
        assert "uptime" in line or "systemctl" in line


@pytest.mark.parametrize(
    "line", ["uptime; rm -rf /srv;", "uptime; uptime; rm -rf /srv;", "uptime;;", ";", "uptime |", "| uptime", "uptime && ;"]
)
def test_what_stands_before_a_last_semicolon_counts(line: str) -> None:
    assert not harmless(line)
    assert harmless("uptime; uptime;")
