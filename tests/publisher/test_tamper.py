"""Whatever is altered, cut, exchanged or unsigned is refused by name before it is used."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from publisher.codec import encode_pointer, encode_version
from publisher.errors import Reason, VersionError
from publisher.fields import canonical
from publisher.manifest import POINTER
from publisher.rows import ServingRows, decode_rows, encode_rows
from publisher.signing import Signer
from publisher.versions import Table, read_blob, read_current, read_pointer, read_version


@pytest.fixture
def signer() -> Signer:
    return Signer(Ed25519PrivateKey.generate())


@pytest.fixture
def signed(bench, signer):
    """Three signed versions with two deltas."""
    bench.trainer.base()
    follower = bench.publish(signer=signer)
    for _ in range(2):
        bench.trainer.commit({"user": [1, 7]})
        follower.step()
    return bench


def overwrite(bench, path: str, payload: bytes) -> None:
    bench.store.compare_and_swap(path, bench.store.get(path), payload)


def refusal(action) -> Reason:
    with pytest.raises(VersionError) as caught:
        action()
    return caught.value.reason


def test_signed_version_is_read_with_its_key(signed, signer):
    assert read_current(signed.store, verifier=signer.verifier).version == 3


@pytest.mark.parametrize("place", ["base", "delta", "dense"])
def test_every_flipped_bit_of_a_file_is_refused(signed, place):
    version = signed.current()
    blob = {"base": version.base.blobs[0], "delta": version.deltas[0].blobs[0], "dense": version.dense}[place]
    payload = bytearray(signed.store.get(blob.path))
    for position in range(0, len(payload), max(len(payload) // 50, 1)):
        payload[position] ^= 1
        overwrite(signed, blob.path, bytes(payload))
        assert refusal(lambda: read_blob(signed.store, blob)) is Reason.CORRUPT
        payload[position] ^= 1


@pytest.mark.parametrize("place", ["base", "delta", "dense"])
def test_file_that_is_cut_or_longer_or_gone_is_refused(signed, place):
    version = signed.current()
    blob = {"base": version.base.blobs[0], "delta": version.deltas[0].blobs[0], "dense": version.dense}[place]
    payload = signed.store.get(blob.path)
    for changed in (payload[:-1], payload[: len(payload) // 2], b"", payload + b"x"):
        overwrite(signed, blob.path, changed)
        assert refusal(lambda: read_blob(signed.store, blob)) is Reason.TRUNCATED
    signed.store.delete(blob.path)
    assert refusal(lambda: read_blob(signed.store, blob)) is Reason.MISSING


def test_every_flipped_bit_of_a_manifest_is_refused(signed, signer):
    path = signed.current().path
    payload = bytearray(signed.store.get(path))
    for position in range(0, len(payload), 7):
        payload[position] ^= 1
        overwrite(signed, path, bytes(payload))
        refusal(lambda: read_version(signed.store, 3, verifier=signer.verifier))
        refusal(lambda: read_current(signed.store))
        payload[position] ^= 1


def test_version_of_a_foreign_key_is_refused_even_if_the_pointer_names_it(signed, signer):
    version = signed.current()
    payload = encode_version(replace(version, step=99), Signer(Ed25519PrivateKey.generate()))
    overwrite(signed, version.path, payload)
    pointer = replace(read_pointer(signed.store), digest=hashlib.sha256(payload).hexdigest())
    overwrite(signed, POINTER, encode_pointer(pointer, signer))
    assert read_current(signed.store).step == 99
    assert refusal(lambda: read_current(signed.store, verifier=signer.verifier)) is Reason.FOREIGN


def test_unsigned_version_is_refused_where_a_key_is_configured(bench, signer):
    bench.trainer.base()
    bench.publish()
    assert refusal(lambda: read_current(bench.store, verifier=signer.verifier)) is Reason.UNSIGNED


@pytest.mark.parametrize("field", ["version", "digest", "generation", "swapped_ms"])
def test_pointer_that_was_changed_after_it_was_signed_is_refused(signed, signer, field):
    value = json.loads(signed.store.get(POINTER))
    value[field] = "0" * 64 if field == "digest" else 2
    overwrite(signed, POINTER, canonical(value))
    assert refusal(lambda: read_pointer(signed.store, verifier=signer.verifier)) is Reason.FOREIGN


@pytest.mark.parametrize("by", ["nobody", "a foreign key", "an older program"])
def test_pointer_of_anybody_else_is_refused_and_written_anew(signed, signer, by):
    forged = replace(read_pointer(signed.store), version=99, generation=70)
    payload = encode_pointer(forged, Signer(Ed25519PrivateKey.generate()) if by == "a foreign key" else None)
    if by == "an older program":
        payload = canonical({key: value for key, value in json.loads(payload).items() if key != "signature"})
    overwrite(signed, POINTER, payload)
    reason = Reason.FOREIGN if by == "a foreign key" else Reason.UNSIGNED
    assert refusal(lambda: read_pointer(signed.store, verifier=signer.verifier)) is reason
    signed.trainer.commit({"user": [2]})
    signed.publish(signer=signer)
    mended = read_pointer(signed.store, verifier=signer.verifier)
    assert mended.version == 4 and mended.generation > forged.generation


def test_manifest_under_another_name_is_refused(signed):
    overwrite(signed, signed.current().path, signed.store.get(read_version(signed.store, 2).path))
    assert refusal(lambda: read_version(signed.store, 3)) is Reason.FOREIGN


def test_pointer_to_another_manifest_than_it_names_is_refused(signed):
    pointer = replace(read_pointer(signed.store), digest="0" * 64)
    overwrite(signed, POINTER, encode_pointer(pointer))
    assert refusal(lambda: read_current(signed.store)) is Reason.CORRUPT


def test_manifest_that_left_out_a_delta_is_refused(signed):
    version = signed.current()
    value = json.loads(encode_version(version, None))
    del value["deltas"][0]
    overwrite(signed, version.path, canonical(value))
    assert refusal(lambda: read_version(signed.store, 3)) is Reason.BROKEN_CHAIN


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"format":1}', b'{"format":2}', b"[" * 100_000]
)
def test_garbage_in_place_of_a_manifest_is_refused(signed, payload):
    overwrite(signed, signed.current().path, payload)
    refusal(lambda: read_version(signed.store, 3))
    overwrite(signed, POINTER, payload)
    refusal(lambda: read_pointer(signed.store))


def test_publisher_does_not_extend_a_version_it_cannot_verify(signed, signer):
    version = signed.current()
    overwrite(signed, version.path, encode_version(replace(version, series="evil"), None))
    signed.trainer.commit({"user": [2]})
    signed.publish(signer=signer)
    fresh = read_current(signed.store, verifier=signer.verifier)
    assert fresh.version == 4 and fresh.base.seq == 4 and fresh.series != "evil"
    assert signed.same(signed.held(fresh), signed.trainer.rows)


def test_publisher_refuses_a_log_from_another_model(bench):
    bench.trainer.base()
    bench.publish()
    from dataclasses import fields

    version = bench.current()
    foreign = replace(version, commit="0" * 64)
    assert {field.name for field in fields(version)} >= {"commit"}
    overwrite(bench, version.path, encode_version(foreign, None))
    bench.trainer.commit({"user": [2]})
    bench.publish()
    assert bench.current().base.seq == 2


TABLES = {"user": Table(name="user", kind="zch", dim=2)}


def rows(table: str = "user", ids=(1, 2), deleted=()) -> bytes:
    part = ServingRows(
        table=table,
        ids=np.array(ids, np.int64),
        rows=np.zeros((len(ids), 8), np.uint8),
        deleted=np.array(deleted, np.int64),
    )
    return b"".join(encode_rows([part])[0])


def test_rows_of_an_unknown_table_are_refused():
    assert refusal(lambda: list(decode_rows(rows("intruder"), "x", TABLES))) is Reason.CONTRACT


@pytest.mark.parametrize("ids", [(2, 1), (1, 1)])
def test_rows_out_of_order_are_refused(ids):
    assert refusal(lambda: list(decode_rows(rows(ids=ids), "x", TABLES))) is Reason.CORRUPT


def test_deletion_and_row_of_one_id_are_refused():
    assert refusal(lambda: list(decode_rows(rows(ids=(1, 2), deleted=(2,)), "x", TABLES))) is Reason.CORRUPT


@pytest.mark.parametrize("names", [["user", "item", "user"], ["user", None, "item"]])
def test_table_in_two_places_or_without_a_name_is_refused(names):
    sink = pa.BufferOutputStream()
    columns = {"table": pa.array(names), "id": [1, 1, 1], "row": pa.array([b"12345678"] * 3, pa.binary(8))}
    pq.write_table(pa.table(columns), sink)
    tables = {**TABLES, "item": Table(name="item", kind="zch", dim=2)}
    assert refusal(lambda: list(decode_rows(sink.getvalue().to_pybytes(), "x", tables))) is Reason.CORRUPT


@pytest.mark.parametrize("columns", [{"a": [1]}, {"table": ["user"], "id": [1], "row": [1]}])
def test_parquet_of_another_shape_is_refused(columns):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    payload = sink.getvalue().to_pybytes()
    assert refusal(lambda: list(decode_rows(payload, "x", TABLES))) is Reason.CORRUPT


def test_bytes_that_are_no_parquet_are_refused():
    assert refusal(lambda: list(decode_rows(b"PAR1xxxxPAR1", "x", TABLES))) is Reason.CORRUPT
