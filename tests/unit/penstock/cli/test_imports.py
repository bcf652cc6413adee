"""What is only asked for help, or for rows, loads no engine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from penstock.cli.lazy import PLACES

#: what no help needs
_HEAVY = {
    "aiohttp",
    "confluent_kafka",
    "duckdb",
    "httpx",
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "pydantic_settings",
    "redis",
    "rich",
    "sqlglot",
    "urllib3",
    "websockets",
}
#: of these, what a statement needs: Arrow's rows over HTTP, and the width of their letters
_OF_A_STATEMENT = {"httpx", "numpy", "pyarrow", "rich", "urllib3"}

_HELP_OF = """
import json, sys
from penstock.cli import main
def run(words):
    sys.argv = ["penstock", *words]
    try: main()
    except SystemExit: pass
def new(before): return sorted({m.split(".")[0] for m in set(sys.modules) - before})
found = {}
for words in json.loads(sys.argv[1]):
    before = set(sys.modules)
    run(words)
    found[" ".join(words)] = new(before)
print("\\n" + json.dumps(found))
"""

_STATEMENT = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
ROWS = bytes.fromhex(sys.argv[1])
class Gateway(BaseHTTPRequestHandler):
    def do_GET(self): self.answer(b'{"notifier_url": "ws://127.0.0.1:1"}', "application/json")
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(ROWS, "application/vnd.apache.arrow.stream")
    def answer(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *given): pass
server = HTTPServer(("127.0.0.1", 0), Gateway)
Thread(target=server.serve_forever, daemon=True).start()
from penstock.cli import main
sys.argv = ["penstock", "sql", "SELECT 1", "--url", f"http://127.0.0.1:{server.server_port}",
            "--password-file", sys.argv[2]]
try: main()
except SystemExit: pass
print(json.dumps(sorted({m.split(".")[0] for m in sys.modules})))
"""


def _run(script: str, *words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_no_help_loads_an_engine() -> None:
    asked = [["--help"], ["--version"], *([name, "--help"] for name in PLACES)]
    *_, last = _run(_HELP_OF, json.dumps(asked))
    found = json.loads(last)
    assert found.keys() == {" ".join(words) for words in asked}
    heavy = {words: sorted(_HEAVY & set(modules)) for words, modules in found.items()}
    assert {words: modules for words, modules in heavy.items() if modules} == {}


def test_a_statement_loads_what_its_rows_need(tmp_path) -> None:
    pa = pytest.importorskip("pyarrow")
    sink = pa.BufferOutputStream()
    table = pa.table({"answer": [42]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    password = tmp_path / "password"
    password.write_text("p\n", encoding="utf-8")
    password.chmod(0o600)
    *shown, loaded = _run(_STATEMENT, sink.getvalue().to_pybytes().hex(), str(password))
    assert shown[-1].strip() == "42"
    assert _HEAVY & set(json.loads(loaded)) <= _OF_A_STATEMENT
