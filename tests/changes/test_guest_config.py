"""What a configuration says about volumes, cards and memory, for VMs and containers."""

from __future__ import annotations

from proxmox_mcp.changes import guest_config

VM = {
    "scsi0": "local:310/vm-310-disk-0.qcow2,discard=on,iothread=1,size=1G",
    "scsi1": "local-lvm:base-324-disk-0/vm-325-disk-0,size=1536M,backup=0",
    "ide2": "local:iso/debian.iso,media=cdrom,size=700M",
    "ide3": "none,media=cdrom",
    "ide0": "local-lvm:vm-310-cloudinit,media=cdrom",
    "efidisk0": "local:310/vm-310-disk-1.raw,efitype=4m,size=528K",
    "unused0": "local:310/vm-310-disk-9.vmdk",
    "virtio0": "/dev/disk/by-id/x,size=4G",
    "net0": "virtio=BC:24:11:C8:A9:95,bridge=vmbr0,firewall=1,tag=10",
    "net1": "e1000=BC:24:11:C8:A9:96",
    "scsihw": "virtio-scsi-single",
    "numa0": "cpus=0",
    "memory": "4096",
}
CT = {
    "rootfs": "local-zfs:subvol-205-disk-0,size=8G",
    "mp0": "/mnt/media,mp=/media",
    "mp1": "local-lvm:vm-205-disk-1,mp=/data,backup=1,size=4G",
    "mp2": "volume=local-lvm:vm-205-disk-2,mp=/more",
    "net0": "name=eth0,bridge=vmbr1,hwaddr=BC:24:11:15:13:94,ip=dhcp,type=veth",
}


def test_the_disks_of_a_vm_are_what_holds_its_data() -> None:
    found = {volume.key: volume for volume in guest_config.disks(VM, "qemu")}
    assert list(found) == ["efidisk0", "scsi0", "scsi1", "unused0"]
    assert found["scsi0"].storage == "local"
    assert (found["scsi0"].format, found["scsi1"].format, found["unused0"].format) == ("qcow2", "raw", "vmdk")
    assert (found["scsi0"].size, found["scsi1"].size, found["unused0"].size) == (2**30, 1536 * 2**20, None)
    assert str(found["scsi0"]) == "scsi0 (local:310/vm-310-disk-0.qcow2, 1G)"
    assert [volume.key for volume in guest_config.volumes(VM, "qemu") if volume.is_drive] == ["ide0", "ide2", "ide3"]
    assert [volume.key for volume in guest_config.bind_mounts(VM, "qemu")] == ["virtio0"]


def test_the_volumes_of_a_container_and_what_belongs_to_the_host() -> None:
    assert [volume.key for volume in guest_config.disks(CT, "lxc")] == ["mp1", "mp2", "rootfs"]
    assert [volume.source for volume in guest_config.bind_mounts(CT, "lxc")] == ["/mnt/media"]
    assert {volume.key: volume.storage for volume in guest_config.volumes(CT, "lxc")} == {
        "mp0": None,
        "mp1": "local-lvm",
        "mp2": "local-lvm",
        "rootfs": "local-zfs",
    }


def test_cards_without_a_bridge_need_no_right_to_one() -> None:
    assert guest_config.cards(VM) == [guest_config.Card("net0", "vmbr0", "10")]
    assert guest_config.cards(CT) == [guest_config.Card("net0", "vmbr1", None)]


def test_g24_memory_in_all_its_forms() -> None:
    values = ["4096", 4096, "current=4096", None, "odd", "current=", []]
    assert [guest_config.memory_mib(value) for value in values] == [4096, 4096, 4096, 512, None, None, None]
