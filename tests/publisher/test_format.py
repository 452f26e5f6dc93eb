"""Every JSON example of publisher/FORMAT.md is what the code reads and writes."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import publisher
from publisher.codec import decode_pointer, decode_version, encode_pointer, encode_version
from publisher.errors import Reason, VersionError
from publisher.fields import canonical
from publisher.signing import Signer

DOCUMENT = (Path(publisher.__file__).parent / "FORMAT.md").read_text()
EXAMPLES = dict(re.findall(r"```json (\w+)\n(.*?)```", DOCUMENT, re.DOTALL))


def example(name: str) -> bytes:
    return canonical(json.loads(EXAMPLES[name]))


def test_manifest_example_round_trips():
    version = decode_version(example("manifest"), "example", None)
    assert version.version == 42
    assert encode_version(version, None) == example("manifest")


def test_pointer_example_round_trips():
    assert encode_pointer(decode_pointer(example("pointer"), "example")) == example("pointer")


def test_every_example_is_known_to_a_test():
    assert set(EXAMPLES) == {"manifest", "pointer", "pin", "refused", "signature"}


def test_signed_manifest_is_read_with_its_key_only():
    mine, other = (Signer(Ed25519PrivateKey.generate()) for _ in range(2))
    version = decode_version(example("manifest"), "example", None)
    payload = encode_version(version, mine)
    assert decode_version(payload, "m", mine.verifier) == version
    with pytest.raises(VersionError, match="is signed by key") as foreign:
        decode_version(payload, "m", other.verifier)
    assert foreign.value.reason is Reason.FOREIGN


def test_unsigned_manifest_is_refused_where_a_key_is_configured():
    with pytest.raises(VersionError) as refusal:
        decode_version(example("manifest"), "m", Signer(Ed25519PrivateKey.generate()).verifier)
    assert refusal.value.reason is Reason.UNSIGNED


def test_signature_covers_every_field():
    signer = Signer(Ed25519PrivateKey.generate())
    signed = json.loads(encode_version(decode_version(example("manifest"), "m", None), signer))
    for name in set(signed) - {"signature", "format"}:
        changed = {**signed, name: 1 if name in ("version", "previous") else "x"}
        with pytest.raises(VersionError) as refusal:
            decode_version(canonical(changed), "m", signer.verifier)
        assert refusal.value.reason is Reason.FOREIGN


@pytest.mark.parametrize("name", sorted(json.loads(EXAMPLES["manifest"])))
def test_manifest_without_a_field_is_refused_by_name(name):
    value = json.loads(EXAMPLES["manifest"])
    del value[name]
    if name == "signature":
        return
    if name in ("assets", "described"):
        assert not getattr(decode_version(canonical(value), "m", None), name)
        return
    with pytest.raises(VersionError, match=name):
        decode_version(canonical(value), "m", None)


def test_manifest_of_a_newer_format_says_upgrade():
    value = {**json.loads(EXAMPLES["manifest"]), "format": 2}
    with pytest.raises(VersionError, match="upgrade headrace") as refusal:
        decode_version(canonical(value), "m", None)
    assert refusal.value.reason is Reason.FORMAT


def test_manifest_that_is_not_canonical_is_refused():
    with pytest.raises(VersionError, match="not canonical"):
        decode_version(example("manifest").replace(b":", b": ", 1), "m", None)


@pytest.mark.parametrize("broken", ["hole", "short", "no_base", "reordered"])
def test_deltas_that_do_not_join_are_refused(broken):
    version = decode_version(example("manifest"), "m", None)
    first, second = version.deltas
    changed = {
        "hole": replace(version, deltas=(replace(first, seq=40, after=39), second)),
        "short": replace(version, deltas=(first,)),
        "no_base": replace(version, base=replace(version.base, seq=39)),
        "reordered": replace(version, deltas=(second, first)),
    }[broken]
    with pytest.raises(VersionError) as refusal:
        decode_version(encode_version(changed, None), "m", None)
    assert refusal.value.reason is Reason.BROKEN_CHAIN


def test_plan_goes_on_from_what_is_loaded():
    version = decode_version(example("manifest"), "m", None)
    at_41 = replace(version, version=41, deltas=version.deltas[:1])
    assert version.plan(None).base == version.base
    assert [delta.seq for delta in version.plan(None).deltas] == [41, 42]
    assert version.plan(at_41).base is None
    assert [delta.seq for delta in version.plan(at_41).deltas] == [42]
    assert version.plan(version).deltas == () and version.plan(version).base is None


def test_plan_starts_over_after_a_rollback_or_in_another_series():
    version = decode_version(example("manifest"), "m", None)
    assert version.plan(replace(version, version=50)).base == version.base
    assert version.plan(replace(version, version=41, series="other")).base == version.base
    assert version.plan(replace(version, version=3)).base == version.base
