"""Secrets come from files and stay out of messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from protos import stream_pb2
from stream.errors import SourceError
from stream.kafka_options import KafkaOptions
from stream.security import SecurityOptions


def _file(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_security_reads_secrets_from_files_without_line_ends(tmp_path: Path) -> None:
    message = stream_pb2.KafkaSecurity(
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        username_file=_file(tmp_path / "user", "reader\n"),
        password_file=_file(tmp_path / "password", " sesame \r\n"),
        ca_file=_file(tmp_path / "ca.pem", "ca"),
        certificate_file=_file(tmp_path / "cert.pem", "cert"),
        key_file=_file(tmp_path / "key.pem", "key"),
        key_password_file=_file(tmp_path / "key-password", "open"),
    )
    assert SecurityOptions.from_proto(message).settings() == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "reader",
        "sasl.password": " sesame ",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.certificate.location": str(tmp_path / "cert.pem"),
        "ssl.key.location": str(tmp_path / "key.pem"),
        "ssl.key.password": "open",
    }


def test_security_never_shows_a_secret(tmp_path: Path) -> None:
    password = _file(tmp_path / "password", "sesame")
    options = SecurityOptions(protocol="SASL_SSL", mechanism="PLAIN", username_file=password, password_file=password)
    assert "sesame" not in repr(options)
    assert "sesame" not in repr(KafkaOptions(brokers="b", topics=("t",), security=options))
    (tmp_path / "password").write_bytes(b"sesame\xff")
    with pytest.raises(SourceError, match=r"username_file .*password is no text in UTF-8") as caught:
        options.settings()
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "TLS"}, "use one of PLAINTEXT, SSL"),
        ({"protocol": "SASL_SSL"}, "does not go with sasl_mechanism None"),
        ({"mechanism": "PLAIN"}, "does not go with sasl_mechanism PLAIN"),
        ({"protocol": "SASL_SSL", "mechanism": "GSSAPI"}, "'GSSAPI' is unknown"),
        ({"protocol": "SASL_SSL", "mechanism": "PLAIN"}, "needs username_file and password_file"),
    ],
)
def test_security_refuses_what_does_not_fit(options: dict[str, str], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        SecurityOptions(**options)


@pytest.mark.parametrize(("text", "message"), [(None, "cannot be read: No such file"), ("\n", "is empty")])
def test_security_names_the_file_that_is_wrong(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "password"
    if text is not None:
        path.write_text(text)
    user = _file(tmp_path / "user", "reader")
    options = SecurityOptions(protocol="SASL_PLAINTEXT", mechanism="PLAIN", username_file=user, password_file=str(path))
    with pytest.raises(SourceError, match=f"password_file {path} {message}"):
        options.settings()
    with pytest.raises(SourceError, match="ca_file /nowhere cannot be read: No such file"):
        SecurityOptions(protocol="SSL", ca_file="/nowhere").settings()
