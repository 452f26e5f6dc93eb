"""Key files as `openssl` writes them, and what is said about those that cannot be used."""

import subprocess
from pathlib import Path

import pytest

from publisher.errors import KeyFileError, Reason, VersionError
from publisher.signing import Signature, Signer, Verifier


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("keys")
    private, public = str(folder / "private.pem"), str(folder / "public.pem")
    openssl("genpkey", "-algorithm", "ed25519", "-out", private)
    openssl("pkey", "-in", private, "-pubout", "-out", public)
    return private, public


def test_what_one_key_file_signs_the_other_verifies(keys):
    signer, verifier = Signer.load(keys[0]), Verifier.load(keys[1])
    signature = signer.sign(b"payload")
    verifier.verify(b"payload", signature, "it")
    with pytest.raises(VersionError, match="it does not match its signature"):
        verifier.verify(b"payloae", signature, "it")


@pytest.mark.parametrize("value", ["", "!", "AAAA", "A" * 88])
def test_signature_that_is_garbage_is_foreign(keys, value):
    verifier = Verifier.load(keys[1])
    with pytest.raises(VersionError) as refusal:
        verifier.verify(b"payload", Signature(key=verifier.key_id, value=value), "it")
    assert refusal.value.reason is Reason.FOREIGN


def test_key_files_that_cannot_be_used_are_explained(keys, tmp_path: Path):
    rsa = str(tmp_path / "rsa.pem")
    openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", rsa)
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("no key")
    for load, path, message in [
        (Signer.load, str(tmp_path / "absent.pem"), "cannot read the key file"),
        (Signer.load, str(garbage), "not an unencrypted Ed25519 private key"),
        (Signer.load, keys[1], "not an unencrypted Ed25519 private key"),
        (Signer.load, rsa, "need Ed25519: openssl genpkey"),
        (Verifier.load, str(garbage), "not an Ed25519 public key"),
        (Verifier.load, keys[0], "not an Ed25519 public key"),
    ]:
        with pytest.raises(KeyFileError, match=message):
            load(path)
