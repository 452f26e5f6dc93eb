"""The way back: what undoes the last versions that were applied, so that a rollback need not load a base."""

from collections import deque
from dataclasses import dataclass

from publisher.manifest import ServingVersion
from publisher.replica.tables import Patch


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A version that went forward, and what leads back from it to the one before."""

    before: ServingVersion
    undo: tuple[Patch, ...]

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return sum(patch.nbytes for patch in self.undo)


class History:
    """The last steps, within a limit of memory."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._steps: deque[Step] = deque()
        self._bytes = 0

    def add(self, before: ServingVersion, undo: tuple[Patch, ...] | None) -> None:
        """Remember a step; one that cannot be undone (None) ends the way back."""
        if undo is None:
            self.clear()
            return
        step = Step(before=before, undo=undo)
        self._steps.append(step)
        self._bytes += step.nbytes
        while self._bytes > self._max_bytes:
            self._bytes -= self._steps.popleft().nbytes

    def back_to(self, version: ServingVersion) -> tuple[Patch, ...] | None:
        """Return the patches that lead back to a version; None where the way is not remembered."""
        patches: list[Patch] = []
        for step in reversed(self._steps):
            patches.extend(step.undo)
            if step.before == version:
                return tuple(patches)
        return None

    def drop_to(self, version: ServingVersion) -> None:
        """Forget the steps after a version that has been gone back to."""
        while self._steps:
            step = self._steps.pop()
            self._bytes -= step.nbytes
            if step.before == version:
                return

    def clear(self) -> None:
        """Forget everything."""
        self._steps.clear()
        self._bytes = 0
