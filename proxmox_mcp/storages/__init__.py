"""What storage is made of, as the API tells it: volumes on storages, physical disks, ZFS pools; read by tools, health and changes.

volumes  backups, images, ISOs ... of every storage, each shared one read once
disks    state and use of physical disks, and the path forms people write
zpools   whether a pool is healthy, and which device is not
"""
