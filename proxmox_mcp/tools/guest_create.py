"""New guests from scratch: proxmox_create_vm, proxmox_create_container."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from proxmox_mcp import text
from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Bridge, Changing, Flag, GuestName, NodeName, StorageId, Vmid, VolumeId, Waiting, between
from proxmox_mcp.changes import conclusions, disk_size, guest_config, storage_fit
from proxmox_mcp.changes.prechecks import Checks
from proxmox_mcp.inventory import GuestKind, StorageRef, read_object
from proxmox_mcp.plan import Answer, ApiCall, Conclude, Plan, Risk, StepResult
from proxmox_mcp.privileges import Need
from proxmox_mcp.registry import tool

Gib = Annotated[float, BeforeValidator(disk_size.new_volume_gib), AfterValidator(between(0.001, 65_536))]
Cores = Annotated[int, AfterValidator(between(1, 256))]
Mib = Annotated[int, AfterValidator(between(16, 4_194_304))]

# known by every model: checked, and not paid for in the schema
OsType = Annotated[
    Literal["other", "wxp", "w2k", "w2k3", "w2k8", "wvista", "win7", "win8", "win10", "win11", "l24", "l26", "solaris"],
    WithJsonSchema({"type": "string"}),
]


class CreateVm(Changing, Waiting):
    disk_storage: StorageId
    disk_gb: Gib
    vmid: Annotated[Vmid, Field(description="default: next free id")] | None = None
    node: NodeName | None = None
    name: GuestName | None = None
    cores: Cores = 2
    sockets: Annotated[int, AfterValidator(between(1, 8))] = 1
    memory_mb: Mib = 2048
    ostype: OsType = "l26"
    bridge: Bridge = "vmbr0"
    iso: Annotated[VolumeId, Field(description="ISO volume id, booted first")] | None = None
    start: Flag = False


@tool(
    "proxmox_create_vm",
    "Create a VM with one disk, one network card and, if wished, an ISO image to install from.",
    title="Create a VM",
    group="create",
    model=CreateVm,
    risk=Risk.CHANGE,
    destructive=False,
    limit="guest",
)
async def create_vm(args: CreateVm, call: Call) -> Plan:
    """POST /nodes/{node}/qemu. The disk is scsi0 on virtio-scsi-single, qcow2 on file storages, as the web interface makes it."""
    checks = Checks(call.inventory)
    node = await checks.place_for_new(args.node, args.disk_storage)
    vmid = await checks.new_id(args.vmid, "vmid")
    ref, notes = await _disk_fits(checks, "qemu", args.disk_storage, node, args.disk_gb)
    form = storage_fit.formats(ref)[0] if ref is not None else "raw"
    notes += await checks.bridge(node, args.bridge, starts=args.start)
    notes += await checks.cpus(node, args.sockets * args.cores, starts=args.start)
    if args.iso is not None:
        await storage_fit.volume_exists(checks, args.iso, node, "iso")
        await checks.privileges(Need(f"/storage/{args.iso.partition(':')[0]}", ("Datastore.AllocateSpace", "Datastore.Audit")))
    await _privileges(checks, vmid, args.disk_storage, start=args.start)
    await checks.privileges(*(Need(f"/vms/{vmid}", (f"VM.Config.{kind}",)) for kind in ("HWType", "Options")))
    if args.iso is not None:
        await checks.privileges(Need(f"/vms/{vmid}", ("VM.Config.CDROM",)))
        notes += ("it boots the ISO image first: after the installation, take it out or put scsi0 first",)
    if args.ostype.startswith("w") and args.iso is not None:
        notes += ("Windows sees this disk and network card only with the VirtIO drivers (a second ISO image)",)
    params: dict[str, Any] = {
        "vmid": vmid,
        "name": args.name,
        "cores": args.cores,
        "sockets": args.sockets,
        "memory": args.memory_mb,
        "ostype": args.ostype,
        "scsihw": "virtio-scsi-single",
        "scsi0": f"{args.disk_storage}:{disk_size.gib_text(args.disk_gb)}" + (f",format={form}" if form != "raw" else "") + ",iothread=1",
        "net0": f"virtio,bridge={args.bridge}",
        "ide2": f"{args.iso},media=cdrom" if args.iso else None,
        "boot": f"order={'ide2;' if args.iso else ''}scsi0;net0",
        "start": 1 if args.start else None,
    }
    vcpus = text.counted(args.sockets * args.cores, "vCPUs")
    summary = (
        f"create VM {vmid}{f' ({args.name})' if args.name else ''} on {node}: {vcpus}, {args.memory_mb} MiB, "
        f"{disk_size.gib_text(args.disk_gb)} GiB ({form}) on storage {args.disk_storage}, network on {args.bridge}"
        + (f", installs from {args.iso}" if args.iso else "")
        + (", then start it" if args.start else "")
    )
    return _plan(call, checks, summary, node, "qemu", args.disk_storage, params, notes)


def _public_keys(value: str) -> str:
    """SSH public keys, a line each; refuses whatever is none, a private key above all."""
    if len(value) > 4096:
        raise ValueError("longer than 4096 characters")
    if "PRIVATE KEY" in value:
        raise ValueError("this is a private key; give the public one (the file that ends in .pub)")
    lines = [line.strip() for line in value.splitlines() if line.strip() and not line.strip().startswith("#")]
    if not lines or not all(_PUBLIC_KEY.fullmatch(line) for line in lines):
        raise ValueError("an SSH public key is a line like: ssh-ed25519 AAAA... name")
    return "\n".join(lines)


_PUBLIC_KEY = re.compile(
    r"(?:[A-Za-z0-9@.,=\"*:/ _-]+ )?(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp(?:256|384|521)|sk-[a-z0-9-]+@openssh\.com)"
    r" [A-Za-z0-9+/]{30,}={0,3}(?: [^\x00-\x1f\x7f]*)?"
)


def _password(value: str) -> str:
    if not 5 <= len(value) <= 128:
        raise ValueError("a password has 5 to 128 characters")
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise ValueError("a password has no control characters")
    return value


def _address(value: str) -> str:
    """dhcp, manual, or an address with its prefix length: 192.168.1.50/24, 2001:db8::5/64."""
    if value in ("dhcp", "manual"):
        return value
    try:
        found = ipaddress.ip_interface(value)
    except ValueError:
        found = None
    if found is None or "/" not in value or "%" in value or found.network.prefixlen < 8:
        raise ValueError("dhcp, manual, or an address with its prefix length like 192.168.1.50/24")
    return value


class CreateContainer(Changing, Waiting):
    ostemplate: Annotated[VolumeId, Field(description="storage:vztmpl/...")]
    disk_storage: StorageId
    disk_gb: Gib = 8
    vmid: Annotated[Vmid, Field(description="default: next free id")] | None = None
    node: NodeName | None = None
    hostname: GuestName | None = None
    cores: Cores = 1
    memory_mb: Mib = 512
    swap_mb: Annotated[int, AfterValidator(between(0, 4_194_304))] = 512
    bridge: Bridge = "vmbr0"
    ip: Annotated[str, AfterValidator(_address), Field(description="dhcp, manual or CIDR")] = "dhcp"
    gateway: str | None = None
    password: Annotated[str, AfterValidator(_password)] | None = None
    ssh_public_key: Annotated[str, AfterValidator(_public_keys)] | None = None
    unprivileged: Flag = True
    nesting: Flag = False
    start: Flag = False

    @model_validator(mode="after")
    def _gateway_fits(self) -> Self:
        if self.gateway is None:
            return self
        if self.ip in ("dhcp", "manual"):
            raise ValueError("gateway needs a static ip, not dhcp or manual")
        try:
            gateway = ipaddress.ip_address(self.gateway)
        except ValueError:
            raise ValueError("gateway is an IP address like 192.168.1.1") from None
        if gateway.version != ipaddress.ip_interface(self.ip).version:
            raise ValueError("gateway and ip are of different IP versions")
        return self


@tool(
    "proxmox_create_container",
    "Create a container from a template; unprivileged unless told otherwise.",
    title="Create a container",
    group="create",
    model=CreateContainer,
    risk=Risk.CHANGE,
    destructive=False,
    limit="guest",
)
async def create_container(args: CreateContainer, call: Call) -> Plan:
    """POST /nodes/{node}/lxc. `unprivileged` is always sent: its default differs between Proxmox VE 8 and 9."""
    checks = Checks(call.inventory)
    node = await checks.place_for_new(args.node, args.disk_storage)
    vmid = await checks.new_id(args.vmid, "vmid")
    await storage_fit.volume_exists(checks, args.ostemplate, node, "vztmpl")
    _, notes = await _disk_fits(checks, "lxc", args.disk_storage, node, args.disk_gb)
    notes += await checks.bridge(node, args.bridge, starts=args.start)
    await checks.privileges(Need(f"/storage/{args.ostemplate.partition(':')[0]}", ("Datastore.AllocateSpace", "Datastore.Audit")))
    await _privileges(checks, vmid, args.disk_storage, start=args.start)
    if not args.unprivileged:
        await checks.privileges_since((9, 0), Need("/", ("Sys.Modify",)))
        checks.refuse("features of a privileged container are for root@pam alone, not for a token: leave out nesting", when=args.nesting)
        notes += ("privileged: root in the container is root on the node as far as the kernel is concerned",)
    if args.password is None and args.ssh_public_key is None:
        notes += ("without password and ssh_public_key nobody can log in; the node's shell can enter it (pct enter)",)
    if args.gateway is not None and ipaddress.ip_address(args.gateway) not in ipaddress.ip_interface(args.ip).network:
        notes += (f"gateway {args.gateway} is outside the network of {args.ip}",)
    params: dict[str, Any] = {
        "vmid": vmid,
        "ostemplate": args.ostemplate,
        "hostname": args.hostname,
        "cores": args.cores,
        "memory": args.memory_mb,
        "swap": args.swap_mb,
        "rootfs": f"{args.disk_storage}:{disk_size.gib_text(args.disk_gb)}",
        "net0": _net0(args),
        "unprivileged": int(args.unprivileged),
        "features": "nesting=1" if args.nesting else None,
        "password": args.password,
        "ssh-public-keys": args.ssh_public_key,
        "start": 1 if args.start else None,
    }
    called = f" ({args.hostname})" if args.hostname else ""
    summary = (
        f"create {'unprivileged' if args.unprivileged else 'PRIVILEGED'} CT {vmid}{called} on {node} from {args.ostemplate}: "
        f"{text.counted(args.cores, 'cores')}, {args.memory_mb} MiB, {disk_size.gib_text(args.disk_gb)} GiB "
        f"on storage {args.disk_storage}, {args.ip} on {args.bridge}" + (", then start it" if args.start else "")
    )
    return _plan(call, checks, summary, node, "lxc", args.disk_storage, params, notes)


def _net0(args: CreateContainer) -> str:
    six = "6" if ":" in args.ip else ""
    gateway = f",gw{six}={args.gateway}" if args.gateway else ""
    return f"name=eth0,bridge={args.bridge},ip{six}={args.ip}{gateway}"


async def _disk_fits(checks: Checks, kind: GuestKind, storage: str, node: str, gib: float) -> tuple[StorageRef | None, tuple[str, ...]]:
    known = next((ref for ref in await checks.inventory.storages() if ref.name == storage), None)
    whole = storage_fit.takes_all_at_once(known, kind)
    return await storage_fit.suits(checks, storage, node, storage_fit.CONTENT[kind], gib=gib, whole=whole)


async def _privileges(checks: Checks, vmid: int, storage: str, *, start: bool) -> None:
    guest = f"/vms/{vmid}"
    config = ("CPU", "Memory", "Disk", "Network")
    await checks.privileges(
        Need(guest, ("VM.Allocate",)),
        Need(f"/storage/{storage}", ("Datastore.AllocateSpace",)),
        *(Need(guest, (f"VM.Config.{kind}",)) for kind in config),
    )
    if start:
        await checks.privileges_since((9, 2), Need(guest, ("VM.PowerMgmt",)))


def _plan(
    call: Call,
    checks: Checks,
    summary: str,
    node: str,
    kind: GuestKind,
    storage: str,
    params: dict[str, Any],
    notes: tuple[str, ...],
) -> Plan:
    return Plan(
        summary,
        (ApiCall("POST", ("nodes", node, kind), params),),
        Risk.CHANGE,
        (f"guest {params['vmid']}", f"node {node}", f"storage {storage}"),
        obstacles=checks.obstacles,
        doubts=checks.doubts,
        notes=notes,
        conclude=_as_made(call, node, kind, params, summary),
    )


def _as_made(call: Call, node: str, kind: GuestKind, params: Mapping[str, Any], summary: str) -> Conclude:
    async def conclude(results: Sequence[StepResult]) -> Answer:
        path = ("nodes", node, kind, params["vmid"])
        config = await read_object(call.api, *path, "config")
        state = await read_object(call.api, *path, "status", "current")
        facts = {
            "vmid": params["vmid"],
            "status": state.get("status"),
            "disks": [str(volume) for volume in guest_config.disks(config, kind)],
            "net0": config.get("net0"),
        }
        # its task ends well even where the start after it fails
        lame = params.get("start") and state.get("status") != "running"
        notes = ("it was to be started and does not run: proxmox_list_tasks shows why",) if lame else ()
        return conclusions.done(summary, results, facts, notes=notes)

    return conclude
