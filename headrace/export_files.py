"""The files that features read, beside an exported configuration that names them where they lie."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from google.protobuf.message import Message

from features import create_features
from features.errors import FeatureError
from features.files import BroughtFiles
from headrace.errors import UsageError
from protos.pipeline_pb2 import EasyRecConfig
from protos.walk import set_fields
from publisher.contract import Contract

_FOLDER = "files"
_CANNOT = (
    "the files {names} cannot be exported under other names: {why}; export without --plain, which keeps their names"
)


def with_files_of_its_own(config: EasyRecConfig, contract: Contract) -> tuple[EasyRecConfig, dict[str, bytes]]:
    """The configuration with the contract's files under new names, `files/...`, and these files.

    UsageError where features come out differently so: a plugin may make up the names of files that it reads.
    """
    names = {old: f"{_FOLDER}/{at}-{PurePosixPath(old).name}" for at, (old, _) in enumerate(contract.assets)}
    files = {names[old]: content for old, content in contract.assets}
    moved = EasyRecConfig()
    moved.CopyFrom(config)
    for feature in moved.feature_configs:
        _rename(feature, names)
    try:
        digest = create_features(moved, files=BroughtFiles(files)).digest()
    except FeatureError as error:
        raise UsageError(_CANNOT.format(names=", ".join(names), why=error)) from error
    if digest != contract.features:
        raise UsageError(_CANNOT.format(names=", ".join(names), why="they come out differently"))
    return moved, files


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files below `folder`."""
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _rename(message: Message, names: Mapping[str, str]) -> None:
    for item in list(set_fields(message)):
        if isinstance(item.value, Message):
            _rename(item.value, names)
        elif isinstance(item.value, str) and not item.field.is_extension:
            folder = getattr(item.owner, "asset_dir", "") if item.field.name == "vocab_file" else ""
            old = f"{folder.rstrip('/')}/{item.value}" if folder else item.value
            if old in names:
                setattr(item.owner, item.field.name, names[old])
                if folder:
                    item.owner.ClearField("asset_dir")
