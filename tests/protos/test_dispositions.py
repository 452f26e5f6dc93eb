"""Every field of the schema has a disposition, and nothing that is set passes in silence."""

from collections import deque
from collections.abc import Callable, Iterator
from importlib import resources

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from protos.data_pb2 import OdpsDataset, ParquetDataset
from protos.dispositions import CONDITIONS, Disposition, Report, Scene, check, rules_of
from protos.errors import ConfigError
from protos.pipeline_pb2 import EasyRecConfig
from protos.walk import is_map

PREFIX = "headrace.protos."


def reachable() -> dict[Descriptor, tuple[FieldDescriptor, ...]]:
    """Each message of the schema with the shortest way to it from the root."""
    ways: dict[Descriptor, tuple[FieldDescriptor, ...]] = {EasyRecConfig.DESCRIPTOR: ()}
    queue = deque([EasyRecConfig.DESCRIPTOR])
    while queue:
        message = queue.popleft()
        for field in message.fields:
            inner = field.message_type
            if inner is not None and inner not in ways and not is_map(field) and inner.full_name.startswith(PREFIX):
                ways[inner] = (*ways[message], field)
                queue.append(inner)
    return ways


WAYS = reachable()
FIELDS = [field for message in WAYS for field in message.fields]


def descend(root: Message, way: tuple[FieldDescriptor, ...]) -> Message:
    for field in way:
        inner = getattr(root, field.name)
        if field.is_repeated:
            root = inner[0] if inner else inner.add()
        else:
            inner.SetInParent()
            root = inner
    return root


def settings(field: FieldDescriptor) -> Iterator[object]:
    """Values to set `field` to: for an enum each one, else one that is not the default."""
    if field.enum_type is not None:
        yield from (value.number for value in field.enum_type.values)
    elif field.type == FieldDescriptor.TYPE_STRING:
        yield "x"
    elif field.type == FieldDescriptor.TYPE_BOOL:
        yield not field.default_value
    elif field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        yield 0.25
    else:
        yield 7


def put(owner: Message, field: FieldDescriptor, value: object) -> None:
    held = getattr(owner, field.name)
    if is_map(field):
        held["x"] = 7
    elif field.message_type is not None and field.is_repeated:
        held.add()
    elif field.message_type is not None:
        held.SetInParent()
    elif field.is_repeated:
        held.append(value)
    else:
        setattr(owner, field.name, value)


def judged(report: Report) -> list[tuple[str, str]]:
    return [(finding.path, finding.disposition) for finding in (*report.errors, *report.notices)]


def own_findings(config: EasyRecConfig, place: str, device: str) -> list[str]:
    """Dispositions of what was found on the way to `place`, by the table alone."""
    report = check(config, device=device)
    table = [
        f for f in (*report.errors, *report.notices) if f.text.startswith(("is mapped", "has no effect", "is refused"))
    ]
    return [f.disposition for f in table if place == strip(f.path) or place.startswith(strip(f.path) + ".")]


def strip(path: str) -> str:
    return ".".join(part.split("[")[0] for part in path.split("."))


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.full_name.removeprefix(PREFIX))
def test_every_field_has_a_disposition(field: FieldDescriptor) -> None:
    rules = rules_of(field.containing_type.full_name, field.name)
    assert rules, "add a row to protos/dispositions.tsv"
    assert any(not rule.value and not rule.when for rule in rules), "the last row must fit always"
    assert all(rule.reason for rule in rules if rule.disposition != Disposition.HONOURED)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.full_name.removeprefix(PREFIX))
def test_every_set_field_that_is_not_honoured_is_named_exactly_once(field: FieldDescriptor) -> None:
    for value in settings(field):
        config = EasyRecConfig()
        way = WAYS[field.containing_type]
        put(descend(config, way), field, value)
        place = ".".join(step.name for step in (*way, field))
        for device in ("cpu", "cuda"):
            found = own_findings(config, place, device)
            expected = governing(config, way, field, value, device)
            assert sorted(found) == sorted(expected), (place, value, device)


def governing(
    config: EasyRecConfig, way: tuple[FieldDescriptor, ...], field: FieldDescriptor, value: object, device: str
) -> list[str]:
    """What a reader of the table expects: the first refused or void field on the way, and what is mapped before it."""
    expected: list[str] = []
    owner: Message = config
    scene = Scene(config=config, device=device)
    for step in (*way, field):
        shown = str(value) if step is field else ""
        if step is field and field.enum_type is not None:
            shown = field.enum_type.values_by_number[value].name
        rule = next(
            rule
            for rule in rules_of(step.containing_type.full_name, step.name)
            if rule.value in ("", shown) and (not rule.when or CONDITIONS[rule.when](scene, owner))
        )
        scalar = step.message_type is None and not step.is_repeated
        if scalar and not rule.value and value == step.default_value:
            return expected
        if rule.disposition != Disposition.HONOURED:
            expected.append(rule.disposition)
        if rule.disposition in (Disposition.REFUSED, Disposition.NO_OP):
            return expected
        owner = descend(owner, (step,)) if step.message_type is not None and not is_map(step) else owner
    return expected


def test_table_has_no_row_that_no_field_needs() -> None:
    names = {message.full_name.removeprefix(PREFIX): message for message in WAYS}
    lines = resources.files("protos").joinpath("dispositions.tsv").read_text(encoding="utf-8").splitlines()[2:]
    for line in lines:
        message, name, disposition, when, *_ = [*line.split("\t"), "", ""]
        assert message in names, line
        field, _, value = name.partition("=")
        assert when == "" or when in CONDITIONS, line
        if field == "*":
            assert disposition == Disposition.REFUSED, "a star may only refuse"
        elif field:
            known = names[message].fields_by_name[field]
            assert not value or known.enum_type is None or value in known.enum_type.values_by_name, line


def test_check_finds_nothing_in_a_good_configuration(good: Callable[[], EasyRecConfig]) -> None:
    assert check(good()) == Report(errors=(), notices=())


def test_check_says_nothing_of_a_field_that_is_set_to_its_default(good: Callable[[], EasyRecConfig]) -> None:
    config = good()
    config.data_config.pin_memory = True
    config.data_config.num_workers = 8
    assert check(config).notices == ()


def test_check_depends_on_the_source(good: Callable[[], EasyRecConfig]) -> None:
    config = good()
    config.data_config.shuffle = True
    assert judged(check(config)) == [("data_config.shuffle", "no-op")]
    config.data_config.dataset_type = ParquetDataset
    assert judged(check(config)) == [("data_config.input_fields", "mapped")]
    config.data_config.is_orderby_partition = True
    assert ("data_config.is_orderby_partition", "no-op") in judged(check(config))
    config.data_config.dataset_type = OdpsDataset
    assert judged(check(config)) == [("data_config.input_fields", "mapped"), ("data_config.shuffle", "no-op")]


def test_notices_of_cuda_settings_depend_on_the_device_that_trains(good: Callable[[], EasyRecConfig]) -> None:
    config = good()
    config.data_config.pin_memory = False
    train = config.train_config
    train.cudnn_allow_tf32, train.cuda_matmul_allow_tf32, train.mixed_precision = False, True, "FP16"
    train.grad_scaler.init_scale = 1024
    assert [path for path, _ in judged(check(config, device="cpu"))] == [
        "train_config.cudnn_allow_tf32",
        "train_config.cuda_matmul_allow_tf32",
        "train_config.mixed_precision",
        "train_config.grad_scaler",
        "data_config.pin_memory",
    ]
    # A process that does not train leaves it to the one that does.
    assert judged(check(config, device="cuda")) == judged(check(config)) == []
    train.mixed_precision = "BF16"
    assert judged(check(config, device="cuda")) == [("train_config.grad_scaler", "no-op")]
    train.mixed_precision = "FP8"
    assert ("train_config.mixed_precision", "refused") in judged(check(config))


def test_no_error_depends_on_the_device() -> None:
    lines = resources.files("protos").joinpath("dispositions.tsv").read_text(encoding="utf-8").splitlines()[2:]
    rows = [line.split("\t") for line in lines]
    on_gpu = {(row[0], row[1].partition("=")[0]) for row in rows if len(row) > 3 and row[3].startswith("gpu")}
    refused = [row for row in rows if (row[0], row[1]) in on_gpu and row[2] == "refused"]
    assert len(on_gpu) == 5
    assert refused == [["TrainConfig", "mixed_precision", "refused", "", "write BF16 or FP16, or leave it out"]]


def test_check_names_a_repeated_field_once(good: Callable[[], EasyRecConfig]) -> None:
    config = good()
    config.data_config.dataset_type = ParquetDataset
    assert judged(check(config)) == [("data_config.input_fields", "mapped")]


def test_report_raises_one_error_that_lists_them_all(good: Callable[[], EasyRecConfig]) -> None:
    config = good()
    config.export_config.exporter_type = "best"
    config.train_config.delta_embedding_dump_config.SetInParent()
    with pytest.raises(ConfigError, match=r"a\.config: (?s:.)*delta_embedding_dump_config(?s:.)*exporter_type"):
        check(config).raise_for_errors("a.config")
