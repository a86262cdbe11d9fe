"""ZFS on a node, over SSH: its grammar, its output, its answers, and what stands in the way of a change.

names        pools, datasets, snapshots, properties: what is a name
properties   which properties may be set, and to what
tables       what -Hp prints
pool_status  what `zpool status` says, as JSON or as text
failures     what zfs and zpool say when they fail
host         one node's zfs and zpool, read over the audited door
datasets     a dataset with all that would go with it
snapshots    snapshots: lists, which may go, batches
tenants      guests and storages on datasets, as the cluster knows them
open_files   processes and namespaces that have a dataset open
backups      which guests are being backed up
sending      zfs send, into a file or a dataset, as a unit of the node
"""

from __future__ import annotations
