from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from penstock import tls
from penstock.errors import ConfigError
from penstock.settings import Settings


def issued(directory: Path) -> dict[str, Path]:
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1", "localhost")
    paths = {name: directory / f"{name}.pem" for name in ("tls_ca", "tls_cert", "tls_key")}
    authority.cert_pem.write_to_path(str(paths["tls_ca"]))
    paths["tls_cert"].write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    made.private_key_pem.write_to_path(str(paths["tls_key"]))
    return paths


def test_without_a_certificate_there_is_no_tls() -> None:
    assert tls.server(Settings()) is None and tls.flight_server(Settings()) == {}


def test_contexts_check_who_answers_and_speak_nothing_old(tmp_path: Path) -> None:
    paths = issued(tmp_path)
    settings = Settings(**paths)  # type: ignore[arg-type]
    here, there = tls.server(settings), tls.client(paths["tls_ca"])
    assert here is not None and here.minimum_version == there.minimum_version == ssl.TLSVersion.TLSv1_2
    assert there.verify_mode is ssl.CERT_REQUIRED and there.check_hostname
    assert tls.flight_server(settings)["tls_certificates"][0][0].startswith(b"-----BEGIN CERTIFICATE")
    assert tls.flight_client("grpc+tls://127.0.0.1:1", paths["tls_ca"]) == {"tls_root_certs": paths["tls_ca"].read_bytes()}
    assert tls.flight_client("grpc://127.0.0.1:1", paths["tls_ca"]) == {}


def test_faults_are_those_of_the_configuration(tmp_path: Path) -> None:
    paths, others = issued(tmp_path), tmp_path / "other"
    others.mkdir()
    with pytest.raises(ConfigError, match="PENSTOCK_TLS_CERT"):
        tls.server(Settings(tls_cert=paths["tls_cert"], tls_key=issued(others)["tls_key"]))
    with pytest.raises(ConfigError, match="nothing.pem"):
        tls.client(tmp_path / "nothing.pem")
    with pytest.raises(ConfigError, match="certificate and its key"):
        Settings.load(tls_cert=paths["tls_cert"])
