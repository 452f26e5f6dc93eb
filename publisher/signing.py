"""Ed25519 signatures over the canonical bytes of a manifest (FORMAT.md, section 5)."""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from publisher.errors import KeyFileError, Reason, VersionError

_RAW = (serialization.Encoding.Raw, serialization.PublicFormat.Raw)


@dataclass(frozen=True, kw_only=True, slots=True)
class Signature:
    """An Ed25519 signature, base64, and the key that made it."""

    key: str
    value: str


class Signer:
    """Signs with one private key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.verifier = Verifier(key.public_key())

    @classmethod
    def load(cls, path: str) -> "Signer":
        """Read an unencrypted PKCS#8 PEM file."""
        try:
            key = serialization.load_pem_private_key(_read(path), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise KeyFileError(f"{path} is not an unencrypted Ed25519 private key in PEM: {error}") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise KeyFileError(f"{path} holds a {type(key).__name__}, need Ed25519: openssl genpkey -algorithm ed25519")
        return cls(key)

    def sign(self, payload: bytes) -> Signature:
        """Sign the payload."""
        return Signature(key=self.verifier.key_id, value=base64.b64encode(self._key.sign(payload)).decode())


class Verifier:
    """Verifies against one public key."""

    def __init__(self, key: Ed25519PublicKey) -> None:
        self._key = key
        self.key_id = hashlib.sha256(key.public_bytes(*_RAW)).hexdigest()[:16]

    @classmethod
    def load(cls, path: str) -> "Verifier":
        """Read a SubjectPublicKeyInfo PEM file."""
        try:
            key = serialization.load_pem_public_key(_read(path))
        except (ValueError, UnsupportedAlgorithm) as error:
            raise KeyFileError(f"{path} is not an Ed25519 public key in PEM: {error}") from error
        if not isinstance(key, Ed25519PublicKey):
            raise KeyFileError(f"{path} holds a {type(key).__name__}, need Ed25519: openssl pkey -pubout")
        return cls(key)

    def verify(self, payload: bytes, signature: Signature | None, what: str) -> None:
        """Refuse a payload that this key did not sign."""
        if signature is None:
            raise VersionError(Reason.UNSIGNED, f"{what} is not signed, and key {self.key_id} is required")
        if signature.key != self.key_id:
            raise VersionError(Reason.FOREIGN, f"{what} is signed by key {signature.key}, expected {self.key_id}")
        try:
            self._key.verify(base64.b64decode(signature.value, validate=True), payload)
        except (InvalidSignature, binascii.Error):
            raise VersionError(Reason.FOREIGN, f"{what} does not match its signature by key {signature.key}") from None


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise KeyFileError(f"cannot read the key file {path}: {error.strerror}") from error
