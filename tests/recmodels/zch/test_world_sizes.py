"""One rank and two, on gloo, have the same rows after the same global batches, and restore from each other."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("rank.py")
TABLES = {"u", "a", "i", "j", "w", "s", "u_wide", "i_wide"}


def train(folder: Path, world_size: int, first: int, steps: int, load: Path | None = None, kind: str = "host") -> Path:
    folder.mkdir()
    rest = [str(folder), str(first), str(steps), kind] + ([] if load is None else [str(load)])
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", str(SCRIPT), str(rank), str(world_size), *rest],
            stderr=subprocess.PIPE,
            env={"OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin", "HOME": str(Path.home())},
        )
        for rank in range(world_size)
    ]
    said = [rank.communicate(timeout=120)[1].decode() for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * world_size, "\n".join(said)[-6000:]
    return folder


def content(folder: Path) -> dict[tuple[str, str], dict[int, tuple[np.ndarray, ...]]]:
    """(table, kind) → id → slot and columns, of all ranks."""
    held: dict[tuple[str, str], dict[int, tuple[np.ndarray, ...]]] = {}
    for path in sorted(folder.glob("*-*-*.npz")):
        _, table, kind = path.stem.split("-")
        with np.load(path) as part:
            columns = [part[name] for name in sorted(part.files) if name not in ("ids", "deleted", "shard")]
            rows = held.setdefault((table, kind), {})
            for at, key in enumerate(part["ids"].tolist()):
                assert key not in rows
                rows[key] = tuple(column[at] for column in columns)
    return held


def reads(folder: Path) -> dict[str, np.ndarray]:
    """What all ranks read of the batch that nobody trained on, in global order."""
    parts = [dict(np.load(path)) for path in sorted(folder.glob("read*.npz"))]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def assert_same(one: Path, two: Path) -> None:
    ours, theirs = ({key: rows for key, rows in content(run).items() if key[0] != "s"} for run in (one, two))
    assert ours.keys() == theirs.keys()
    for key, rows in ours.items():
        assert rows.keys() == theirs[key].keys(), key
        for row_id, row in rows.items():
            for a, b in zip(row, theirs[key][row_id], strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-6, err_msg=f"{key} {row_id}")
    for name, read in reads(one).items():
        if name == "sorted":
            continue
        np.testing.assert_allclose(read, reads(two)[name], rtol=2e-4, atol=1e-5, err_msg=name)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("trained")
    return {size: train(folder / str(size), size, 0, 12) for size in (1, 2)}


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("straight") / "1", 1, 0, 18)


def test_two_ranks_have_the_rows_and_slots_of_one(trained: dict[int, Path]) -> None:
    assert {table for table, _ in content(trained[1])} == TABLES
    assert len(content(trained[1])[("a", "admission")]) > 0
    assert_same(trained[1], trained[2])


def test_each_rank_has_a_sorted_map_of_its_own_ids(trained: dict[int, Path]) -> None:
    for rank in (0, 1):
        with np.load(trained[2] / f"{rank}-s-zch.npz") as rows:
            assert len(rows["ids"]) > 0
            assert set((rows["ids"] % 2).tolist()) == {rank}
            assert set((rows["slots"] // 32).tolist()) == {rank}


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1)])
def test_a_restore_at_another_world_size_goes_on_alike(
    trained: dict[int, Path], straight: Path, tmp_path: Path, before: int, after: int
) -> None:
    assert_same(straight, train(tmp_path / "moved", after, 12, 6, load=trained[before]))


def test_ranks_whose_tables_are_on_devices_restore_it_and_have_the_same_rows(
    trained: dict[int, Path], tmp_path: Path
) -> None:
    """Both of devices: where windows are full, ids come in in another order than on the host."""
    one, two = (train(tmp_path / str(size), size, 12, 6, load=trained[1], kind="device") for size in (1, 2))
    assert_same(one, two)
