"""Rows: files, text and directories."""

from __future__ import annotations

from proxmox_mcp.read_commands.grammar import Row

_GREP = (
    "-i,--ignore-case --no-ignore-case -v,--invert-match -w,--word-regexp -x,--line-regexp -c,--count -l,--files-with-matches"
    " -L,--files-without-match -n,--line-number -H,--with-filename -h,--no-filename -o,--only-matching -q,--quiet,--silent -s,--no-messages"
    " -a,--text -I -b,--byte-offset -T,--initial-tab -E,--extended-regexp -F,--fixed-strings -G,--basic-regexp -P,--perl-regexp -Z,--null"
    " --line-buffered --color[=auto|always|never] --colour[=auto|always|never] --binary-files=binary|text|without-match"
    " -A,--after-context=SMALL -B,--before-context=SMALL -C,--context=SMALL -m,--max-count=SMALL -#=SMALL"
    " --include=GLOB --exclude=GLOB --exclude-dir=GLOB"
)
_GREP_TREE = _GREP.replace(" -a,--text", "").replace("=binary|text|", "=binary|")
_GREP_TREE_WHY = "not -R: it follows links; the tree holds no secret; no -a: what is in binary files (journals, databases) is not shown"
_ZGREP = (
    "-i,--ignore-case -v,--invert-match -w,--word-regexp -x,--line-regexp -c,--count -l,--files-with-matches -n,--line-number"
    " -H,--with-filename -h,--no-filename -o,--only-matching -q,--quiet,--silent -s,--no-messages -a,--text -E,--extended-regexp"
    " -F,--fixed-strings -G,--basic-regexp -A=SMALL -B=SMALL -C=SMALL -m=SMALL"
)
_LS = (
    "-a,--all -A,--almost-all --author -b,--escape -B,--ignore-backups -c -C -d,--directory -f -F --classify[=auto|always|never]"
    " --file-type"
    " --full-time -g -G,--no-group -h,--human-readable --si --hide=GLOB -i,--inode -I,--ignore=GLOB -k,--kibibytes -l -m"
    " -n,--numeric-uid-gid"
    " -N,--literal -o -p -q,--hide-control-chars --show-control-chars -Q,--quote-name -r,--reverse -s,--size -S --sort=WORD --time=WORD"
    " --time-style=LSTIME -t -T,--tabsize=SMALL -u -U -v -w,--width=SMALL -x -X -1 -Z,--context --color[=auto|always|never]"
    " --format=WORD --group-directories-first --indicator-style=WORD --quoting-style=WORD --block-size=BLOCKSIZE"
)
_DU = (
    "-b,--bytes -c,--total -h,--human-readable --si -k -m -l,--count-links -S,--separate-dirs -x,--one-file-system -P,--no-dereference"
    " -0,--null --apparent-size --inodes -B,--block-size=BLOCKSIZE -t,--threshold=SIZE --time[=atime|access|use|ctime|status]"
    " --time-style=LSTIME --exclude=GLOB"
)
_TAIL = "-n,--lines=AMOUNT -c,--bytes=AMOUNT -q,--quiet,--silent -v,--verbose -z,--zero-terminated -#=AMOUNT"
_SUMS = "-b,--binary -t,--text --tag -z,--zero"
_SUM_WHY = "without -c, which reads a list of files and shows it"

ROWS = (
    Row(
        "/usr/bin/cat",
        "FILE+",
        "-A,--show-all -b,--number-nonblank -e -E,--show-ends -n,--number -s,--squeeze-blank -t -T,--show-tabs -u -v,--show-nonprinting",
    ),
    Row("/usr/bin/tac", "FILE+", "-b,--before -r,--regex"),
    Row("/usr/bin/nl", "FILE+", "-b,--body-numbering=a|t|n -n,--number-format=ln|rn|rz -w,--number-width=SMALL -s,--number-separator=CHAR"),
    Row("/usr/bin/head", "FILE+", _TAIL),
    Row("/usr/bin/tail", "FILE+", _TAIL, why="no -f, -F, --follow or --retry: they never end"),
    Row("/usr/bin/grep", "PATTERN FILE+", _GREP, why="no -f: it shows the file it reads; no -D and -d"),
    Row("/usr/bin/grep", "FILE+", f"!-e,--regexp=PATTERN {_GREP}"),
    Row("/usr/bin/grep", "PATTERN GREPTREE+", f"!-r,--recursive {_GREP_TREE}", why=_GREP_TREE_WHY),
    Row("/usr/bin/grep", "GREPTREE+", f"!-r,--recursive &-e,--regexp=PATTERN {_GREP_TREE}", why="with -e the pattern is not an operand"),
    Row("/usr/bin/egrep", "PATTERN FILE+", _GREP),
    Row("/usr/bin/fgrep", "PATTERN FILE+", _GREP),
    Row("/usr/bin/zgrep", "PATTERN FILE+", _ZGREP),
    Row("/usr/bin/zgrep", "FILE+", f"!-e,--regexp=PATTERN {_ZGREP}"),
    Row("/usr/bin/zcat", "FILE+", why="the output is capped, whatever the file grows to"),
    Row("/usr/bin/xzcat", "FILE+"),
    Row("/usr/bin/zstdcat", "FILE+"),
    Row("/usr/bin/bzcat", "FILE+"),
    Row("/usr/bin/wc", "SUM+", "-c,--bytes -m,--chars -l,--lines -L,--max-line-length -w,--words --total=auto|always|only|never"),
    Row("/usr/bin/md5sum", "SUM+", _SUMS, why=_SUM_WHY),
    Row("/usr/bin/sha1sum", "SUM+", _SUMS, why=_SUM_WHY),
    Row("/usr/bin/sha224sum", "SUM+", _SUMS, why=_SUM_WHY),
    Row("/usr/bin/sha256sum", "SUM+", _SUMS, why=_SUM_WHY),
    Row("/usr/bin/sha384sum", "SUM+", _SUMS, why=_SUM_WHY),
    Row("/usr/bin/sha512sum", "SUM+", _SUMS, why=_SUM_WHY),
    Row("/usr/bin/b2sum", "SUM+", f"-l,--length=SMALL {_SUMS}", why=_SUM_WHY),
    Row("/usr/bin/cksum", "SUM+", "-a,--algorithm=WORD --untagged --tag -z,--zero", why=_SUM_WHY),
    Row(
        "/usr/bin/file",
        "SUM+",
        "-b,--brief -i,--mime --mime-type --mime-encoding --extension -h,--no-dereference -L,--dereference -k,--keep-going -N,--no-pad",
        why="no -C, -m, -f: they compile or read other files; no -s: it opens devices",
    ),
    Row("/usr/bin/ls", "META+", f"{_LS} -L,--dereference -H,--dereference-command-line"),
    Row("/usr/bin/ls", "TREE+", f"!-R,--recursive {_LS}"),
    Row(
        "/usr/bin/stat",
        "META+",
        "-L,--dereference -f,--file-system -c,--format=TEXT --printf=TEXT -t,--terse --cached=always|never|default",
    ),
    Row(
        "/usr/bin/readlink",
        "META+",
        "-f,--canonicalize -e,--canonicalize-existing -m,--canonicalize-missing -n,--no-newline -q -s -v -z,--zero",
    ),
    Row(
        "/usr/bin/realpath",
        "META+",
        "-e,--canonicalize-existing -m,--canonicalize-missing -L,--logical -P,--physical -q,--quiet -s,--strip -z,--zero",
    ),
    Row(
        "/usr/bin/getfacl",
        "META+",
        "-a,--access -d,--default -c,--omit-header -e,--all-effective -E,--no-effective -n,--numeric -p,--absolute-names -t",
    ),
    Row(
        "/usr/bin/du",
        "META+",
        f"!-s,--summarize !-d,--max-depth=SMALL {_DU}",
        why="totals of directories; no --files0-from and -X: they show the file they read",
    ),
    Row("/usr/bin/du", "TREE+", f"-a,--all -d,--max-depth=SMALL {_DU}"),
    Row(
        "/usr/bin/df",
        "META*",
        "-a,--all -B,--block-size=BLOCKSIZE -h,--human-readable -H,--si -i,--inodes -k -l,--local -m -P,--portability -T,--print-type"
        " --total"
        " -t,--type=WORD -x,--exclude-type=WORD --output[=FIELDS] --no-sync",
        why="no --sync: it writes",
    ),
    Row(
        "/usr/bin/tree",
        "TREE+",
        "-a -d -f -h -s -D -p -u -g -i -n -C -A -S -N -q -Q -t -c -v -r -x -F -J -X -L=SMALL -P=GLOB -I=GLOB --prune --noreport"
        " --dirsfirst --du --si"
        " --inodes --device --filelimit=SMALL --sort=name|size|mtime|ctime|version|none --matchdirs --ignore-case --filesfirst --nolinks"
        " --gitignore",
        style="apart",
        why="no -o and -R: they write; no -l: it follows links",
    ),
    Row(
        "/usr/bin/find",
        "TREE+ ( -maxdepth|-mindepth|-uid|-gid|-links SMALL | -name|-iname|-path|-ipath|-wholename|-lname GLOB | -type|-xtype FINDTYPE"
        " | -size|-mtime|-mmin|-ctime|-cmin|-atime|-amin|-inum FINDNUMBER | -newermt|-newerct|-newerat DATE | -user|-group NAME | -perm"
        " FINDMODE"
        " | -printf TEXT | -fstype WORD | -regex|-iregex TEXT"
        " | -xdev|-mount|-empty|-nouser|-nogroup|-print|-print0|-ls|-prune|-depth|-daystart|-noleaf|-readable|-writable|-executable"
        " | -not|-o|-or|-a|-and|-true|-false|-quit )*",
        style="words",
        why="only tests and printing: nothing runs, is deleted or is written",
    ),
)
