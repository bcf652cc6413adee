"""`dbt debug` on the PostgreSQL wire."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.clients import environments, facts


def test_dbt_debug(options: dict[str, Any], tmp_path: Path) -> None:
    dbt = environments.python("dbt").with_name("dbt")
    target = {
        "type": "postgres",
        "host": options["host"],
        "port": options["postgres"],
        "user": options["user"],
        "password": options["password"],
        "dbname": "penstock",
        "schema": facts.DATABASE,
        "threads": 1,
    }
    profiles = {"plant": {"target": "mesh", "outputs": {"mesh": target}}}
    # JSON is YAML
    (tmp_path / "profiles.yml").write_text(json.dumps(profiles), encoding="utf-8")
    project = {"name": "plant", "version": "1.0", "profile": "plant"}
    (tmp_path / "dbt_project.yml").write_text(json.dumps(project), encoding="utf-8")
    (tmp_path / "models").mkdir()
    words = [str(dbt), "--no-send-anonymous-usage-stats", "debug", "--profiles-dir", str(tmp_path)]
    ended = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "All checks passed!" in ended.stdout
