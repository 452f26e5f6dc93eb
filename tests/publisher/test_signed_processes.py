"""A publisher and a replica as processes of their own: what is signed is served, with its files; nothing else is."""

import io
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import numpy as np
import pytest
import tritonclient.http as triton
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from headrace.__main__ import run as headrace
from protos.load import load_config
from publisher.__main__ import run_until
from stream.broker import free_port
from tests.publisher.replica.client import Client

FEATURES = """
feature_configs { id_feature { feature_name: "user_id" expression: "user:user_id" embedding_name: "user"
  embedding_dim: 4 zch { zch_size: 1000 hash {} } } }
feature_configs { id_feature { feature_name: "item_id" expression: "item:item_id" embedding_name: "item"
  embedding_dim: 3 vocab_file: "%s" default_bucketize_value: 0 } }
"""
PEM, PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
WAIT_S = 240.0


def write_key(folder: Path, name: str) -> Path:
    key, path = Ed25519PrivateKey.generate(), folder / f"{name}.pem"
    path.write_bytes(key.private_bytes(PEM, PKCS8, serialization.NoEncryption()))
    public = key.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.public.pem").write_bytes(public)
    return path


@pytest.fixture
def configs(tmp_path: Path, config_text: Callable[..., str]) -> dict[str, Path]:
    """Configurations that differ in their key only, and name a vocabulary."""
    (tmp_path / "words.txt").write_text("\n".join(["other", "a", "b", "c", "d", "e"]))
    keys = {"ours": write_key(tmp_path, "ours"), "foreign": write_key(tmp_path, "foreign"), "none": None}
    found = {}
    for name, key in keys.items():
        signed = f'signing_key_file: "{key}"' if key else ""
        text = config_text(tmp_path / "model", signed).replace("dense_runtime: TORCH_SCRIPT", "dense_runtime: EAGER")
        start, end = text.index("feature_configs"), text.index("model_config")
        found[name] = tmp_path / f"{name}.config"
        text = text[:start] + FEATURES % (tmp_path / "words.txt") + text[end:]
        found[name].write_text(text.replace('"item_id" input_type: INT64', '"item_id" input_type: STRING'))
    return found


@contextmanager
def replica(folder: Path, key: Path) -> Iterator[int]:
    port = free_port()
    command = [sys.executable, "-m", "headrace", "serve", str(folder / "model"), "--port", str(port)]
    with (folder / "replica.log").open("wb") as log:
        process = subprocess.Popen([*command, "--verify-key-file", str(key)], stderr=log)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


def ask(port: int) -> int:
    """The version that answers a request with a known and an unknown word."""
    columns = {"user_id": ("INT64", np.array([1, 1])), "item_id": ("BYTES", np.array(["a", "zzz"], object))}
    tensors = []
    for name, (datatype, values) in columns.items():
        tensors.append(triton.InferInput(name, [2], datatype))
        tensors[-1].set_data_from_numpy(values)
    with Client(port) as client:
        return int(client.infer("headrace", tensors).get_response()["model_version"])


def figure(port: int, name: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
        found = re.search(rf"^headrace_replica_{re.escape(name)} (\S+)$", response.read().decode(), re.MULTILINE)
    return float(found[1]) if found else 0.0


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            if condition():
                return
        except OSError:
            pass
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready") as response:
            return bool(response.status == 200)
    except urllib.error.HTTPError:
        return False


def rolled_back(*arguments: object) -> tuple[int, str]:
    out, errors = io.StringIO(), io.StringIO()
    code = headrace(["rollback", *map(str, arguments)], out=out, errors=errors, environment={})
    return code, out.getvalue() + errors.getvalue()


@pytest.mark.timeout(600)
def test_replica_serves_what_our_publisher_signed_and_nothing_else(local_bench, configs, tmp_path: Path) -> None:
    local_bench.train_under(load_config(configs["ours"]))
    local_bench.trainer.base()
    command = [sys.executable, "-m", "publisher", str(configs["ours"]), "--once"]
    subprocess.run(command, check=True, timeout=WAIT_S, capture_output=True)
    words = tmp_path / "words.txt"
    words.rename(tmp_path / "gone.txt")
    with replica(tmp_path, tmp_path / "ours.public.pem") as port:
        until(lambda: ready(port))
        assert ask(port) == 1
        assert figure(port, 'feature_total{feature="item_id",outcome="out_of_vocabulary"}') == 1.0
        (tmp_path / "gone.txt").rename(words)
        for name, reason in (("none", "unsigned"), ("foreign", "foreign")):
            local_bench.trainer.commit({"user": [1]})
            run_until([str(configs[name]), "--once"], Event())
            until(lambda reason=reason: figure(port, f'refused_versions_total{{reason="{reason}"}}') >= 1.0)
            assert ask(port) == 1
        local_bench.trainer.commit({"user": [1]})
        run_until([str(configs["ours"]), "--once"], Event())
        until(lambda: ask(port) == 4)
        code, said = rolled_back(tmp_path / "model", 1)
        assert code != 0 and "give --config with publish_config.signing_key_file" in said and ask(port) == 4
        code, said = rolled_back(tmp_path / "model", 1, "--config", configs["ours"])
        assert code == 0 and "serving version 1, pinned" in said
        until(lambda: ask(port) == 1)
