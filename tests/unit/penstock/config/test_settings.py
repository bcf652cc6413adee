from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import pytest
import redis
from pydantic import SecretStr

from penstock.config.settings import Settings
from penstock.errors import ConfigError


class AtticSettings(Settings):
    service: ClassVar[str] = "attic"

    key: SecretStr | None = None
    boxes: int = 3
    tags: list[str] = []


def test_service_variable_wins_over_shared_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_LOG_LEVEL", "ERROR")
    monkeypatch.setenv("PENSTOCK_ATTIC_LOG_LEVEL", "DEBUG")
    monkeypatch.setenv("PENSTOCK_ATTIC_TAGS", '["a", "b"]')
    loaded = AtticSettings.load(boxes=4)
    assert (loaded.log_level, loaded.tags, loaded.boxes) == ("DEBUG", ["a", "b"], 4)


def test_all_faults_come_at_once_and_hold_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_ATTIC_BOXES", "many")
    monkeypatch.setenv("PENSTOCK_ATTIC_BOXS", "1")
    monkeypatch.setenv("PENSTOCK_ATTIC_PORT", "70000")
    monkeypatch.setenv("PENSTOCK_TIMEZONE", "Nowhere/Land")
    monkeypatch.setenv("PENSTOCK_ATTIC_KEY", "hush")
    with pytest.raises(ConfigError) as wrong:
        AtticSettings.load()
    names = [line.partition(":")[0] for line in wrong.value.detail.splitlines()]
    assert sorted(names) == [
        "PENSTOCK_ATTIC_BOXES",
        "PENSTOCK_ATTIC_BOXS",
        "PENSTOCK_ATTIC_PORT",
        "PENSTOCK_TIMEZONE",
    ]
    assert "hush" not in str(wrong.value)


def test_secret_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("hush\n")
    monkeypatch.setenv("PENSTOCK_ATTIC_KEY_FILE", str(tmp_path / "key"))
    loaded = AtticSettings.load()
    assert loaded.key is not None and loaded.key.get_secret_value() == "hush"
    assert "hush" not in str(loaded.printable()) and "hush" not in repr(loaded)
    assert loaded.printable()["PENSTOCK_ATTIC_KEY"] == "**********"


def test_unreadable_secret_file_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PENSTOCK_PASSWORD_FILE", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="PENSTOCK_PASSWORD_FILE: No such file"):
        AtticSettings.load()


def test_directories_follow_the_data_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PENSTOCK_DATA_DIR", str(tmp_path))
    loaded = AtticSettings.load(segments_dir="s3://bucket/segments")
    assert (loaded.state_dir, loaded.segments_dir) == (
        str(tmp_path / "state"),
        "s3://bucket/segments",
    )


def test_password_generated_by_up_is_found(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "root.password").write_text("made\n")
    assert AtticSettings.load(data_dir=tmp_path).root_password == "made"
    assert AtticSettings.load(data_dir=tmp_path, password="own").root_password == "own"
    with pytest.raises(ConfigError, match="penstock up"):
        _ = AtticSettings.load(data_dir=tmp_path / "other").root_password


@pytest.mark.parametrize(
    ("url", "password", "dsn"),
    [
        ("redis://localhost:1/0", None, "redis://localhost:1/0"),
        ("redis://localhost:1/0", "a b/c", "redis://:a%20b%2Fc@localhost:1/0"),
        ("redis://:old@localhost:1/0", "new", "redis://:new@localhost:1/0"),
    ],
)
def test_redis_dsn(url: str, password: str | None, dsn: str) -> None:
    assert AtticSettings.load(redis_url=url, redis_password=password).redis_dsn == dsn


def test_print_config_and_wrong_config_end_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as printed:
        AtticSettings.from_command_line(["--print-config"])
    assert printed.value.code == 0 and '"PENSTOCK_ATTIC_BOXES": 3' in capsys.readouterr().out
    monkeypatch.setenv("PENSTOCK_ATTIC_BOXES", "many")
    with pytest.raises(SystemExit) as refused:
        AtticSettings.from_command_line([])
    assert refused.value.code == 78 and "PENSTOCK_ATTIC_BOXES" in capsys.readouterr().err


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        AtticSettings.load().boxes = 5  # type: ignore[misc]


def test_names_that_tdengine_gives_are_understood_after_our_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("checkpointBackupDir", "/mnt/theirs")
    assert Settings.load().checkpoint_backup_dir == "/mnt/theirs"
    monkeypatch.setenv("PENSTOCK_CHECKPOINT_BACKUP_DIR", "/mnt/ours")
    assert Settings.load().checkpoint_backup_dir == "/mnt/ours"


def test_brokers_with_a_password_are_told_to_every_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text('a "b" \\\n')
    monkeypatch.setenv("PENSTOCK_KAFKA_SECURITY", "SASL_SSL")
    monkeypatch.setenv("PENSTOCK_KAFKA_USER", "penstock")
    monkeypatch.setenv("PENSTOCK_KAFKA_PASSWORD_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("PENSTOCK_KAFKA_CA", "/ca.pem")
    loaded = Settings.load()
    assert loaded.kafka_options == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "penstock",
        "sasl.password": 'a "b" \\',
        "ssl.ca.location": "/ca.pem",
    }
    java = loaded.kafka_java_options
    assert java["sasl.jaas.config"].endswith(
        r'ScramLoginModule required username="penstock" password="a \"b\" \\";'
    )
    assert (java["ssl.truststore.type"], java["ssl.truststore.location"]) == ("PEM", "/ca.pem")
    assert 'a "b"' not in json.dumps(loaded.printable()) + repr(loaded)
    assert (
        Settings.load(kafka_security="PLAINTEXT").kafka_options
        == Settings.load(kafka_security="PLAINTEXT").kafka_java_options
        == {}
    )


def test_half_of_a_login_is_a_fault() -> None:
    with pytest.raises(ConfigError, match="PENSTOCK_KAFKA_USER"):
        Settings.load(kafka_security="SASL_SSL", kafka_password="x")


def test_redis_over_tls_as_a_user(tmp_path: Path) -> None:
    loaded = Settings(
        redis_url="rediss://r:1/0",
        redis_user="a b",
        redis_password="p@ss",
        redis_ca=tmp_path / "ca.pem",
    )  # type: ignore[arg-type]
    assert (
        loaded.redis_dsn
        == f"rediss://a%20b:p%40ss@r:1/0?ssl_ca_certs={tmp_path}/ca.pem&ssl_cert_reqs=required"
    )
    client = redis.Redis.from_url(loaded.redis_dsn)
    assert client.connection_pool.connection_kwargs["ssl_ca_certs"] == str(tmp_path / "ca.pem")
