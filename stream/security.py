"""How clients prove who they are: paths of files in the configuration, their contents only in the client's settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from protos import stream_pb2
from stream.errors import SourceError

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

Settings = dict[str, str | int | bool]
"""Settings of librdkafka. They may hold secrets: never log them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SecurityOptions:
    """TLS and SASL by file; the values here are no secrets.

    >>> SecurityOptions().settings()
    {'security.protocol': 'PLAINTEXT'}
    """

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username_file: str | None = None
    password_file: str | None = None
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password_file: str | None = None

    def __post_init__(self) -> None:
        if self.protocol not in _PROTOCOLS:
            raise SourceError(f"security_protocol {self.protocol!r} is unknown: use one of {', '.join(_PROTOCOLS)}")
        if self.protocol.startswith("SASL") != (self.mechanism is not None):
            raise SourceError(f"security_protocol {self.protocol} does not go with sasl_mechanism {self.mechanism}")
        if self.mechanism is None:
            return
        if self.mechanism not in _MECHANISMS:
            raise SourceError(f"sasl_mechanism {self.mechanism!r} is unknown: use one of {', '.join(_MECHANISMS)}")
        if self.username_file is None or self.password_file is None:
            raise SourceError(f"sasl_mechanism {self.mechanism} needs username_file and password_file")

    @classmethod
    def from_proto(cls, message: stream_pb2.KafkaSecurity) -> SecurityOptions:
        """From `stream_config.security`."""
        return cls(
            protocol=message.security_protocol,
            mechanism=message.sasl_mechanism or None,
            username_file=message.username_file or None,
            password_file=message.password_file or None,
            ca_file=message.ca_file or None,
            certificate_file=message.certificate_file or None,
            key_file=message.key_file or None,
            key_password_file=message.key_password_file or None,
        )

    def settings(self) -> Settings:
        """Read the files into settings of librdkafka; raise SourceError where one cannot be read."""
        settings: Settings = {"security.protocol": self.protocol}
        if self.mechanism is not None and self.username_file is not None and self.password_file is not None:
            settings["sasl.mechanism"] = self.mechanism
            settings["sasl.username"] = _secret(self.username_file, "username_file")
            settings["sasl.password"] = _secret(self.password_file, "password_file")
        for name, field, path in (
            ("ssl.ca.location", "ca_file", self.ca_file),
            ("ssl.certificate.location", "certificate_file", self.certificate_file),
            ("ssl.key.location", "key_file", self.key_file),
        ):
            if path is not None:
                _read(path, field)  # librdkafka's own words for it name neither file nor field
                settings[name] = path
        if self.key_password_file is not None:
            settings["ssl.key.password"] = _secret(self.key_password_file, "key_password_file")
        return settings


def _read(path: str, field: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SourceError(f"{field} {path} cannot be read: {error.strerror}") from None


def _secret(path: str, field: str) -> str:
    try:
        text = _read(path, field).decode()
    except UnicodeDecodeError:
        # The cause would quote contents of the file.
        raise SourceError(f"{field} {path} is no text in UTF-8") from None
    if not text.strip("\r\n"):
        raise SourceError(f"{field} {path} is empty")
    return text.strip("\r\n")
