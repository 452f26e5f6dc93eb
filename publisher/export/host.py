"""What a compiled artefact depends on: library version, machine, instruction set."""

import platform
from dataclasses import dataclass
from pathlib import Path

import torch

from publisher.manifest import Artefact

_VECTOR = (
    "sse",
    "ssse",
    "avx",
    "fma",
    "f16c",
    "bmi",
    "amx",
    "vaes",
    "vpclmul",
    "gfni",
    "popcnt",
    "asimd",
    "sve",
    "neon",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """A machine as a compiler sees it; `isa` are the kernel's names of its vector extensions."""

    torch: str
    machine: str
    isa: frozenset[str]

    def unfit(self, artefact: Artefact) -> str | None:
        """Say why the artefact must not be loaded here; None: it may."""
        if artefact.torch != self.torch:
            return f"compiled with torch {artefact.torch}, this host has {self.torch}"
        if artefact.machine != self.machine:
            return f"compiled for {artefact.machine}, this host is {self.machine}"
        lacking = sorted(set(artefact.isa.split()) - self.isa)
        return f"compiled for {' '.join(lacking)}, which this host lacks" if lacking else None


def this_host(cpuinfo: Path = Path("/proc/cpuinfo")) -> Host:
    """Describe the machine that this process runs on."""
    return Host(torch=torch.__version__, machine=platform.machine(), isa=_extensions(cpuinfo))


def _extensions(cpuinfo: Path) -> frozenset[str]:
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return frozenset(flag for flag in flags.partition(":")[2].split() if flag.startswith(_VECTOR))
