"""The folder that a demo writes to."""

import shutil
from pathlib import Path

from headrace.demo.errors import DemoError

_OURS = frozenset({"logs", "model", "pipeline.config", "report.html", "summary.json"})


def make_folder(folder: Path, option: str) -> None:
    """Make the folder that an option names; DemoError where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DemoError(f"the folder {folder} cannot be made: {error.strerror}; give {option} another one") from None


def clear(folder: Path) -> None:
    """Make the folder, without what an earlier demo left; DemoError where it holds anything else."""
    make_folder(folder, "--out")
    held = sorted(folder.iterdir())
    strangers = [path.name for path in held if path.name not in _OURS]
    if strangers:
        raise DemoError(f"{folder} holds {strangers[0]!r}, which is not of a demo; give --out a folder of its own")
    for path in held:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
