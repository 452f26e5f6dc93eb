"""The image and the compose file, as far as they can be judged without Docker."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace.__main__ import build_parser
from protos.dispositions import check
from protos.load import load_config
from publisher.metrics import PublisherMetrics
from publisher.replica.metrics import ReplicaMetrics
from trainer.monitor import Monitor

DOCKER = Path(__file__).parents[2] / "docker"
ROOT = DOCKER.parent
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "headrace"}
SECRET = re.compile(r"password|passwd|secret|token|credential|api_?key", re.IGNORECASE)


def instructions() -> list[tuple[str, str]]:
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n", " ", text).splitlines()
    words = [line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#")]
    return [(first, rest) for first, rest in words]


def test_compose_runs_the_four_parts() -> None:
    assert {"kafka", "trainer", "publisher", "replica"} <= set(SERVICES)
    assert re.fullmatch(r"apache/kafka:4\.\d+\.\d+", SERVICES["kafka"]["image"])


@pytest.mark.parametrize("name", OURS)
def test_commands_are_those_of_our_command_line(name: str) -> None:
    build_parser().parse_args(OURS[name]["command"])


@pytest.mark.parametrize("name", [name for name in SERVICES if name != "topics"])
def test_every_long_running_service_has_a_healthcheck(name: str) -> None:
    test = SERVICES[name]["healthcheck"]["test"]
    assert test[0] == "CMD"
    if test[1] == "headrace":
        build_parser().parse_args(test[2:])


def test_ports_are_published_on_loopback_only_and_match_the_commands() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    command = SERVICES["replica"]["command"]
    assert SERVICES["replica"]["ports"][0].endswith(f":{command[command.index('--port') + 1]}")


def test_prometheus_asks_the_ports_that_the_commands_open() -> None:
    config = yaml.safe_load((DOCKER / "prometheus.yml").read_text(encoding="utf-8"))
    targets = [
        target for job in config["scrape_configs"] for group in job["static_configs"] for target in group["targets"]
    ]
    assert {target.split(":")[0] for target in targets} == set(OURS)
    for service, port in (target.split(":") for target in targets):
        command = OURS[service]["command"]
        option = "--port" if service == "replica" else "--metrics-port"
        assert command[command.index(option) + 1] == port
        assert command[command.index(option.replace("port", "host")) + 1] == "0.0.0.0"


def shown_metrics() -> set[str]:
    dashboard = json.loads((DOCKER / "grafana" / "dashboards" / "headrace.json").read_text(encoding="utf-8"))
    alerts = yaml.safe_load((DOCKER / "alerts.yml").read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    expressions += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    return {name for text in expressions for name in re.findall(r"headrace_\w+", text)}


def exported_metrics() -> set[str]:
    """What the three processes export; what a replica computes when asked, as its source names it."""
    collectors = [Monitor().registry, PublisherMetrics().registry, ReplicaMetrics().registry]
    families = [family for registry in collectors for family in registry.collect()]
    computed = re.findall(
        r"(?:gauge|labelled)\(\s*\"(\w+)\"", (ROOT / "publisher" / "replica" / "server.py").read_text()
    )
    names = {family.name for family in families} | {f"headrace_replica_{name}" for name in computed}
    return names | {f"{name}{suffix}" for name in names for suffix in ("_total", "_bucket", "_count")}


def test_dashboard_and_alerts_use_metrics_that_exist() -> None:
    assert len(shown_metrics()) > 12
    assert shown_metrics() - exported_metrics() == set()


def test_grafana_is_read_only_and_finds_its_dashboard() -> None:
    environment = SERVICES["grafana"]["environment"]
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    provider = yaml.safe_load((DOCKER / "grafana/provisioning/dashboards/headrace.yml").read_text(encoding="utf-8"))
    folder = provider["providers"][0]["options"]["path"]
    assert f"./grafana/dashboards:{folder}:ro" in SERVICES["grafana"]["volumes"]
    source = yaml.safe_load((DOCKER / "grafana/provisioning/datasources/prometheus.yml").read_text(encoding="utf-8"))
    dashboard = json.loads((DOCKER / "grafana" / "dashboards" / "headrace.json").read_text(encoding="utf-8"))
    assert {panel["datasource"]["uid"] for panel in dashboard["panels"]} == {source["datasources"][0]["uid"]}


def test_mounted_files_exist() -> None:
    volumes = [volume for service in SERVICES.values() for volume in service.get("volumes", ())]
    for volume in (volume for volume in volumes if volume.startswith("./")):
        assert (DOCKER / volume.split(":")[0]).exists(), volume
    named = {volume.split(":")[0] for volume in volumes if not volume.startswith("./")}
    assert named == set(COMPOSE["volumes"])


def test_the_configuration_has_no_findings_and_fits_the_compose_file() -> None:
    config = load_config(DOCKER / "pipeline.config")
    report = check(config)
    assert (report.errors, report.notices) == ((), ())
    assert config.stream_config.brokers in SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert f"--topic={config.stream_config.topic}" in SERVICES["topics"]["command"]
    assert any(volume.endswith(f":{config.model_dir}") for volume in SERVICES["trainer"]["volumes"])


def test_there_are_no_secrets() -> None:
    texts = [value for service in SERVICES.values() for value in service.get("environment", {}).items()]
    assert not any(SECRET.search(f"{name}={value}") for name, value in texts)
    assert not any(SECRET.search(rest) for first, rest in instructions() if first in ("ENV", "ARG"))


def test_the_image_is_built_in_stages_and_runs_without_root() -> None:
    steps = instructions()
    stages = [index for index, (first, _) in enumerate(steps) if first == "FROM"]
    assert len(stages) == 2
    last = steps[stages[-1] :]
    users = [rest for first, rest in last if first == "USER"]
    assert users == ["headrace"]
    assert ("ENTRYPOINT", '["headrace"]') in last
    assert any(first == "RUN" and "useradd" in rest for first, rest in last)


def test_the_image_is_built_for_cpu_or_cuda_from_constraints_that_exist() -> None:
    runs = " ".join(rest for first, rest in instructions() if first == "RUN")
    names = re.search(r'cp "constraints-\$\(test -n "\$CUDA" && echo (\w+) \|\| echo (\w+)\)\.txt" (\S+)', runs)
    assert names is not None and (names[1], names[2]) == ("cuda", "cpu")
    assert all((ROOT / f"constraints-{names[number]}.txt").exists() for number in (1, 2))
    assert set(re.findall(r"-c (\S+)", runs)) == {names[3]}
    assert 'CUDA=""' in [rest for first, rest in instructions() if first == "ARG"]
    kernels = re.search(r'test -n "\$CUDA" && echo (\S+) \|\| echo (\S+)\)"', runs)
    assert kernels is not None and kernels[1] == "fbgemm-gpu" and (ROOT / kernels[2] / "pyproject.toml").exists()


def test_the_image_copies_files_that_exist_and_every_package() -> None:
    copied = [rest.split()[:-1] for first, rest in instructions() if first == "COPY" and "--from" not in rest]
    names = {name for group in copied for name in group}
    assert all((ROOT / name).exists() for name in names)
    packages = {path.parent.name for path in ROOT.glob("*/errors.py")}
    assert packages <= names
