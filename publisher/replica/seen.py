"""The highest number of a signed pointer that a replica has seen, in memory or, where a file is named, across restarts.

The file is for a replica with a key: who can write to the store could show an old pointer to one that starts.
"""

import logging
import os
from pathlib import Path

from publisher.errors import VersionError
from publisher.fields import Fields, canonical
from publisher.replica.errors import StartError

logger = logging.getLogger(__name__)


class Seen:
    """Only grows; a file that cannot be written is told of, and serving goes on."""

    def __init__(self, path: Path | None, url: str) -> None:
        """StartError where the file cannot be read, or is of another model directory than `url`."""
        self._path = path
        self._url = url
        self._written = True
        self.generation = 0 if path is None else _read(path, url)

    def saw(self, generation: int) -> None:
        """Remember a number that is not lower."""
        if generation == self.generation:
            return
        self.generation = generation
        if self._path is not None:
            self._write(self._path)

    def _write(self, path: Path) -> None:
        staged = path.with_name(f".{path.name}.tmp")
        try:
            with staged.open("wb") as file:
                file.write(canonical({"generation": self.generation, "url": self._url}))
                file.flush()
                # Else a machine that loses power may leave an empty file, and no replica starts with one.
                os.fsync(file.fileno())
            os.replace(staged, path)
        except OSError as error:
            if self._written:
                logger.error("state file not written path=%s error=%s: after a restart older is believed", path, error)
            self._written = False
            return
        self._written = True


def _read(path: Path, url: str) -> int:
    try:
        fields = Fields.parse(path.read_bytes(), str(path))
        generation, of = fields.integer("generation"), fields.text("url")
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise StartError(f"state file {path} cannot be made: {path.parent} is no directory") from None
        return 0
    except (OSError, VersionError) as error:
        raise StartError(
            f"state file {path} cannot be read: {error}; without it, an old pointer that somebody put back is believed "
            "at the start: look whether the model directory is as it should be, then delete the file"
        ) from error
    if of != url:
        raise StartError(f"state file {path} is of model directory {of}, not of {url}: name another file")
    return generation
