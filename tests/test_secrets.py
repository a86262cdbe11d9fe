"""What must never be shown, and what must stay readable beside it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxmox_mcp import secrets
from proxmox_mcp.audit.record import plain
from proxmox_mcp.command_secrets import mask_argv
from proxmox_mcp.secrets import MARK, Known, mask_params, mask_text

CAPTURES = Path(__file__).resolve().parents[2] / "shared" / "pve" / "captures.json"
UUID = "00000000-1111-4222-8333-444444444444"
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk=\nAAAA/+==\n-----END OPENSSH PRIVATE KEY-----"


@pytest.mark.parametrize(
    "name",
    [
        "password", "cipassword", "Password", "confirmation-password", "secret", "token", "apitoken", "token-secret", "token_value",
        "ticket",
        "keyring", "encryption-key", "ssh-private-key", "client-key", "private_key", "key", "keys", "otp", "passphrase", "api-key",
        "bind_password",
        "CSRFPreventionToken", "vncticket", "credentials",
    ],
)  # fmt: skip
def test_parameters_that_are_masked(name: str) -> None:
    assert mask_params({name: "geheim"}) == {name: MARK}
    assert mask_params({name: ["geheim", 1]}) == {name: MARK}
    assert mask_params({name: None}) == {name: None}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tokenid", "root@pam!mcp"), ("token-name", "mcp"), ("userid", "root@pam"), ("vmid", 101), ("name", "web"), ("delete",
        "cipassword"),
        ("crypted", 1), ("keyboard", "de"), ("master-pubkey", "AAAA"), ("fingerprint", "AB:CD"), ("password", True), ("keep", {"a": 1}),
        ("net0", "virtio=AA:BB,bridge=vmbr0"), ("tags", "a;b"), ("onboot", False), ("key_path", "/root/.ssh/id"), ("token_file", "/x"),
    ],
)  # fmt: skip
def test_parameters_that_stay(name: str, value: object) -> None:
    assert mask_params({name: value}) == {name: value}


@pytest.mark.parametrize(
    "line",
    [
        "define( 'DB_PASSWORD', 'geheim' );", "  'dbpassword' => 'geheim',", '"password" => "geheim",', "<password>geheim</password>",
        '<ns:bindPassword type="plain">geheim</ns:bindPassword>', "DB_PASS=geheim", "SMTP_PASS: geheim", "smtp_pass = geheim",
        "$db_pass = 'geheim';", "requirepass geheim", "masterauth geheim",
    ],
)  # fmt: skip
def test_passwords_in_the_files_of_programs(line: str) -> None:
    assert "geheim" not in mask_text(f"# a file\n{line}\nnext = line\n")
    assert mask_text(mask_text(line)) == mask_text(line)
    assert "next = line" in mask_text(f"{line}\nnext = line\n")


@pytest.mark.parametrize(
    "line",
    [
        "fields = ['password', 'email']", "<passwordPolicy>strict</passwordPolicy>", "<password/><user>joe</user>", "12 passed, 3 failed",
        "pass: 1, fail: 2", "two-pass=1", "define('DB_HOST', 'db1');", "<p>the password was changed</p>",
    ],
)  # fmt: skip
def test_what_only_reads_like_a_password_stays(line: str) -> None:
    assert mask_text(line) == line


def test_parameters_inside_parameters() -> None:
    params = {
        "target": {"host": "pve9", "password": "geheim"},
        "endpoint": f"host=pve9,apitoken=PVEAPIToken=root@pam!x={UUID},fingerprint=AB",
    }
    assert mask_params(params) == {
        "target": {"host": "pve9", "password": MARK},
        "endpoint": f"host=pve9,apitoken=PVEAPIToken=root@pam!x={MARK},fingerprint=AB",
    }
    assert mask_params({"list": [f"password={UUID}", 5]}) == {"list": [f"password={MARK}", 5]}


def test_public_ssh_keys_are_public_but_short() -> None:
    key = quote("ssh-ed25519 " + "A" * 68 + " me@example")
    shown = mask_params({"sshkeys": key})["sshkeys"]
    assert shown.startswith("ssh-ed25519%20AAA")
    assert len(shown) < 60


def test_masking_leaves_the_request_alone() -> None:
    params = {"password": "geheim", "nested": {"token": "x"}}
    mask_params(params)
    assert params == {"password": "geheim", "nested": {"token": "x"}}


@pytest.mark.parametrize(
    ("shown", "masked"),
    [
        (f"Authorization: PVEAPIToken=ops@pve!mcp={UUID}", f"Authorization: PVEAPIToken=ops@pve!mcp={MARK}"),
        (f"PVEAPIToken ops@pve!mcp={UUID}, next", f"PVEAPIToken ops@pve!mcp={MARK}, next"),
        (f"PVEAPIToken%3Dops%40pve%21mcp%3D{UUID}&x=1", f"PVEAPIToken%3Dops%40pve%21mcp%3D{MARK}&x=1"),
        ("password=geheim&user=x", f"password={MARK}&user=x"),
        ("PGPASSWORD=geheim psql", f"PGPASSWORD={MARK} psql"),
        ("PROXMOX_TOKEN_VALUE=abc", f"PROXMOX_TOKEN_VALUE={MARK}"),
        ("PROXMOX_AUDIT_HMAC_KEY=abc", f"PROXMOX_AUDIT_HMAC_KEY={MARK}"),
        ("MYSQL_PWD=geheim", f"MYSQL_PWD={MARK}"),
        ('password="two words" x', f'password="{MARK}" x'),
        ("password='two words' x", f"password='{MARK}' x"),
        ('{"password":"a\\"b, c","x":1}', f'{{"password":"{MARK}","x":1}}'),
        ('"{\\"token\\":\\"abc def\\",\\"x\\":1}"', f'"{{\\"token\\":\\"{MARK}\\",\\"x\\":1}}"'),
        ("{'secret': 'abc'}", f"{{'secret': '{MARK}'}}"),
        ("cipassword: geheim\nuser: x", f"cipassword: {MARK}\nuser: x"),
        ("  - passwd: geheim", f"  - passwd: {MARK}"),
        ("X-Auth-Token: abcdef", f"X-Auth-Token: {MARK}"),
        ("Authorization: Bearer abc.def", f"Authorization: Bearer {MARK}"),
        ("Authorization: Basic dXNlcjpwdw==", f"Authorization: Basic {MARK}"),
        ("used bearer eyJhbGciOi.J9 there", f"used bearer {MARK} there"),
        ("PVEAuthCookie=PVE:root@pam:65F0AAAA::c2lnbmF0dXJl+/==", f"PVEAuthCookie=PVE:root@pam:65F0AAAA:{MARK}"),
        ("https://user:geheim@host/x", f"https://user:{MARK}@host/x"),
        ("root:$6$salt$abcdefghijklmnop/.:19000:0", f"root:{MARK}:19000:0"),
        ("$y$j9T$abc$defghijk", MARK),
        (f"before\n{KEY}\nafter", f"before\n{MARK}\nafter"),
        (KEY[:60], MARK),
        (json.dumps({"k": KEY}), json.dumps({"k": MARK})),
        ("curl --token abc --x", f"curl --token {MARK} --x"),
        ("restic --password-file f --repo-password geheim", f"restic --password-file f --repo-password {MARK}"),
    ],
)
def test_text_that_is_masked(shown: str, masked: str) -> None:
    assert mask_text(shown) == masked
    assert mask_text(masked) == masked


@pytest.mark.parametrize(
    "plain",
    [
        "no such token 'mcp' for user 'ops@pve'",
        "invalid token value!",
        "Agent error: child process has failed to set user password: failed to exec 'chpasswd': No such file or directory",
        "Permission check failed (/access/realm/pve, Realm.AllocateUser)",
        "tokenid=mcp expire=0 privsep=1",
        "https://pve.lab:8006/api2/json",
        "local:iso/debian-13.iso key: none",
        "UPID:pve1:00000B79:00073E5A:6B0E2E8D:vzdestroy:363:root@pam!mcp:",
        "keyboard=de token",
        "$5 and $100",
        "the password of this user has expired",
    ],
)
def test_text_that_stays(plain: str) -> None:
    assert mask_text(plain) == plain


def test_proxmox_words_survive_the_masks() -> None:
    if not CAPTURES.is_file():
        pytest.skip("needs ../shared/pve/captures.json")
    for exchange in json.loads(CAPTURES.read_text()):
        answer = exchange.get("answer")
        message = answer.get("message") if isinstance(answer, dict) else None
        for said in (exchange["reason"], message or ""):
            assert mask_text(said) == said


@given(st.text(min_size=6, max_size=40), st.text(max_size=30), st.text(max_size=30))
def test_a_known_secret_is_replaced_in_every_spelling(secret: str, before: str, after: str) -> None:
    known = Known()
    known.add(secret)
    if len(secret.strip()) < 6:
        return
    for spelled in (secret, quote(secret, safe="", errors="replace"), quote_plus(secret, errors="replace"), json.dumps(secret)[1:-1]):
        shown = known.mask(f"{before} {spelled} {after}")
        assert spelled not in shown or spelled in f"{before} {MARK} {after}"


def test_short_secrets_are_replaced_only_where_they_stand_alone() -> None:
    known = Known()
    known.add("root1")
    known.add("pw")
    known.add("")
    assert known.mask("root1 groot1 root12 (root1) pw") == f"{MARK} groot1 root12 ({MARK}) pw"


def test_a_secret_that_is_a_common_word_is_replaced_only_where_it_stands_alone() -> None:
    """Masked inside names, it would be told by what is left of them."""
    known = Known()
    known.add("proxmox")
    text = "next: proxmox_list_tasks (see www.proxmox.com); pw=proxmox, root:proxmox@pve1 'proxmox' a\\nproxmox u%3Aproxmox%20x"
    shown = f"next: proxmox_list_tasks (see www.{MARK}.com); pw={MARK}, root:{MARK}@pve1 '{MARK}' a\\n{MARK} u%3A{MARK}%20x"
    assert known.mask(text) == shown
    known.add("Zufallswoerter")  # longer than common words
    assert known.mask("xZufallswoerterx") == f"x{MARK}x"


def test_the_longer_secret_wins() -> None:
    known = Known()
    known.add("geheim")
    known.add("geheim-und-mehr")
    assert known.mask("x=geheim-und-mehr y=geheim") == f"x={MARK} y={MARK}"


def test_registered_secrets_are_masked_everywhere() -> None:
    secrets.register("Gr8-Secret&Value")
    assert mask_text("saw Gr8-Secret&Value and Gr8-Secret%26Value") == f"saw {MARK} and {MARK}"
    assert mask_argv(["echo", "Gr8-Secret&Value"]) == ["echo", MARK]
    assert mask_params({"description": "Gr8-Secret&Value"}) == {"description": MARK}


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["pct", "exec", "205", "--", "id"], ["pct", "exec", "205", "--", "id"]),
        (["x", "--password", "geheim", "y"], ["x", "--password", MARK, "y"]),
        (["x", "--password=geheim"], ["x", f"--password={MARK}"]),
        (["x", "--repo-token", "geheim"], ["x", "--repo-token", MARK]),
        (["/usr/bin/sshpass", "-p", "geheim", "ssh", "h"], ["/usr/bin/sshpass", "-p", MARK, "ssh", "h"]),
        (["mysql", "-pgeheim", "db"], ["mysql", f"-p{MARK}", "db"]),
        (["curl", "-u", "me:geheim", "https://x"], ["curl", "-u", MARK, "https://x"]),
        (["sh", "-c", "PGPASSWORD=geheim psql"], ["sh", "-c", f"PGPASSWORD={MARK} psql"]),
        (["x", "--password-file", "/etc/pw"], ["x", "--password-file", "/etc/pw"]),
        ([], []),
    ],
)
def test_command_lines(argv: list[str], shown: list[str]) -> None:
    assert mask_argv(argv) == shown


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "password ",
        "password=",
        "-----BEGIN PRIVATE KEY-----",
        "://a:b",
        "PVE:a@",
        "PVEAPIToken=a",
        "--a-",
        'token=\\"',
        "token='",
        "$6$",
        "%21",
    ],
)
def test_masking_is_linear(unit: str) -> None:
    def spent(length: int) -> float:
        start = time.process_time()
        mask_text(unit * (length // len(unit)))
        return time.process_time() - start

    spent(10_000)
    assert spent(400_000) < 3


def test_what_a_caller_passes_as_a_secret_is_masked_in_this_call_alone() -> None:
    with secrets.passed(["hunter22", "run"]):
        assert secrets.mask_text("said hunter22, run") == f"said {MARK}, run"
    assert secrets.mask_text("said hunter22, run") == "said hunter22, run"


IN_LINES = """
sshpass -p geheim ssh h
sshpass -pgeheim ssh h
mysql -uroot -pgeheim -e x
mysqldump -u root -p'geheim' db
curl -u admin:geheim https://x
curl --user=admin:geheim https://x
docker login -u me -p geheim h
ipmitool -H h -U root -P geheim chassis status
ldapsearch -D cn=x -w geheim
redis-cli -a geheim ping
htpasswd -b /etc/x joe geheim
smbclient //h/s -U 'joe%geheim'
openssl rsa -passin pass:geheim
mount -o user=joe,pass=geheim //h/s /mnt
echo 'root:geheim' | chpasswd
echo root:geheim|sudo -n chpasswd
printf '%s' geheim | passwd --stdin root
chpasswd <<< "root:geheim"
mysql -e "set password for root = password('geheim')"
PGPASSWORD=geheim psql
""".strip().splitlines()


@pytest.mark.parametrize("line", [*IN_LINES, "chpasswd <<EOF\nroot:geheim\nEOF"])
def test_a_secret_in_a_shell_line_is_masked(line: str) -> None:
    (shown,) = mask_argv([line])
    assert "geheim" not in shown
    assert MARK in shown
    assert line.split()[0].partition("=")[0] in shown
    assert mask_text(shown) is shown  # the log masks again what it writes


@pytest.mark.parametrize(
    "line",
    [
        'export DB_PASSWORD="$(reboot now)"',
        "password='$(reboot now)'",
        "token=`reboot${IFS}now`",
        'password=\\" reboot now \\"',
        'echo "password=" && reboot now " "',
        "echo -----BEGIN PRIVATE KEY-----\nreboot now\n-----END PRIVATE KEY-----",
        "curl -u 'x' ; reboot now",
        "echo a`reboot now` | chpasswd",
        "Authorization: bearer x|reboot now",
        "mysql -p$(reboot now)",
    ],
)
def test_no_mask_hides_code_from_the_record(line: str) -> None:
    (shown,) = mask_argv([line])
    assert "reboot" in shown
    assert "now" in shown
    assert plain([shown], mask_text) == [shown]


def test_key_material_in_a_shell_line_is_masked_line_by_line() -> None:
    body = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gt"
    (shown,) = mask_argv([f"cat >k <<E\n-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n{body}\n-----END OPENSSH PRIVATE KEY-----\nE\nreboot"])
    assert body not in shown
    assert shown.endswith("\nE\nreboot")


@pytest.mark.parametrize(
    "line",
    [
        "\tfreenas_password geheim",
        "\ttruenas_apikey geheim",
        "\tclient-key geheim",
        "  wpa-psk geheim",
        " neighbor 10.0.0.1 password geheim",
        "enable password 8 geheim",
        'secret "geheim";',
        "bindpw geheim",
        "rootpw {SSHA}geheim",
        "    token geheim  ",
    ],
)
def test_a_setting_that_stands_apart_by_blanks_is_masked(line: str) -> None:
    shown = mask_text(f"type: x\n{line}\nnext line\n")
    assert "geheim" not in shown
    assert shown.startswith("type: x\n")
    assert shown.endswith("\nnext line\n")
    assert line.split()[0] in shown


@pytest.mark.parametrize(
    "line",
    [
        "Failed password for root from 10.0.0.5 port 22 ssh2",
        "password authentication failed for user x",
        "passwd 1:4.17.4-2",
        "the token is valid",
        "no token",
        "keyring and keys",
        "secret: see /etc/x",
    ],
)
def test_prose_stays(line: str) -> None:
    assert mask_text(line).partition(":")[0] == line.partition(":")[0]


def test_what_follows_the_beginning_of_a_key_does_not_vanish() -> None:
    """Whoever can write one line of a guest's notes must not hide the lines below it."""
    shown = mask_text("description: -----BEGIN PRIVATE KEY-----\nname: web\nstatus: running\nnode: pve1, 3 cores\n")
    assert shown == "description: ***\nname: web\nstatus: running\nnode: pve1, 3 cores\n"
    for mark in ('"', "'", '\\"'):
        shown = mask_text(f"description: password={mark}abc\nname: web\nstatus: running")
        assert shown.endswith("***\nname: web\nstatus: running")
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
    cut = mask_text(
        f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n{body}\n{body}\nstatus: running"
    )
    assert cut == "***\nstatus: running"
    for whole in (
        f"-----BEGIN PRIVATE KEY-----\n{body}\nAbC=\n-----END PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\\n{body}\\nAbC=\\n-----END PRIVATE KEY-----",
    ):
        assert mask_text(f"x {whole} y") == "x *** y"


def test_a_key_in_a_log_or_a_list_is_masked() -> None:
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
    for before in ("- ", "Dec 01 05:00:00 pve1 app[12]: ", "> "):
        key = "\n".join(f"{before}{line}" for line in ("-----BEGIN PRIVATE KEY-----", body, body, "AbC=", "-----END PRIVATE KEY-----"))
        assert mask_text(f"messages:\n{key}\nstate: failed") == f"messages:\n{before}***\nstate: failed"
