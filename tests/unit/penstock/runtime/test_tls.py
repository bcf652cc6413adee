from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from penstock.config.settings import Settings
from penstock.errors import ConfigError
from penstock.runtime import tls
from tests.certificates import issued


def test_without_a_certificate_there_is_no_tls() -> None:
    assert tls.server(Settings()) is None and tls.flight_server(Settings()) == {}


def test_contexts_check_who_answers_and_speak_nothing_old(tmp_path: Path) -> None:
    made = issued(tmp_path)
    settings = Settings(tls_ca=made.ca, tls_cert=made.cert, tls_key=made.key)
    here = tls.server(settings)
    there = tls.client(made.ca)
    assert (
        here is not None and here.minimum_version == there.minimum_version == ssl.TLSVersion.TLSv1_2
    )
    assert there.verify_mode is ssl.CERT_REQUIRED and there.check_hostname
    assert tls.flight_server(settings)["tls_certificates"][0][0].startswith(
        b"-----BEGIN CERTIFICATE"
    )
    assert tls.flight_client("grpc+tls://127.0.0.1:1", made.ca) == {
        "tls_root_certs": made.ca.read_bytes()
    }
    assert tls.flight_client("grpc://127.0.0.1:1", made.ca) == {}


def test_faults_are_those_of_the_configuration(tmp_path: Path) -> None:
    made = issued(tmp_path)
    other = issued(tmp_path / "other")
    with pytest.raises(ConfigError, match="PENSTOCK_TLS_CERT"):
        tls.server(Settings(tls_cert=made.cert, tls_key=other.key))
    with pytest.raises(ConfigError, match="nothing.pem"):
        tls.client(tmp_path / "nothing.pem")
    with pytest.raises(ConfigError, match="certificate and its key"):
        Settings.load(tls_cert=made.cert)
