"""`python -m penstock.setup`: fetch what is missing and prepare what a start would have to; silent
and quick when nothing is.
"""

from __future__ import annotations

import sys

from penstock.errors import PenstockError
from penstock.setup.bytecode import compile_imports
from penstock.setup.class_archive import make_archives
from penstock.setup.jar_download import fetch
from penstock.setup.java import find_java
from penstock.setup.jvm_programs import broker, spark
from penstock.setup.redis_server import find_redis_server


def main() -> int:
    try:
        java = find_java()
        find_redis_server()
        fetch("broker")
        fetch("spark")
        make_archives(java, [broker(), spark()])
        compile_imports()
    except PenstockError as wrong:
        print(wrong, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
