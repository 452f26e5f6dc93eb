"""Following the pointer: forward, back, over bad versions; what is served equals what was published."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpointer.encoding import Encoding
from checkpointer.errors import StoreError
from checkpointer.memory_store import MemoryStore
from publisher.codec import encode_version
from publisher.export.host import this_host
from publisher.manifest import Blob
from publisher.replica.follower import Follower
from publisher.replica.history import History
from publisher.replica.metrics import ReplicaMetrics
from publisher.replica.model import Side
from publisher.replica.seen import Seen
from publisher.replica.switch import Switch
from publisher.signing import Signer, Verifier
from tests.publisher.replica.conftest import TABLES, Change, VersionWriter


def fail(*_: object) -> int:
    raise MemoryError


class Replica:
    """A follower with a clock of its own."""

    def __init__(self, store: MemoryStore, verifier: Verifier | None = None, seen: Seen | None = None) -> None:
        self.now = 0.0
        self.metrics = ReplicaMetrics()
        self.switch: Switch[Side] = Switch()
        self.follower = Follower(
            store,
            self.switch,
            self.metrics,
            host=this_host(),
            verifier=verifier,
            clock=lambda: self.now,
            drain_s=0.05,
            seen=seen,
        )

    def figure(self, name: str, **labels: str) -> float:
        value = self.metrics.registry.get_sample_value(f"headrace_replica_{name}", labels)
        return 0.0 if value is None else value

    @property
    def served(self) -> Side:
        side = self.switch.current
        assert side is not None
        return side

    def rows(self) -> dict[str, dict[int, float]]:
        return {
            table: {i: float(np.frombuffer(row, np.float32)[0]) for i, row in self.served.tables.items(table).items()}
            for table in TABLES
        }


@pytest.fixture
def replica(store: MemoryStore) -> Replica:
    return Replica(store)


def test_follower_waits_for_the_first_version(replica: Replica, writer: VersionWriter) -> None:
    assert not replica.follower.poll()
    assert replica.switch.current is None
    writer.publish(3, {"user_id_emb": Change(put={1: 3.0})})
    assert replica.follower.poll()
    assert replica.served.number == 3
    assert replica.rows() == writer.rows
    assert not replica.follower.poll()


def test_follower_goes_forward_by_deltas_alone(replica: Replica, writer: VersionWriter) -> None:
    writer.publish(1, {"user_id_emb": Change(put={1: 1.0, 2: 1.0}), "item_id_emb": Change(put={7: 1.0})})
    replica.follower.poll()
    writer.publish(2, {"user_id_emb": Change(put={2: 2.0, 3: 2.0}, delete=[1])})
    replica.follower.poll()
    writer.publish(3, {"item_id_emb": Change(put={8: 3.0}, reset=True), "tags_emb": Change(put={4: 3.0})})
    replica.follower.poll()
    assert replica.rows() == writer.rows
    assert replica.figure("full_loads_total") == 1
    assert replica.figure("swaps_total") == 3


def test_follower_catches_up_over_several_versions_at_once(replica: Replica, writer: VersionWriter) -> None:
    writer.publish(1)
    replica.follower.poll()
    for number in range(2, 9):
        writer.publish(number, {"user_id_emb": Change(put={number: float(number), 1000: float(number)})})
    replica.follower.poll()
    assert (replica.served.number, replica.rows()) == (8, writer.rows)
    assert replica.figure("full_loads_total") == 1


def test_follower_goes_back_and_stays_until_the_pointer_moves(replica: Replica, writer: VersionWriter) -> None:
    writer.publish(1, {"user_id_emb": Change(put={1: 1.0})})
    replica.follower.poll()
    before = {table: dict(rows) for table, rows in writer.rows.items()}
    writer.publish(2, {"user_id_emb": Change(put={1: 2.0, 2: 2.0})})
    replica.follower.poll()
    writer.point(1)
    assert replica.follower.poll()
    assert (replica.served.number, replica.rows()) == (1, before)
    writer.write(3, {"user_id_emb": Change(put={9: 9.0})})
    for _ in range(5):
        replica.now += 60.0
        assert not replica.follower.poll()
    assert replica.served.number == 1
    assert replica.figure("rollbacks_total") == 1
    assert replica.figure("full_loads_total") == 1
    writer.point(3)
    replica.follower.poll()
    assert (replica.served.number, replica.rows()) == (3, writer.rows)


def test_follower_takes_a_new_base(replica: Replica, writer: VersionWriter) -> None:
    writer.publish(1, {"user_id_emb": Change(put={1: 1.0, 2: 1.0})})
    replica.follower.poll()
    writer.publish(2, {"user_id_emb": Change(put={3: 2.0}, reset=True)}, rebase=True)
    replica.follower.poll()
    writer.publish(3, {"user_id_emb": Change(put={4: 3.0})})
    replica.follower.poll()
    assert (replica.served.number, replica.rows()) == (3, writer.rows)
    assert replica.figure("full_loads_total") == 2


IDS = st.integers(0, 12)


@st.composite
def changes(draw: st.DrawFn) -> dict[str, Change]:
    drawn = {}
    for table in draw(st.lists(st.sampled_from(TABLES[:2]), unique=True)):
        put = draw(st.dictionaries(IDS, st.floats(-4, 4, width=16), max_size=6))
        gone = draw(st.sets(IDS, max_size=4)) - put.keys()
        drawn[table] = Change(put=put, delete=sorted(gone), reset=draw(st.integers(0, 7)) == 0)
    if draw(st.booleans()):
        drawn["tags_emb"] = Change(put=draw(st.dictionaries(st.integers(0, 7), st.floats(-4, 4, width=16), max_size=8)))
    return drawn


@given(st.lists(st.tuples(changes(), st.booleans(), st.integers(0, 9)), min_size=1, max_size=8))
@settings(max_examples=40, deadline=None)
def test_flips_with_deltas_equal_a_load_from_scratch(steps: list[tuple[dict[str, Change], bool, int]]) -> None:
    store = MemoryStore()
    writer, replica = VersionWriter(store), Replica(store)
    for number, (drawn, looks, kind) in enumerate(steps, start=1):
        writer.publish(number, drawn, rebase=kind == 0)
        if looks:
            replica.follower.poll()
            fresh = Replica(store)
            fresh.follower.poll()
            assert replica.rows() == fresh.rows() == writer.rows
            assert replica.served.number == fresh.served.number == number


@given(
    st.lists(st.tuples(changes(), st.integers(0, 9)), min_size=2, max_size=7),
    st.lists(st.integers(0, 6), min_size=2, max_size=12),
)
@settings(max_examples=60, deadline=None)
def test_any_walk_of_the_pointer_serves_the_rows_of_where_it_stands(
    steps: list[tuple[dict[str, Change], int]], walk: list[int]
) -> None:
    store = MemoryStore()
    writer, replica = VersionWriter(store), Replica(store)
    expected = []
    for number, (drawn, kind) in enumerate(steps, start=1):
        writer.write(number, drawn, rebase=kind == 0)
        expected.append({table: dict(rows) for table, rows in writer.rows.items()})
    for at in walk:
        number = at % len(steps) + 1
        writer.point(number)
        replica.follower.poll()
        assert (replica.served.number, replica.rows()) == (number, expected[number - 1])
        assert np.unique(list(replica.served.dense.runner.run([torch.zeros(1, 13)])["number"].numpy())) == [number]


def test_follower_goes_back_past_what_it_remembers(replica: Replica, writer: VersionWriter) -> None:
    replica.follower._history = History(max_bytes=70)
    expected = {}
    for number in range(1, 5):
        writer.publish(number, {"user_id_emb": Change(put={1: float(number), number: 1.0})})
        replica.follower.poll()
        expected[number] = {table: dict(rows) for table, rows in writer.rows.items()}
    writer.point(3)
    replica.follower.poll()
    assert (replica.rows(), replica.figure("full_loads_total")) == (expected[3], 1)
    writer.point(1)
    replica.follower.poll()
    assert (replica.rows(), replica.figure("full_loads_total")) == (expected[1], 2)


def flip_a_bit(payload: bytes) -> bytes:
    return payload[: len(payload) // 2] + bytes([payload[len(payload) // 2] ^ 1]) + payload[len(payload) // 2 + 1 :]


def replace_object(store: MemoryStore, path: str, payload: bytes) -> None:
    store.delete(path)
    store.put_if_absent(path, payload)


def spoiled_delta(writer: VersionWriter, store: MemoryStore) -> str:
    path = writer.write(2, {"user_id_emb": Change(put={1: 9.0})}).deltas[-1].blobs[0].path
    replace_object(store, path, flip_a_bit(store.get(path)))
    return "corrupt"


def cut_dense(writer: VersionWriter, store: MemoryStore) -> str:
    path = writer.write(2).dense.path
    replace_object(store, path, store.get(path)[:-1])
    return "truncated"


def lost_delta(writer: VersionWriter, store: MemoryStore) -> str:
    store.delete(writer.write(2, {"user_id_emb": Change(put={1: 9.0})}).deltas[-1].blobs[0].path)
    return "missing"


def other_contract(writer: VersionWriter, store: MemoryStore) -> str:
    writer.contract = replace(writer.contract, digest="0" * 64)
    writer.write(2)
    return "contract"


def other_features(writer: VersionWriter, store: MemoryStore) -> str:
    writer.contract = replace(writer.contract, features="0" * 64)
    writer.write(2)
    return "contract"


def foreign_weights(writer: VersionWriter, store: MemoryStore) -> str:
    writer.state = {"number": np.zeros(3, np.float32)}
    writer.write(2)
    return "dense"


def weights_that_are_not_finite(writer: VersionWriter, store: MemoryStore) -> str:
    writer.state = {"number": np.array([np.nan], np.float32)}
    writer.write(2, {"user_id_emb": Change(put={1: 9.0})})
    return "corrupt"


def row_out_of_range(writer: VersionWriter, store: MemoryStore) -> str:
    writer.write(2, {"user_id_emb": Change(put={1: 9.0}), "tags_emb": Change(put={8: 1.0})})
    return "contract"


def table_not_listed(writer: VersionWriter, store: MemoryStore) -> str:
    writer.contract = replace(writer.contract, tables=writer.contract.tables[:2])
    writer.write(2)
    return "contract"


def newer_encoding(writer: VersionWriter, store: MemoryStore) -> str:
    manifest = writer.write(2)
    payload = encode_version(replace(manifest, encoding="int2"), None)
    replace_object(store, manifest.path, payload)
    return "format"


BAD = [
    spoiled_delta,
    cut_dense,
    lost_delta,
    other_contract,
    other_features,
    foreign_weights,
    weights_that_are_not_finite,
    row_out_of_range,
    table_not_listed,
    newer_encoding,
]


@pytest.mark.parametrize("bad", BAD)
def test_follower_refuses_a_bad_version_and_serves_on(
    bad: Callable[[VersionWriter, MemoryStore], str],
    replica: Replica,
    writer: VersionWriter,
    store: MemoryStore,
    caplog: pytest.LogCaptureFixture,
) -> None:
    writer.publish(1, {"user_id_emb": Change(put={1: 1.0})})
    replica.follower.poll()
    served = replica.rows()
    keep = writer.contract, writer.state, {table: dict(rows) for table, rows in writer.rows.items()}, writer.manifest
    reason = bad(writer, store)
    writer.point(2)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            assert not replica.follower.poll()
            replica.now += 100.0
    assert (replica.served.number, replica.rows()) == (1, served)
    assert replica.figure("refused_versions_total", reason=reason) == 1
    # Another test may have left a logger of ours more talkative than the root.
    assert len([record for record in caplog.records if record.levelno >= logging.ERROR]) == 1
    assert f"version=2 reason={reason} serving=1" in caplog.text

    writer.contract, writer.state, writer.rows, writer.manifest = keep
    writer.publish(3, {"user_id_emb": Change(put={3: 3.0}), "tags_emb": Change(put={1: 3.0})})
    assert replica.follower.poll()
    assert (replica.served.number, replica.rows()) == (3, writer.rows)


def test_follower_refuses_a_manifest_that_the_pointer_does_not_name(
    replica: Replica, writer: VersionWriter, store: MemoryStore
) -> None:
    writer.publish(1)
    replica.follower.poll()
    manifest = writer.write(2)
    writer.point(2)
    replace_object(store, manifest.path, encode_version(replace(manifest, step=99), None))
    replica.follower.poll()
    assert replica.served.number == 1
    assert replica.figure("refused_versions_total", reason="corrupt") == 1


def test_follower_serves_a_version_once_its_missing_part_is_there(
    replica: Replica, writer: VersionWriter, store: MemoryStore
) -> None:
    manifest = writer.write(1)
    lost = manifest.dense
    payload = store.get(lost.path)
    store.delete(lost.path)
    writer.point(1)
    assert not replica.follower.poll()
    store.put_if_absent(lost.path, payload)
    assert not replica.follower.poll()
    replica.now += 1.0
    assert replica.follower.poll()


@pytest.fixture
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Signer, Signer, Verifier]]:
    folder = tmp_path_factory.mktemp("keys")
    private, foreign = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    public = folder / "public.pem"
    public.write_bytes(
        private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    yield Signer(private), Signer(foreign), Verifier.load(str(public))


def test_follower_with_a_key_serves_only_what_that_key_has_signed(
    store: MemoryStore, writer: VersionWriter, keys: tuple[Signer, Signer, Verifier]
) -> None:
    ours, foreign, verifier = keys
    replica = Replica(store, verifier)
    writer.signer = writer.points_as = ours
    writer.publish(1)
    assert replica.follower.poll()
    for number, (signer, reason) in enumerate([(None, "unsigned"), (foreign, "foreign")], start=2):
        writer.signer = signer
        writer.publish(number)
        assert not replica.follower.poll()
        assert replica.figure("refused_versions_total", reason=reason) == 1
    assert replica.served.number == 1


def test_follower_with_a_key_follows_only_pointers_that_key_has_signed(
    store: MemoryStore, writer: VersionWriter, keys: tuple[Signer, Signer, Verifier]
) -> None:
    ours, foreign, verifier = keys
    replica = Replica(store, verifier)
    writer.signer = writer.points_as = ours
    for number in (1, 2, 3):
        writer.publish(number)
        assert replica.follower.poll()
    for signer, reason in ((None, "unsigned"), (foreign, "foreign")):
        writer.points_as = signer
        writer.point(1)
        assert not replica.follower.poll()
        assert replica.figure("refused_versions_total", reason=reason) == 1
    assert replica.served.number == 3
    writer.points_as = ours
    writer.point(1)
    assert replica.follower.poll() and replica.served.number == 1


def test_step_whose_way_back_was_not_kept_is_not_left_out_of_it(
    replica: Replica, writer: VersionWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2, 3):
        writer.publish(number, {"user_id_emb": Change(put={1: float(number), 10 + number: 9.0})})
        if number == 3:
            # The flip is done by then; what fails is bringing the other side along.
            monkeypatch.setattr("publisher.replica.kernels.exchange", fail)
            with pytest.raises(MemoryError):
                replica.follower.poll()
            monkeypatch.undo()
        else:
            assert replica.follower.poll()
    assert (replica.served.number, replica.rows()) == (3, writer.rows)
    writer.point(1)
    assert replica.follower.poll()
    assert replica.served.number == 1
    assert replica.rows()["user_id_emb"][1] == 1.0
    assert 13 not in replica.rows()["user_id_emb"]


def test_follower_with_a_key_refuses_an_old_pointer_that_was_put_back(
    store: MemoryStore, writer: VersionWriter, keys: tuple[Signer, Signer, Verifier], caplog: pytest.LogCaptureFixture
) -> None:
    ours, _, verifier = keys
    replica = Replica(store, verifier)
    writer.signer = writer.points_as = ours
    writer.publish(1)
    assert replica.follower.poll()
    old = store.get("current.json")
    writer.publish(2)
    assert replica.follower.poll()
    store.compare_and_swap("current.json", store.get("current.json"), old)
    assert not replica.follower.poll()
    assert replica.served.number == 2 and replica.figure("refused_versions_total", reason="replayed") == 1
    assert "the pointer is number 1, and number 2 was seen already" in caplog.text
    unguarded = Replica(store)
    assert unguarded.follower.poll() and unguarded.served.number == 1


class Flaky(MemoryStore):
    """A store that can be out of reach."""

    down = False

    def get(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        if self.down:
            raise StoreError("reading failed: connection refused")
        return super().get(path, offset=offset, length=length)


def test_follower_serves_on_while_storage_is_out_of_reach() -> None:
    store = Flaky()
    writer, replica = VersionWriter(store), Replica(store)
    writer.publish(1)
    replica.follower.poll()
    writer.publish(2)
    store.down = True
    assert not replica.follower.poll()
    assert replica.served.number == 1
    assert replica.figure("storage_errors_total") == 1
    store.down = False
    replica.now += 1.0
    assert replica.follower.poll()
    assert replica.served.number == 2


def test_follower_gives_up_a_copy_that_a_request_will_not_leave(replica: Replica, writer: VersionWriter) -> None:
    writer.publish(1, {"user_id_emb": Change(put={1: 1.0})})
    replica.follower.poll()
    with replica.switch.reading() as held:
        assert held is not None
        before = held.tables.items("user_id_emb")
        for number in (2, 3, 4):
            writer.publish(number, {"user_id_emb": Change(put={1: float(number), number: float(number)})})
            assert replica.follower.poll()
            assert replica.rows() == writer.rows
        assert held.number == 1
        assert held.tables.items("user_id_emb") == before
    assert replica.figure("stuck_readers_total") == 1


def test_follower_falls_back_to_eager_where_no_artefact_fits(
    store: MemoryStore, writer: VersionWriter, caplog: pytest.LogCaptureFixture
) -> None:
    from features import create_features
    from protos.load import parse_config
    from recmodels.registry import create_model
    from recmodels.wrappers import DenseHalf
    from tests.publisher.replica.conftest import CONFIG

    config = parse_config(CONFIG, json=False)
    half = DenseHalf(create_model(config, create_features(config))).eval()
    writer.state = {name: value.numpy() for name, value in half.state_dict().items()}
    writer.artefacts = tuple(replace(artefact, machine="pdp11") for artefact in writer.artefacts)
    replica = Replica(store)
    writer.publish(1)
    with caplog.at_level(logging.WARNING):
        assert replica.follower.poll()
    assert "compiled for pdp11" in caplog.text
    assert replica.served.dense.runner.runtime == "eager"
    assert "probs" in {spec.name for spec in replica.served.outputs}


def test_blob_of_a_foreign_table_is_refused(replica: Replica, writer: VersionWriter, store: MemoryStore) -> None:
    writer.publish(1)
    replica.follower.poll()
    manifest = writer.write(2, {"user_id_emb": Change(put={1: 2.0})})
    blob = manifest.deltas[-1].blobs[0]
    payload = store.get(blob.path).replace(b"user_id_emb", b"user_id_emX")
    forged = Blob.of(blob.path, payload)
    replace_object(store, blob.path, payload)
    delta = replace(manifest.deltas[-1], blobs=(forged,))
    replace_object(store, manifest.path, encode_version(replace(manifest, deltas=(delta,)), None))
    writer.point(2)
    assert not replica.follower.poll()
    assert replica.served.number == 1


@pytest.mark.parametrize("encoding", [Encoding.FP16, Encoding.INT8, Encoding.INT4])
def test_follower_serves_every_encoding(encoding: Encoding) -> None:
    store = MemoryStore()
    writer, replica = VersionWriter(store, encoding=encoding), Replica(store)
    writer.publish(1, {"user_id_emb": Change(put={1: 1.5})})
    replica.follower.poll()
    writer.publish(2, {"user_id_emb": Change(put={1: 2.5, 2: 0.0})})
    assert replica.follower.poll()
    assert replica.served.sizes()["user_id_emb"][0] == 2


def test_follower_that_starts_again_refuses_a_pointer_from_before_its_state_file(
    store: MemoryStore, writer: VersionWriter, keys: tuple[Signer, Signer, Verifier], tmp_path: Path
) -> None:
    ours, _, verifier = keys
    state = tmp_path / "state.json"
    writer.signer = writer.points_as = ours
    writer.publish(1)
    old = store.get("current.json")
    writer.publish(2)
    first = Replica(store, verifier, Seen(state, store.url))
    assert first.follower.poll() and first.served.number == 2
    current = store.get("current.json")
    store.compare_and_swap("current.json", current, old)
    again = Replica(store, verifier, Seen(state, store.url))
    assert not again.follower.poll()
    assert again.switch.current is None and again.figure("refused_versions_total", reason="replayed") == 1
    # Without the file nothing tells that the pointer is old.
    forgetful = Replica(store, verifier)
    assert forgetful.follower.poll() and forgetful.served.number == 1
    # A deliberate way back has a number of its own.
    store.compare_and_swap("current.json", old, current)
    writer.point(1)
    assert again.follower.poll() and again.served.number == 1
