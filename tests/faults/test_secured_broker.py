"""An Apache Kafka that wants TLS and passwords: served where both are right, else one clear line without secrets."""

import dataclasses
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.faults.processes import Process
from benchmarks.faults.stage import Stage
from tests.conftest import KafkaProcess, KafkaProcesses
from tests.faults.conftest import Bench

PASSWORD, WRONG = "open-sesame-7", "shut-sesame-7"
STORE = "changeit"


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def authority(folder: Path, name: str) -> Path:
    """A self-signed authority of our own; the file of its certificate."""
    openssl(
        folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
        "-keyout", f"{name}.key", "-out", f"{name}.pem",
    )  # fmt: skip
    return folder / f"{name}.pem"


def keystore(folder: Path) -> Path:
    """The broker's key and certificate, signed by `authority`, as Java reads them."""
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
    openssl(
        folder, "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=broker", "-keyout", "broker.key",
        "-out", "broker.csr",
    )  # fmt: skip
    openssl(
        folder, "x509", "-req", "-in", "broker.csr", "-CA", "authority.pem", "-CAkey", "authority.key",
        "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "broker.pem",
    )  # fmt: skip
    openssl(
        folder, "pkcs12", "-export", "-in", "broker.pem", "-inkey", "broker.key", "-certfile", "authority.pem",
        "-passout", f"pass:{STORE}", "-out", "broker.p12",
    )  # fmt: skip
    return folder / "broker.p12"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Secured:
    """One broker with a plain listener for the test, one for TLS, and one for TLS with a password."""

    folder: Path
    process: KafkaProcess
    ssl: str
    sasl: str

    def stream(self, topic: str, protocol: str, *, password: str = "right", authority: str = "authority") -> str:
        """What stream_config says to reach `topic`."""
        told = f'security_protocol: "{protocol}" ca_file: "{self.folder}/{authority}.pem"'
        if protocol == "SASL_SSL":
            told += f' sasl_mechanism: "PLAIN" username_file: "{self.folder}/user"'
            told += f' password_file: "{self.folder}/{password}"'
        brokers = self.sasl if protocol == "SASL_SSL" else self.ssl
        # The metadata of a topic that was just created need a moment to reach every listener.
        return f'brokers: "{brokers}" topic: "{topic}" stop_at_end: true broker_wait_ms: 20000 security {{ {told} }}'


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, kafka_broker) -> Iterator[Secured]:
    # kafka_broker: skips, and marks, where there is no Apache Kafka.
    folder = tmp_path_factory.mktemp("secured")
    authority(folder, "authority")
    authority(folder, "other")
    for name, text in (("user", "reader"), ("right", PASSWORD), ("wrong", WRONG)):
        (folder / name).write_text(f"{text}\n")
    ssl, sasl = KafkaProcesses.free_port(), KafkaProcesses.free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{{port}},SSL://127.0.0.1:{ssl},SASL_SSL://127.0.0.1:{sasl}"
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    processes = KafkaProcesses(folder)
    yield Secured(
        folder=folder,
        process=processes(
            f"listeners={listeners},CONTROLLER://127.0.0.1:{{controller}}",
            f"advertised.listeners={listeners}",
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
            "sasl.enabled.mechanisms=PLAIN",
            f'listener.name.sasl_ssl.plain.sasl.jaas.config={login} user_reader="{PASSWORD}";',
            f"ssl.keystore.location={keystore(folder)}",
            "ssl.keystore.type=PKCS12",
            f"ssl.keystore.password={STORE}",
        ),
        ssl=f"127.0.0.1:{ssl}",
        sasl=f"127.0.0.1:{sasl}",
    )
    for process in processes.started:
        process.stop()


def told_nothing(process: Process, bench: Bench) -> None:
    """No secret is in what a process said or left."""
    assert "Traceback" not in process.text(), process.text()
    for path in [process.log, *(path for path in bench.folder.rglob("*") if path.is_file())]:
        content = path.read_bytes()
        assert PASSWORD.encode() not in content and WRONG.encode() not in content, path


@pytest.mark.parametrize(("protocol", "train"), [("SSL", ("trainer",)), ("SASL_SSL", ("headrace", "train"))])
def test_rows_are_replayed_and_trained_over_tls(
    protocol: str, train: tuple[str, ...], bench: Bench, stage: Stage, secured: Secured
) -> None:
    topic = secured.process.broker().topic(3)
    part = pq.read_table(stage.folder / "part-0.parquet")
    config = dataclasses.replace(stage, stream=secured.stream(topic, protocol)).config(bench.folder / "model")
    replay = bench.start("headrace", "replay", config, stage.folder / "part-0.parquet")
    assert replay.wait(60) == 0, replay.text()
    trainer = bench.start(train[0], *train[1:], config)
    assert trainer.wait(120) == 0, trainer.text()
    assert bench.received(config) == part.num_rows
    for process in (replay, trainer):
        told_nothing(process, bench)


REFUSED = {
    "wrong password": ("SASL_SSL", {"password": "wrong"}, "SASL authentication error"),
    "another authority": ("SSL", {"authority": "other"}, "certificate verify failed"),
    "another authority, with a password": ("SASL_SSL", {"authority": "other"}, "certificate verify failed"),
    "a password file that is not there": ("SASL_SSL", {"password": "nowhere"}, "cannot be read: No such file"),
    "an authority's file that is not there": (
        "SSL",
        {"authority": "nowhere"},
        "nowhere.pem cannot be read: No such file",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("command", ["train", "replay"])
def test_client_that_is_refused_is_told_so_in_one_line(
    name: str, command: str, bench: Bench, stage: Stage, secured: Secured
) -> None:
    protocol, how, words = REFUSED[name]
    stream = secured.stream("clicks", protocol, **how)
    config = dataclasses.replace(stage, stream=stream).config(bench.folder / "model")
    arguments = {"train": ("trainer", config), "replay": ("headrace", "replay", config, stage.folder)}[command]
    process = bench.start(*arguments)
    assert process.wait(60) == 1, process.text()
    last = process.verdict()
    assert last.startswith(("trainer: ", "headrace: ")) and words in last, process.text()
    told_nothing(process, bench)


def test_plain_client_of_a_tls_listener_is_told_what_may_be_wrong(bench: Bench, stage: Stage, secured: Secured) -> None:
    stream = f'brokers: "{secured.ssl}" topic: "clicks" broker_wait_ms: 2000'
    config = dataclasses.replace(stage, stream=stream).config(bench.folder / "model")
    last = bench.train(config, expect=1).verdict()
    assert secured.ssl in last and "stream_config.security (security_protocol PLAINTEXT)" in last, last
