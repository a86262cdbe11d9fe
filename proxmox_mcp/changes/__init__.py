"""What the changing tools stand on: the subject of a change, what stands in its way, what comes of it.

subject          the guest a change is about: look-up, configuration, digest
guest_config     property strings of guest configurations
guest_snapshots  the snapshots of a guest
prechecks        what would refuse a change: privileges, locks, ids, places
storage_fit      whether a storage can hold what is to go there
storage_users    which guests live on a storage, a pool, a volume group
disk_use         what a disk is used for
node_pools       pools and volume groups of a node, and their tenants
disk_size        sizes as people write them -> what the API takes
backup_archive   the volume id of a backup -> its guest, kind and time
cloning          the plan of a clone
restoring        the plan of a restore
conclusions      the answers that several changes end in
"""
