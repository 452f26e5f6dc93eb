"""Maintenance is the same whoever does it: as configured, up to the newest complete version, under one lock."""

from pathlib import Path

import pytest

from checkpointer.bases import list_bases
from checkpointer.chain import list_seqs
from checkpointer.errors import NoLockError
from checkpointer.evidence import published_version
from checkpointer.local_store import LocalStore
from checkpointer.maintenance import maintain_model
from checkpointer.memory_store import MemoryStore
from checkpointer.retention import compact_newest
from checkpointer.store import Store
from protos.pipeline_pb2 import EasyRecConfig

LATE = 1 << 50


def configured(lock_dir: Path) -> EasyRecConfig:
    config = EasyRecConfig()
    checkpoint = config.checkpoint_config
    checkpoint.lock_dir, checkpoint.keep_bases, checkpoint.keep_log_ms = str(lock_dir), 1, 0
    checkpoint.compact_after_commits = 1000
    return config


def publish(store: Store, seq: int, *, complete: bool = True) -> None:
    name = "manifest.json" if complete else "dense.safetensors"
    store.put_if_absent(f"versions/{seq:020d}/{name}", b"{}")


def test_only_complete_versions_are_published(store: Store) -> None:
    assert published_version(store) is None
    for seq in (3, 11):
        publish(store, seq)
    publish(store, 12, complete=False)
    assert published_version(store) == 11


def test_what_is_not_published_stays(kit, tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path / "model"))
    kit.filled(store, 8)
    publish(store, 5)
    config = configured(tmp_path)
    assert maintain_model(store, config, now_ms=LATE, holder="a test").commits == 0
    assert list_seqs(store) == list(range(1, 9)) and list_bases(store) == [8]
    publish(store, 8)
    assert maintain_model(store, config, now_ms=LATE, holder="a test").commits == 7


def test_an_operator_compacts_what_is_not_due(kit, tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path / "model"))
    trainer, config = kit.filled(store, 2), configured(tmp_path)
    maintain_model(store, config, now_ms=LATE, holder="a test")
    trainer.commit([kit.rows([1], 1)])
    maintain_model(store, config, now_ms=LATE, holder="a test")
    assert list_bases(store) == [2]
    maintain_model(store, config, now_ms=LATE, holder="a test", compacting=compact_newest)
    assert list_bases(store)[-1] == 3


def test_without_a_place_for_locks_nobody_compacts(kit) -> None:
    store = MemoryStore()
    kit.filled(store, 2)
    with pytest.raises(NoLockError, match=r"set checkpoint_config\.lock_dir"):
        maintain_model(store, EasyRecConfig(), now_ms=0, holder="a test")
