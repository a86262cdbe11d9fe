"""The Turkish of README.tr.md's tables, each sentence beside the English one that it says: when that changes, a test asks for a new one."""

from __future__ import annotations

from proxmox_mcp import registry
from proxmox_mcp.config import VARIABLES

TOOLS = {
    "proxmox_health_overview": (
        "Start here: problems first, then nodes, quorum, guests, storages, ZFS, disks, failed tasks, backups.",
        "Buradan başlayın: önce sorunlar, sonra düğümler, çoğunluk, konuklar, depolamalar, ZFS, diskler, başarısız görevler, yedekler.",
    ),
    "proxmox_list_vms": (
        "VMs and containers of the cluster. name: part of it.",
        "Kümedeki sanal makineler ve konteynerler. name: adın bir parçası.",
    ),
    "proxmox_get_vm_status": (
        "Live state of a guest: load, lock, HA, pending changes.",
        "Bir konuğun anlık durumu: yük, kilit, HA, bekleyen değişiklikler.",
    ),
    "proxmox_vm_power": (
        "Start, shut down, power off (stop) or reboot a VM or container; shutdown never turns into stop.",
        "Sanal makineyi veya konteyneri başlatır, kapatır, gücünü keser (stop) veya yeniden başlatır; shutdown asla stop'a dönüşmez.",
    ),
    "proxmox_list_nodes": ("Nodes of the cluster with load.", "Kümenin düğümleri ve yükleri."),
    "proxmox_get_node_status": ("Load, memory, versions of a node.", "Bir düğümün yükü, belleği, sürümleri."),
    "proxmox_list_tasks": (
        "Tasks, newest first, running ones too; without node of all nodes.",
        "Görevler, en yenisi önce, çalışanlar da dahil; node verilmezse bütün düğümlerinki.",
    ),
    "proxmox_get_task_log": ("Verdict and last log lines of a task.", "Bir görevin sonucu ve günlüğünün son satırları."),
    "proxmox_list_backups": ("Backups on every storage, newest first.", "Bütün depolamalardaki yedekler, en yenisi önce."),
    "proxmox_create_backup": (
        "Back up a VM or container with vzdump; older backups are kept unless prune is set.",
        "Sanal makineyi veya konteyneri vzdump ile yedekler; prune verilmedikçe eski yedekler kalır.",
    ),
    "proxmox_restore_backup": (
        "Restore a backup as a new VM or container, or over an existing one (force).",
        "Bir yedeği yeni bir sanal makine veya konteyner olarak ya da var olanın üzerine (force) geri yükler.",
    ),
    "proxmox_list_backup_jobs": ("Scheduled backup jobs.", "Zamanlanmış yedekleme işleri."),
    "proxmox_list_snapshots": ("Snapshots of a guest.", "Bir konuğun anlık görüntüleri."),
    "proxmox_snapshot": (
        "Create, roll back to or delete a snapshot of a VM or container.",
        "Sanal makinenin veya konteynerin anlık görüntüsünü alır, ona geri döner veya onu siler.",
    ),
    "proxmox_list_storage": (
        "Storages with fill level, of a node or all.",
        "Bir düğümün veya bütün düğümlerin depolamaları, doluluk oranlarıyla.",
    ),
    "proxmox_storage_usage_detail": (
        "What fills a storage: totals and largest volumes.",
        "Bir depolamayı ne dolduruyor: toplamlar ve en büyük birimler.",
    ),
    "proxmox_list_cluster_storage": ("Storage configuration of the cluster.", "Kümenin depolama yapılandırması."),
    "proxmox_list_isos": (
        "ISO images (or container templates) on every storage.",
        "Bütün depolamalardaki ISO kalıpları (veya konteyner şablonları).",
    ),
    "proxmox_create_vm": (
        "Create a VM with one disk, one network card and, if wished, an ISO image to install from.",
        "Bir diskli, bir ağ kartlı ve istenirse kurulum için ISO kalıplı bir sanal makine oluşturur.",
    ),
    "proxmox_create_container": (
        "Create a container from a template; unprivileged unless told otherwise.",
        "Şablondan konteyner oluşturur; aksi söylenmedikçe ayrıcalıksız (unprivileged).",
    ),
    "proxmox_clone_vm": (
        "Clone a VM, container or template to a new id.",
        "Sanal makineyi, konteyneri veya şablonu yeni bir kimliğe klonlar.",
    ),
    "proxmox_resize_vm": (
        "Change memory or cores of a VM or container; says what takes effect at once and what waits for a restart.",
        "Belleği veya çekirdek sayısını değiştirir; neyin hemen geçerli olduğunu, neyin yeniden başlatmayı beklediğini söyler.",
    ),
    "proxmox_move_disk": (
        "Move a disk of a VM (also while it runs) or of a stopped container to another storage.",
        "Sanal makinenin (çalışırken de) veya durmuş bir konteynerin diskini başka bir depolamaya taşır.",
    ),
    "proxmox_host_read_exec": (
        "Run one read-only diagnostic command on a node (cat, grep, zpool status, journalctl ...); no shell, no pipes.",
        "Düğümde yalnızca okuyan tek bir tanı komutu çalıştırır (cat, grep, zpool status, journalctl ...); kabuk ve boru hattı yok.",
    ),
    "proxmox_host_exec": (
        "Run a shell command as root on a node, for what no other tool does.",
        "Düğümde root olarak kabuk komutu çalıştırır; başka hiçbir aracın yapmadığı işler için.",
    ),
    "proxmox_lxc_exec": (
        "Run a shell command as root inside a running container.",
        "Çalışan bir konteynerin içinde root olarak kabuk komutu çalıştırır.",
    ),
    "proxmox_ct_service_action": (
        "Look at or change one service inside a running container; only changes need confirm.",
        "Çalışan bir konteynerdeki tek bir hizmete bakar veya onu değiştirir; confirm yalnızca değişikliklerde gerekir.",
    ),
    "proxmox_ct_log_tail": (
        "Show the last log lines of a service or of a file inside a running container.",
        "Çalışan bir konteynerdeki hizmetin veya dosyanın son günlük satırlarını gösterir.",
    ),
    "proxmox_vm_list_hosts": (
        "List the guests that can be reached over SSH (vm_ssh_hosts.json).",
        "SSH ile ulaşılabilen konukları listeler (vm_ssh_hosts.json).",
    ),
    "proxmox_vm_exec": ("Run a shell command on a registered guest over SSH.", "Kayıtlı bir konukta SSH ile kabuk komutu çalıştırır."),
    "proxmox_vm_read_file": ("Read a text file from a registered guest.", "Kayıtlı bir konuktan metin dosyası okur."),
    "proxmox_list_disks": ("Disks with SMART health, of a node or all.", "Bir düğümün veya bütün düğümlerin diskleri, SMART sağlığıyla."),
    "proxmox_get_disk_smart": ("SMART values of a disk.", "Bir diskin SMART değerleri."),
    "proxmox_list_zfs": ("ZFS pools, of a node or all.", "Bir düğümün veya bütün düğümlerin ZFS havuzları."),
    "proxmox_get_zfs_pool": (
        "Health of a ZFS pool: state, scan, errors, devices.",
        "Bir ZFS havuzunun sağlığı: durum, tarama, hatalar, aygıtlar.",
    ),
    "proxmox_zfs_pool_status": (
        "zpool status of a node, over SSH: verdict, scrub, damaged files, devices with counters.",
        "Düğümde SSH ile zpool status: hüküm, scrub, bozuk dosyalar, sayaçlarıyla aygıtlar.",
    ),
    "proxmox_zfs_list_datasets": (
        "ZFS file systems and volumes of a node, over SSH.",
        "Bir düğümün ZFS dosya sistemleri ve birimleri, SSH ile.",
    ),
    "proxmox_zfs_list_snapshots": (
        "ZFS snapshots of a node (or of a dataset and below), over SSH; Proxmox lists only its own.",
        "Bir düğümün (veya bir veri kümesinin ve altındakilerin) ZFS anlık görüntüleri, SSH ile; Proxmox yalnızca kendininkileri listeler.",
    ),
    "proxmox_zfs_create_snapshot": (
        "Take a ZFS snapshot of a dataset, over SSH; of a guest's disks use proxmox_snapshot.",
        "Bir veri kümesinin ZFS anlık görüntüsünü SSH ile alır; konuk diskleri için proxmox_snapshot kullanın.",
    ),
    "proxmox_zfs_property": (
        "Read ZFS properties of a dataset or snapshot, or set one that is safe to set.",
        "Veri kümesinin veya anlık görüntünün ZFS özelliklerini okur ya da değiştirilmesi güvenli olan birini ayarlar.",
    ),
    "proxmox_zfs_dataset": (
        "Create or destroy a ZFS dataset, over SSH; what is in use, held or cloned is not destroyed.",
        "SSH ile ZFS veri kümesi oluşturur veya yok eder; kullanılan, tutulan (hold) ve klonlanan yok edilmez.",
    ),
    "proxmox_zfs_scrub": (
        "Start a scrub of a ZFS pool, or stop the one that runs, over SSH.",
        "SSH ile bir ZFS havuzunda scrub başlatır veya çalışanı durdurur.",
    ),
    "proxmox_zfs_send": (
        "Send a ZFS snapshot into a new file (in PROXMOX_ZFS_SEND_DIRS) or a dataset of the same node, over SSH.",
        "ZFS anlık görüntüsünü SSH ile yeni bir dosyaya (PROXMOX_ZFS_SEND_DIRS içinde) veya aynı düğümde bir veri kümesine gönderir.",
    ),
    "proxmox_zfs_destroy_snapshots_by_pattern": (
        "Destroy ZFS snapshots by name, in two calls: the first lists them, the second (dry_run=false) destroys just those.",
        "ZFS anlık görüntülerini ada göre, iki çağrıda yok eder: ilki listeler, ikincisi (dry_run=false) yalnızca onları yok eder.",
    ),
    "proxmox_cleanup_vzdump_snapshots": (
        "Remove @vzdump snapshots that an aborted backup left and that block the next one; lists first, then dry_run=false.",
        "Yarıda kalan yedeğin bıraktığı ve sonrakini engelleyen @vzdump anlık görüntülerini kaldırır; önce listeler, sonra dry_run=false.",
    ),
    "proxmox_list_lvm": ("LVM volume groups with their disks.", "LVM birim grupları ve diskleri."),
    "proxmox_list_lvm_thin": ("LVM thin pools with data and metadata use.", "LVM thin havuzları, veri ve üst veri doluluğuyla."),
    "proxmox_lvm_manage": (
        "Make a volume group or thin pool on an unused disk, or destroy one.",
        "Kullanılmayan bir diskte birim grubu veya thin havuzu oluşturur ya da birini yok eder.",
    ),
    "proxmox_zfs_pool_manage": (
        "Make a ZFS pool of unused disks, or destroy one with all that is on it.",
        "Kullanılmayan disklerden ZFS havuzu oluşturur ya da birini üzerindeki her şeyle yok eder.",
    ),
    "proxmox_disk_prepare": (
        "Wipe an unused disk (over SSH: no API token may) or give it an empty GPT; refuses disks in use.",
        "Kullanılmayan bir diski siler (SSH ile: hiçbir API token'ı yapamaz) veya boş GPT yazar; kullanımdaki diskleri reddeder.",
    ),
    "proxmox_storage_config": (
        "Add a ZFS pool or directory as a storage of the cluster, or remove a storage's entry (its data stays).",
        "ZFS havuzunu veya dizini kümeye depolama olarak ekler ya da bir depolamanın kaydını kaldırır (verisi kalır).",
    ),
    "proxmox_audit_verify": (
        "Verify the tamper-evident audit logs of node commands (host), guest commands (vm) and API changes (api).",
        "Düğüm komutlarının (host), konuk komutlarının (vm) ve API değişikliklerinin (api) kurcalamayı belli eden kayıtlarını doğrular.",
    ),
}

SETTINGS = {
    "PROXMOX_HOST": (
        "Address of a node, or several members of one cluster (the next is tried when one fails).",
        "Bir düğümün adresi veya aynı kümenin birkaç üyesi (biri yanıt vermezse sonraki denenir).",
    ),
    "PROXMOX_PORT": ("Port of the API.", "API'nin bağlantı noktası."),
    "PROXMOX_USER": ("User the token belongs to, with realm.", "Token'ın ait olduğu kullanıcı, alanıyla (realm) birlikte."),
    "PROXMOX_TOKEN_NAME": ("Name of the API token.", "API token'ının adı."),
    "PROXMOX_TOKEN_VALUE": (
        "Secret of the API token, a UUID that Proxmox shows once.",
        "API token'ının gizli değeri; Proxmox'un bir kez gösterdiği UUID.",
    ),
    "PROXMOX_TOKEN_FILE": (
        "File that holds the secret, instead of PROXMOX_TOKEN_VALUE.",
        "PROXMOX_TOKEN_VALUE yerine gizli değeri tutan dosya.",
    ),
    "PROXMOX_VERIFY_SSL": (
        "Whether the server's certificate is verified; a path means that CA file.",
        "Sunucunun sertifikası doğrulansın mı; bir yol verilirse o CA dosyası kullanılır.",
    ),
    "PROXMOX_CA_FILE": (
        "Certificate authority to trust, such as a node's /etc/pve/pve-root-ca.pem.",
        "Güvenilecek sertifika makamı, örneğin bir düğümün /etc/pve/pve-root-ca.pem dosyası.",
    ),
    "PROXMOX_TLS_FINGERPRINT": (
        "SHA-256 fingerprint of the only certificate to accept; several (one a member) with commas.",
        "Kabul edilecek tek sertifikanın SHA-256 parmak izi; birden çoksa (üye başına bir) virgülle.",
    ),
    "PROXMOX_TIMEOUT": ("Seconds for one request.", "Bir istek için saniye."),
    "PROXMOX_MAX_CONCURRENCY": ("Requests under way at the same time.", "Aynı anda süren istek sayısı."),
    "PROXMOX_PROXY": (
        "Proxy for the API, http://[user:password@]host:port; proxies of the environment are not used.",
        "API için vekil sunucu, http://[user:password@]host:port; ortamdaki vekil ayarları kullanılmaz.",
    ),
    "PROXMOX_ENV_FILE": (
        "The .env file to read instead of the ones looked for; only the environment can say this.",
        "Aranan dosyaların yerine okunacak .env dosyası; yalnızca ortam değişkeni olarak verilebilir.",
    ),
    "PROXMOX_READ_ONLY": ("Offer only what reads.", "Yalnızca okuyan araçları sun."),
    "PROXMOX_APPROVAL": (
        "When a person is asked, where the client can ask: off, data_loss or all.",
        "İstemci sorabiliyorsa insana ne zaman sorulur: off, data_loss veya all.",
    ),
    "PROXMOX_APPROVAL_FALLBACK": (
        "What happens where the client cannot ask: allow (the flags decide) or deny.",
        "İstemci soramıyorsa ne olur: allow (bayraklar karar verir) veya deny.",
    ),
    "PROXMOX_ALLOW_VMIDS": (
        "Guests that may be changed, as ids and ranges: 100-199,205.",
        "Değiştirilebilecek konuklar, kimlik ve aralık olarak: 100-199,205.",
    ),
    "PROXMOX_ALLOW_NODES": ("Nodes that may be changed, separated by commas.", "Değiştirilebilecek düğümler, virgülle ayrılmış."),
    "PROXMOX_LIMIT_READS": (
        "Whether reads, too, show only those guests and nodes.",
        "Okumalar da yalnızca o konukları ve düğümleri mi göstersin.",
    ),
    "PROXMOX_ALLOW_SECRET_READS": (
        "Whether files that usually hold secrets may be read in guests.",
        "Konuklarda genellikle sır tutan dosyalar okunabilsin mi.",
    ),
    "PROXMOX_MAX_WAIT": ("Most seconds that one call waits for a task.", "Bir çağrının bir görevi en çok kaç saniye beklediği."),
    "PROXMOX_TOOLSETS": ("Groups of tools to offer, separated by commas.", "Sunulacak araç kümeleri, virgülle ayrılmış."),
    "PROXMOX_TOOLS": ("Single tools to offer, separated by commas.", "Sunulacak tek tek araçlar, virgülle ayrılmış."),
    "PROXMOX_EXCLUDE_TOOLS": ("Tools not to offer, separated by commas.", "Sunulmayacak araçlar, virgülle ayrılmış."),
    "PROXMOX_AUDIT_DIR": ("Directory of the audit logs.", "Denetim kayıtlarının dizini."),
    "PROXMOX_AUDIT_HMAC_KEY": (
        "Key that makes the audit logs tamper-evident.",
        "Denetim kayıtlarında kurcalamayı belli eden anahtar.",
    ),
    "PROXMOX_AUDIT_HMAC_KEY_FILE": (
        "File with that key; further lines are earlier keys, for verifying.",
        "Bu anahtarı tutan dosya; sonraki satırlar doğrulama için eski anahtarlardır.",
    ),
    "PROXMOX_SSH_HOST": (
        "Node that SSH commands run on when none is named.",
        "Düğüm adı verilmediğinde SSH komutlarının çalıştığı düğüm.",
    ),
    "PROXMOX_SSH_PORT": ("SSH port of the nodes.", "Düğümlerin SSH bağlantı noktası."),
    "PROXMOX_SSH_USER": ("SSH user on the nodes.", "Düğümlerdeki SSH kullanıcısı."),
    "PROXMOX_SSH_KEY_PATH": (
        "Private key; without it the SSH agent and the user's own keys are tried.",
        "Özel anahtar; verilmezse SSH aracısı ve kullanıcının kendi anahtarları denenir.",
    ),
    "PROXMOX_SSH_KEY_PASSPHRASE": ("Passphrase of that key.", "Bu anahtarın parolası."),
    "PROXMOX_SSH_PASSWORD": ("Password, where no key is used.", "Anahtar kullanılmıyorsa parola."),
    "PROXMOX_SSH_KNOWN_HOSTS": (
        "File of known host keys; ignore switches the check off.",
        "Bilinen sunucu anahtarlarının dosyası; ignore denetimi kapatır.",
    ),
    "PROXMOX_SSH_NODES": (
        "SSH address of each node: pve2=10.0.0.2,pve3=pve3.lan:2222.",
        "Her düğümün SSH adresi: pve2=10.0.0.2,pve3=pve3.lan:2222.",
    ),
    "PROXMOX_SSH_JUMP": ("Host to go through, [user@]host[:port].", "Üzerinden geçilecek sunucu, [user@]host[:port]."),
    "PROXMOX_SSH_SUDO": ("Run commands on nodes through sudo -n.", "Düğümlerdeki komutları sudo -n ile çalıştır."),
    "PROXMOX_SSH_TIMEOUT": ("Seconds for an SSH connection.", "Bir SSH bağlantısı için saniye."),
    "PROXMOX_SSH_CONFIG": (
        "OpenSSH configuration file to use; true means ~/.ssh/config.",
        "Kullanılacak OpenSSH yapılandırma dosyası; true, ~/.ssh/config demektir.",
    ),
    "PROXMOX_VM_SSH_HOSTS": (
        "Where vm_ssh_hosts.json is, the register of guests with SSH.",
        "SSH ile ulaşılan konukların listesi olan vm_ssh_hosts.json dosyasının yeri.",
    ),
    "PROXMOX_ZFS_SEND_DIRS": (
        "Directories on nodes that zfs send may write to, separated by commas.",
        "Düğümlerde zfs send'in yazabileceği dizinler, virgülle ayrılmış.",
    ),
}

GROUPS = {
    "Connection": "Bağlantı",
    "Safety": "Güvenlik",
    "Choice of tools": "Araç seçimi",
    "Audit": "Denetim kaydı",
    "SSH to nodes": "Düğümlere SSH",
}

# those in words; values stay as they are
DEFAULTS = {
    "required": "zorunlu",
    "none": "yok",
    "all": "hepsi",
    "searched": "aranır",
    "the system's": "sistemdeki",
    "the user's state directory": "kullanıcının durum dizini",
    "the first host of PROXMOX_HOST": "PROXMOX_HOST içindeki ilk adres",
    "the user's ~/.ssh/known_hosts": "kullanıcının ~/.ssh/known_hosts dosyası",
}


def sentence(name: str, english: str) -> str:
    """The Turkish of a tool's or a variable's sentence; the English one itself while nobody has said it anew."""
    said, turkish = {**TOOLS, **SETTINGS}.get(name, ("", ""))
    return turkish if said == english else english


def group(name: str) -> str:
    return GROUPS[name]


def default(value: str) -> str:
    return DEFAULTS.get(value, value)


def stale() -> list[str]:
    """Tools and variables whose English sentence is not the one that was translated, and translations of what is no longer there."""
    now = {tool.name: tool.summary for tool in registry.all_tools()} | {variable.name: variable.what for variable in VARIABLES}
    said = {**TOOLS, **SETTINGS}
    return sorted({name for name, english in now.items() if said.get(name, ("", ""))[0] != english} | (said.keys() - now.keys()))
