"""Stands between a client and the server and writes down every line that passes: relay.py FILE COMMAND ARGUMENT ..."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

TO_SERVER, TO_CLIENT = "-->", "<--"


def main(file: str, *command: str) -> int:
    lock = threading.Lock()
    with Path(file).open("ab") as record, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:

        def carry(source: IO[bytes], sink: IO[bytes], arrow: str) -> None:
            for line in source:
                with lock:
                    record.write(arrow.encode() + b" " + line)
                    record.flush()
                sink.write(line)
                sink.flush()

        assert server.stdin
        assert server.stdout
        back = threading.Thread(target=carry, args=(server.stdout, sys.stdout.buffer, TO_CLIENT))
        back.start()
        try:
            carry(sys.stdin.buffer, server.stdin, TO_SERVER)
            server.stdin.close()
        except BrokenPipeError:
            pass
        back.join()
        return server.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
