"""What a feature is to the model: a frozen description, without the way it is computed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

BASE = "__BASE__"
WEIGHTED = "__BASE___weighted"
"""Data group of the weighted features, and of those that share a table with one."""

WEIGHTED_END = "_weighted"
NEGATIVE = "__NEG__"
"""Data group of features of one sampled column: the rows of the batch, then those of the negatives."""
CROSS = "__CNEG__"
"""The same, of features of several columns, all of them sampled."""

MAX_RAW_ID = 2**63 - 2
"""Raw ids of zero-collision tables are 0 ... 2^63-2 (architecture.md section 4, Ids)."""


class Side(Enum):
    """Where an input comes from."""

    USER = "user"
    ITEM = "item"
    CONTEXT = "context"
    FEATURE = "feature"
    CONST = "const"


@dataclass(frozen=True, kw_only=True, slots=True)
class ZchSpec:
    """A zero-collision table: `policy` is hash, lru, lfu or distance_lfu; the rest means what the config says."""

    size: int
    policy: str = "hash"
    eviction_interval: int = 5
    threshold_filtering_func: str = ""
    decay_exponent: float = 1.0
    ttl_ms: int | None = None
    admission_count: int = 1
    admission_capacity: int = 0
    buckets: int = 0
    max_probe: int = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingSpec:
    """The table that a sparse feature looks up; features that name the same one share it."""

    name: str
    num_embeddings: int
    dim: int
    pooling: str = "sum"
    init_fn: str = ""
    data_type: str = "FP32"
    trainable: bool = True
    zch: ZchSpec | None = None
    sharding_types: tuple[str, ...] = ()
    compute_kernels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class DenseEmbeddingSpec:
    """How the number of a dense feature becomes a vector of `dim`: "autodis" or "mlp" (models_and_features.md 1.8)."""

    method: str
    dim: int
    channels: int = 0
    temperature: float = 0.1
    keep_prob: float = 0.8


@dataclass(frozen=True, kw_only=True, slots=True)
class Feature:
    """One feature. `inputs` are its columns and `sides` theirs; `dense_dim` is 0 for sparse features."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    sides: tuple[Side, ...]
    data_group: str = BASE
    is_sparse: bool
    is_sequence: bool = False
    is_weighted: bool = False
    is_stub: bool = False
    """Computed for other features only: in no batch (FG_DAG)."""
    sequence_name: str = ""
    """The group that a sequence belongs to; sequences of a group have the same steps."""
    sequence_length: int = 0
    user_side: bool | None = None
    """What the graph says of the side; None: the inputs' sides say it."""
    value_dim: int
    dense_dim: int = 0
    embedding: EmbeddingSpec | None = None
    dense_embedding: DenseEmbeddingSpec | None = None

    @property
    def is_user(self) -> bool:
        """The value is the same for all items of a request: a user's inputs only, or a grouped sequence."""
        if self.user_side is not None:
            return self.user_side
        return bool(self.sequence_name) or all(side is Side.USER for side in self.sides)
