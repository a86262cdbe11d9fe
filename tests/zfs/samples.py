"""Short pieces of what a real host printed (OpenZFS 2.3.9), for tests that must not depend on more."""

from __future__ import annotations

DEGRADED = """  pool: bulk
 state: DEGRADED
status: One or more devices has been taken offline by the administrator.
\tSufficient replicas exist for the pool to continue functioning in a
\tdegraded state.
action: Online the device using 'zpool online' or replace the device with
\t'zpool replace'.
config:

\tNAME                        STATE     READ WRITE CKSUM
\tbulk                        DEGRADED     0     0     0
\t  mirror-0                  DEGRADED     0     0     0
\t    wwn-0x5000c50000000a02  ONLINE       0     0     0
\t    wwn-0x5000c50000000a03  OFFLINE      0     0     0

errors: No known data errors
"""
SUSPENDED = """  pool: susp
 state: SUSPENDED
status: One or more devices are faulted in response to IO failures.
action: Make sure the affected devices are connected, then run 'zpool clear'.
   see: https://openzfs.github.io/openzfs-docs/msg/ZFS-8000-HC
config:

\tNAME         STATE     READ WRITE CKSUM
\tsusp         ONLINE       0     0     0
\t  /dev/sdg1  ONLINE       3 26.4K     0

errors: 211 data errors, use '-v' for a list
"""
DAMAGED = """  pool: frag
 state: ONLINE
status: One or more devices has experienced an error resulting in data
\tcorruption.  Applications may be affected.
action: Restore the file in question if possible.  Otherwise restore the
\tentire pool from backup.
   see: https://openzfs.github.io/openzfs-docs/msg/ZFS-8000-8A
  scan: scrub repaired 0B in 00:00:00 with 1 errors on Tue Dec  1 02:25:02 2026
config:

\tNAME         STATE     READ WRITE CKSUM
\tfrag         ONLINE       0     0     0
\t  /dev/sdg1  ONLINE       0     0     2

errors: Permanent errors have been detected in the following files:

        /frag/victim
        frag@a:/victim
"""
SCRUBBING = """  pool: tank
 state: ONLINE
  scan: scrub in progress since Tue Dec  1 01:37:00 2026
\t269M / 269M scanned, 30.9M / 269M issued at 30.9M/s
\t0B repaired, 11.47% done, 00:00:07 to go
config:

\tNAME                        STATE     READ WRITE CKSUM
\ttank                        ONLINE       0     0     0
\t  mirror-0                  ONLINE       0     0     0
\t    wwn-0x5000c50000000a00  ONLINE       0     0     0
\t    wwn-0x5000c50000000a01  ONLINE       0     0     0

errors: No known data errors
"""
# G54: indented with blanks, a remark behind the counters
FAULTED = """    pool: tank
   state: DEGRADED
  status: One or more devices are faulted in response to persistent errors.
          Sufficient replicas exist for the pool to continue functioning in a
          degraded state.
  action: Replace the faulted device.
    scan: resilvered 1.09T in 1 days 02:03:04 with 0 errors on Mon Mar  2 11:34:02 2026
  config:

          NAME          STATE     READ WRITE CKSUM
          tank          DEGRADED     0     0     0
            raidz1-0    DEGRADED     0     0     0
              sda       ONLINE       0     0     0
              sdb       FAULTED      3    12     0  too many errors
              sdc       ONLINE       0     0     0

  errors: No known data errors
"""
# the layout of spares, logs and cache beside a pool, and of the groups that stand in for a disk
SPARES = """  pool: tank
 state: DEGRADED
  scan: resilver in progress since Tue Dec  1 01:37:00 2026
\t1.50G / 3.00G scanned, 1.00G / 3.00G issued at 100M/s
\t1.00G resilvered, 33.33% done, 00:00:20 to go
config:

\tNAME             STATE     READ WRITE CKSUM
\ttank             DEGRADED     0     0     0
\t  mirror-0       DEGRADED     0     0     0
\t    spare-0      DEGRADED     0     0     0
\t      sda        UNAVAIL      4    44     0  was /dev/sda1
\t      sdd        ONLINE       0     0     0  (resilvering)
\t    sdb          ONLINE       0     0     0
\t  mirror-1       ONLINE       0     0     0
\t    replacing-0  ONLINE       0     0     0
\t      sde        ONLINE       0     0     0
\t      sdf        ONLINE       0     0     0  (resilvering)
\t    sdg          ONLINE       0     0     0
\tlogs
\t  nvme0n1        ONLINE       0     0     0
\tcache
\t  nvme1n1        ONLINE       0     0     0
\tspares
\t  sdd            INUSE     currently in use
\t  sdh            AVAIL

errors: No known data errors
"""
# exit status, stderr, the message, what it stands for
FAILURES = (
    (1, "cannot open 'nosuch': no such pool\n", "cannot open 'nosuch': no such pool", "missing"),
    (1, "cannot open 'tank/nosuch': dataset does not exist\n", "cannot open 'tank/nosuch': dataset does not exist", "missing"),
    (
        2,
        "cannot open 'tank/nosuch': dataset does not exist\nusage:\n\tsnapshot [-r] [-o property=value] ...\n\nFor the property list, run: zfs\n",  # noqa: E501
        "cannot open 'tank/nosuch': dataset does not exist",
        "missing",
    ),
    (
        1,
        "could not find any snapshots to destroy; check snapshot names.\n",
        "could not find any snapshots to destroy; check snapshot names.",
        "missing",
    ),
    (1, "cannot create 'tank/nosuch/child': parent does not exist\n", "cannot create 'tank/nosuch/child': parent does not exist", "other"),
    (2, "usage:\n\tsnapshot [-r] [-o property=value] ...\n", "usage:", "other"),
    (
        2,
        "bad property list: invalid property 'nosuchprop'\nusage:\n\tget [-rHp]\n",
        "bad property list: invalid property 'nosuchprop'",
        "other",
    ),
    (
        255,
        "cannot set property for 'tank/backup': bad numeric value 'banana'\n",
        "cannot set property for 'tank/backup': bad numeric value 'banana'",
        "other",
    ),
    (1, "cannot unmount '/tank/busy': pool or dataset is busy\n", "cannot unmount '/tank/busy': pool or dataset is busy", "open"),
    (1, "cannot open 'susp': pool I/O is currently suspended\n", "cannot open 'susp': pool I/O is currently suspended", "zpool clear"),
    (1, "cannot scrub tank: permission denied\n", "cannot scrub tank: permission denied", "PROXMOX_SSH_SUDO"),
    (
        1,
        "cannot destroy snapshot tank/share@held: it's being held. Run 'zfs holds -r tank/share@held' to see holders.\n",
        "cannot destroy snapshot tank/share@held: it's being held. Run 'zfs holds -r tank/share@held' to see holders.",
        "zfs release",
    ),
    (
        1,
        "cannot destroy 'tank/share@clonesrc': snapshot has dependent clones\nuse '-R' to destroy the following datasets:\ntank/share-clone\n",  # noqa: E501
        "cannot destroy 'tank/share@clonesrc': snapshot has dependent clones; use '-R' to destroy the following datasets:; tank/share-clone",  # noqa: E501
        "promote",
    ),
    (
        1,
        "warning: cannot send 'tank/secret@e1': dataset key must be loaded\n",
        "warning: cannot send 'tank/secret@e1': dataset key must be loaded",
        "raw",
    ),
    (1, "", "", "other"),
)
