"""What README.md and the pages of docs/ show is typed and run, as it stands there: commands and code."""

import json
import re
import runpy
import shlex
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.faults.processes import Zygote
from checkpointer import CommitLog
from checkpointer.local_store import LocalStore
from protos.dispositions import check
from protos.load import parse_config
from publisher.replica.protocol import DTYPES, Tensor
from publisher.replica.request import InputColumn, to_rows
from publisher.signing import Verifier
from publisher.versions import read_pointer
from stream.broker import free_port
from tests.conftest import Broker
from tests.e2e.pages import ROOT, Loop, Reader, command_blocks, fenced, text_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
NOT_RUN = {
    "make demo": "tests/e2e/test_demo.py runs `headrace demo`, and the rest of it installs",
    "make test": "it is what runs this",
    "headrace train pipeline.config --nproc 2 --device cuda": "needs two GPUs; tests/cuda has what needs one",
    "headrace config check pipeline.config --device cuda": "needs a GPU",
}
ELSEWHERE = {"docs/extending.md": "tests/headrace/test_extending.py runs it, from the compiler on"}
PAGES = ["README.md", *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").glob("*.md")))]
EVENTS = 600


def events(first: int, count: int = EVENTS) -> pa.Table:
    random = np.random.default_rng(first)
    users, items = random.integers(0, 50, count), random.integers(0, 40, count)
    clicked = (users % 2 == 0).astype(np.float32)
    at = 1_700_000_000_000 + np.arange(first, first + count)
    columns = {"user_id": users.astype(str), "item_id": items.astype(str), "price": random.random(count)}
    return pa.table({**columns, "clicked": clicked, "event_time_ms": at})


@pytest.fixture(scope="session")
def loop(zygote: Zygote, embedded_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """The README's own loop, running, begun as the README says it; it serves what a producer of ours sent."""
    folder, port, topic = tmp_path_factory.mktemp("readme"), free_port(), embedded_broker.topic()
    (config,) = fenced("README.md", "textproto")
    for old, new in {"127.0.0.1:9092": embedded_broker.bootstrap, '"clicks"': f'"{topic}"', "1000000": "1000"}.items():
        assert old in config
        config = config.replace(old, new)
    config += "publish_config { dense_runtime: TORCH_SCRIPT }\n"  # the other one compiles for half a minute
    (folder / "pipeline.config").write_text(config)
    reader = Reader(zygote=zygote, folder=folder, replaced={"8080": str(port)})
    begun = Loop(reader=reader, port=port)
    checking, schema, *processes, status = command_blocks("README.md")[1]
    assert "pipeline.config: ok, 0 notice(s)" in reader.type(checking)
    assert re.search(r"clicked +FLOAT.* no +label", reader.type(schema))
    (folder / "producer.py").write_text(reader.type(f"{schema} --producer"))
    for line in processes:
        reader.start(line)
    assert list(reader.running) == ["train", "publish", "serve"]
    assert f"sent {EVENTS} events" in reader.shell(f"python producer.py {EVENTS}")
    reader.until(lambda: begun.version() > 1, "a version with events in it")
    assert "trained=" in reader.type(status)
    reader.until(lambda: any((folder / "runs/clicks").rglob("*torch_script*")), "the compiled half")
    yield begun
    for name in list(reader.running):
        reader.stop(name)


@pytest.fixture(scope="session")
def held_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "held_out.parquet"
    pq.write_table(events(10_000), path)
    return path


def runnable(block: list[str]) -> list[str]:
    return [line for line in block if line not in NOT_RUN]


def bounded(config: str) -> str:
    return config.replace("linger_ms: 100", "stop_at_end: true")


def train_more(reader: Reader, line: str = "headrace train pipeline.config") -> None:
    """Send some rows, then train them."""
    pq.write_table(events(20_000), reader.folder / "more.parquet")
    reader.type("headrace replay pipeline.config more.parquet")
    reader.train(line)


def test_every_command_of_the_pages_is_run_or_said_not_to_be() -> None:
    shown = {page: command_blocks(page) for page in PAGES}
    walked = {"README.md", *(f"docs/{name}.md" for name in ("features", "publishing", "serving", "training"))}
    assert {page for page, blocks in shown.items() if blocks} == walked | set(ELSEWHERE)
    assert set(NOT_RUN) <= {line for blocks in shown.values() for block in blocks for line in block}
    assert all(line in NOT_RUN for line in command_blocks("README.md")[0])


def test_readme(loop: Loop, tmp_path: Path) -> None:
    reader = loop.reader
    _, _, beside, wrong = command_blocks("README.md")
    pq.write_table(events(0), reader.folder / "events.parquet")
    pq.write_table(events(10_000), reader.folder / "held_out.parquet")
    before = loop.version()
    expected = [f"sent {EVENTS} events", "user_id", r"\nauc +[01]\.", f"wrote {EVENTS} rows", "serve it: headrace"]
    for line, said in zip(beside, expected, strict=True):
        assert re.search(said, reader.type(line)), line
    assert {"user_id", "probs"} <= set(pq.read_schema(reader.folder / "scores.parquet").names)
    other = Loop(reader=reader, port=free_port())
    exported = reader.start(f"headrace serve exported --port {other.port}")
    reader.until(lambda: other.version() > 0, "a version of the export")
    reader.running["serve"] = exported
    reader.until(lambda: loop.version() > before, "a version of what was replayed")
    *before_reverting, reverting = wrong
    for line, said in zip(before_reverting, [" 0  in all", "sound", "pinned"], strict=True):
        assert said in reader.type(line), line
    reader.stop("train")
    assert "training goes on from it" in reader.type(reverting.replace("42", "2"))


def test_features_page(zygote: Zygote, tmp_path: Path) -> None:
    (config,) = fenced("docs/features.md", "textproto")
    rest = (
        'model_dir: "m" train_config { sparse_optimizer { sgd_optimizer { lr: 1 } constant_learning_rate {} } '
        "dense_optimizer { sgd_optimizer { lr: 1 } constant_learning_rate {} } } "
        'model_config { feature_groups { group_name: "deep" group_type: DEEP feature_names: ["user", "price"] } '
        'multi_tower { towers { input: "deep" mlp { hidden_units: 4 } } final { hidden_units: 4 } } '
        "losses { binary_cross_entropy {} } } stream_config { brokers: 'b:9092' topic: 'shop' }"
    )
    (tmp_path / "pipeline.config").write_text(config + rest)
    (tmp_path / "vocabulary.txt").write_text("unknown\nhats\n")
    rates = pa.array([[("acme", 0.5)], [("bolt", 0.1)]], pa.map_(pa.string(), pa.float32()))
    rows = {"user": ["ann", "bob"], "price": [100.0, 2.5], "pieces": [3, 1], "category": ["hats", "cups"]}
    lists = {"tags": [["sale"], None], "clicked__item": [[1, 2], [3]], "clicked__price": [[1.0, 2.0], [3.0]]}
    table = pa.table({**rows, "brand": ["acme", "acme"], "brand_rates": rates, **lists, "click": [1, 0]})
    pq.write_table(table, tmp_path / "rows.parquet")
    reader = Reader(zygote=zygote, folder=tmp_path)
    ((show, write, compare),) = command_blocks("docs/features.md")
    assert re.search(r"total +.*-> 300\.0", reader.type(show))
    assert "2 rows, 0 of them cannot be used" in reader.type(write)
    assert "2 rows are equal in every feature" in reader.type(compare)


def test_publishing_page(loop: Loop, tmp_path: Path) -> None:
    back, keys = command_blocks("docs/publishing.md")
    reader = loop.copy(tmp_path / "copy", model_dir="runs/model")
    (signing,) = re.findall(r"`(publish_config \{ signing_key_file.*?\})`", text_of("docs/publishing.md"))
    *rollbacks, publishing = back
    for line in rollbacks:
        assert "pinned" in reader.type(line)
    for line in keys:
        reader.shell(line)
    config = reader.folder / "pipeline.config"
    text = config.read_text().replace("publish_config { dense_runtime: TORCH_SCRIPT }", signing)
    config.write_text(bounded(text.replace("verify_key_file", "dense_runtime: TORCH_SCRIPT verify_key_file")))
    process = reader.start(publishing)
    train_more(reader)
    reader.until(lambda: "pin removed" in process.text() and "version published" in process.text(), "a signed version")
    reader.stop("publish")
    signed = Verifier.load(reader.folder / "public.pem")
    assert read_pointer(LocalStore(str(reader.folder / "runs/model")), verifier=signed) is not None


def test_training_page(loop: Loop, tmp_path: Path) -> None:
    trains, devices, log, (again,) = command_blocks("docs/training.md")
    reader = loop.copy(tmp_path / "copy")
    config = reader.folder / "pipeline.config"
    config.write_text(bounded(config.read_text()))
    commits = int(json.loads(reader.type(f"{log[0]} --json"))[-1]["seq"])
    reader.replaced = {"9101": str(free_port()), "--threads 4": "--threads 1", "clicks 42": f"clicks {commits}"}
    renamed = config.read_text().replace("runs/clicks", "runs/again")
    (reader.folder / "again.config").write_text(renamed)
    assert "trained" in reader.train(again)
    worlds = []
    for line in trains:
        train_more(reader, line)
        head = CommitLog(LocalStore(str(reader.folder / "runs/clicks"))).head()
        worlds.append(head and head.world)
    assert worlds == [2, 1, 1, 1]
    (reader.folder / "pipeline.config").write_text(f'eval_input_path: "more.parquet"\n{config.read_text()}')
    assert [re.search(r"\nauc +[01]\.", reader.type(line)) is not None for line in runnable(devices)] == [True]
    for line, said in zip(log, [r"\d  base ", "until=", "training goes on from it", "base=\\d+"], strict=True):
        assert re.search(said, reader.type(line)), line


def test_serving_page(loop: Loop, tmp_path: Path) -> None:
    ask, ragged = fenced("docs/serving.md", "python")
    (tmp_path / "ask.py").write_text(ask.replace("8080", str(loop.port)))
    said = runpy.run_path(str(tmp_path / "ask.py"))
    assert said["result"].as_numpy("probs").shape == (3,)
    assert int(said["result"].get_response()["model_version"]) == loop.version()
    ((curl,),) = command_blocks("docs/serving.md")
    program, place, option, body = shlex.split(curl.replace("8080", str(loop.port)))
    assert (program, option) == ("curl", "-d")
    with urllib.request.urlopen(f"http://{place}", body.encode(), timeout=30) as answer:
        (probs,) = [part for part in json.load(answer)["outputs"] if part["name"] == "probs"]
    assert probs["data"] == pytest.approx(said["result"].as_numpy("probs")[:2].tolist(), rel=1e-5)
    (tmp_path / "ragged.py").write_text(f"import numpy as np\n{ragged}")
    sent = runpy.run_path(str(tmp_path / "ragged.py"))["ragged"]
    tensors = {name: _tensor(name, data) for name, data in sent.items()}
    columns = [InputColumn(name=name, user=True) for name in ("clicks__tags", "rates")]
    found = to_rows(tensors, columns, max_rows=10)
    assert found.items.to_pydict() == {
        "clicks__tags": [[["red", "shoe", "sale"], ["hat"]]],
        "rates": [[("red", 0.5), ("hat", 1.5)]],
    }


def _tensor(name: str, data: np.ndarray) -> Tensor:
    if data.dtype == object:
        return Tensor(name=name, datatype="BYTES", shape=data.shape, data=pa.array(data, pa.string()))
    datatype = next(kind for kind, dtype in DTYPES.items() if dtype == data.dtype)
    return Tensor(name=name, datatype=datatype, shape=data.shape, data=data)


def test_streams_page() -> None:
    (readme,) = fenced("README.md", "textproto")
    for block in fenced("docs/streams.md"):
        report = check(parse_config(readme + block, json=False))
        assert report.errors == ()
