"""Named points between two steps of a durable write, where a test or the fault harness may stop the process.

A write named `N` passes `N_written` (bytes handed to the system), `N_synced` (file fsynced), `N_linked` (visible under
its final name) and `N_dirsynced` (its directory fsynced), in this order. An object store passes `N_written` and
`N_linked`.
"""

from typing import Protocol

STEPS = ("written", "synced", "linked", "dirsynced")
WRITES = (
    "commit.blob",
    "commit.manifest",
    "compact.blob",
    "compact.manifest",
    "epoch.claim",
    "epoch.seal",
    "collect.floor",
)
POINTS = tuple(f"{write}_{step}" for write in WRITES for step in STEPS) + (
    "commit.manifest_counted",
    "collect.manifest_deleted",
    "collect.blob_deleted",
    "collect.bases_deleted",
)


class FaultPoints(Protocol):
    """Whoever wants to stop the process at a named point."""

    def reached(self, point: str) -> None:
        """Return to go on; raise, or never return, to stop here."""


class NoFaults:
    """Nothing ever happens."""

    def reached(self, point: str) -> None:
        """Go on."""


NO_FAULTS = NoFaults()
