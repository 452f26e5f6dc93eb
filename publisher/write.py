"""Writing one version: delta, dense, manifest, in this order, each durable before the next (FORMAT.md, section 3)."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from checkpointer import dense as dense_codec
from checkpointer.commit import Commit
from checkpointer.encoding import Encoding, encode, row_bytes
from checkpointer.rows import Column
from checkpointer.store import Store
from protos.commit_pb2 import StreamState
from publisher.blobs import put, put_once
from publisher.changes import NetRows
from publisher.codec import encode_version
from publisher.contract import Contract
from publisher.errors import PublisherBusyError
from publisher.manifest import Artefact, Asset, Base, Blob, Delta, ServingVersion, manifest_path
from publisher.pointer import Target
from publisher.progress import stream_ranges, watermark_ms
from publisher.rows import ServingRows, encode_rows
from publisher.signing import Signer
from publisher.versions import read_version


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """A complete version and the digest of its manifest."""

    version: ServingVersion
    digest: str

    @property
    def target(self) -> Target:
        """What the pointer says of it."""
        return Target(version=self.version.version, digest=self.digest)


@dataclass(frozen=True, kw_only=True, slots=True)
class Material:
    """What a version is made of, apart from its sparse rows."""

    commit: Commit
    dense: Mapping[str, Column]
    stream: Sequence[StreamState]
    artefacts: tuple[Artefact, ...]


class VersionWriter:
    """Writes versions of one contract."""

    def __init__(
        self, store: Store, contract: Contract, encoding: str, *, signer: Signer | None, clock_ms: Callable[[], int]
    ) -> None:
        self._store = store
        self._contract = contract
        self._encoding = encoding
        self._signer = signer
        self._clock_ms = clock_ms
        stem = f"contracts/{contract.digest}/"
        self._config = put(store, stem, ".config", contract.config, point="publish.config")
        self._layout = put(store, stem, ".layout", contract.layout, point="publish.layout")
        self._described = put(store, stem, ".features", contract.described, point="publish.features")
        self._assets = tuple(
            Asset(name=name, blob=put(store, stem, ".asset", content, point="publish.asset"))
            for name, content in contract.assets
        )

    @property
    def held(self) -> frozenset[str]:
        """The files that every version to come will name."""
        assets = (asset.blob.path for asset in self._assets)
        return frozenset((self._config.path, self._layout.path, self._described.path, *assets))

    def delta(self, rows: Sequence[NetRows], after: int, seq: int) -> Delta:
        """Write what the commits in (after, seq] changed. Raises EncodingError."""
        parts = [
            ServingRows(table=net.table, ids=net.ids, rows=self._encoded(net.weights), deleted=net.deleted)
            for net in rows
        ]
        stem = f"deltas/{seq:020d}-"
        blobs = tuple(
            put(self._store, stem, ".parquet", payload, point="publish.delta") for payload in encode_rows(parts)
        )
        return Delta(
            after=after,
            seq=seq,
            rows=sum(len(part) for part in parts),
            resets=tuple(net.table for net in rows if net.reset),
            blobs=blobs,
        )

    def extend(
        self, last: ServingVersion, delta: Delta, base: Base | None, reach: int, material: Material
    ) -> Published:
        """Write the version after `last`, on `base` if there is one; `reach` deltas before the base are kept."""
        chosen = base or last.base
        deltas = (*last.deltas, delta)
        older = [known for known in deltas if known.seq <= chosen.seq]
        kept = deltas[max(len(older) - reach, 0) :]
        return self._link(last.series, chosen, kept, last, material)

    def start(self, base: Base, last: ServingVersion | None, material: Material) -> Published:
        """Write a version that only a base leads to."""
        series = f"{material.commit.chain}-{base.seq}-{self._encoding}"
        return self._link(series, base, (), last, material)

    def _link(
        self,
        series: str,
        base: Base,
        deltas: tuple[Delta, ...],
        last: ServingVersion | None,
        material: Material,
    ) -> Published:
        commit = material.commit
        version = ServingVersion(
            version=commit.seq,
            previous=last.version if last else None,
            chain=commit.chain,
            commit=commit.digest,
            series=series,
            contract=self._contract.digest,
            features=self._contract.features,
            step=commit.step,
            event_time_ms=commit.event_time_ms,
            watermark_ms=watermark_ms(material.stream),
            broker_time_ms=commit.broker_time_ms,
            created_ms=self._clock_ms(),
            encoding=self._encoding,
            tables=self._contract.tables,
            base=base,
            deltas=deltas,
            dense=self._dense(commit.seq, material.dense),
            artefacts=material.artefacts,
            config=self._config,
            layout=self._layout,
            stream=stream_ranges(material.stream, last.stream if last else ()),
            metrics=dict(commit.figures),
            assets=self._assets,
            described=self._described,
        )
        payload = encode_version(version, self._signer)
        if put_once(self._store, version.path, payload, point="publish.manifest"):
            return Published(version=version, digest=hashlib.sha256(payload).hexdigest())
        return self._adopt(version)

    def _encoded(self, weights: np.ndarray) -> np.ndarray:
        if not len(weights):
            return np.empty((0, row_bytes(Encoding(self._encoding), weights.shape[1])), np.uint8)
        return encode(weights, Encoding(self._encoding))

    def _adopt(self, version: ServingVersion) -> Published:
        """Take the manifest that another publisher linked first."""
        found = load_published(self._store, version.version, self._signer)
        if (found.version.contract, found.version.encoding) != (version.contract, version.encoding):
            raise PublisherBusyError(
                f"a publisher with another configuration wrote {version.path}: stop one of the two"
            )
        return found

    def _dense(self, seq: int, arrays: Mapping[str, Column]) -> Blob:
        payload = dense_codec.to_buffers(arrays)
        return put(self._store, f"dense/{seq:020d}-", ".safetensors", payload, point="publish.dense")


def load_published(store: Store, seq: int, signer: Signer | None) -> Published:
    """Read a version that this or another publisher completed."""
    version = read_version(store, seq, verifier=signer.verifier if signer else None)
    return Published(version=version, digest=hashlib.sha256(store.get(manifest_path(seq))).hexdigest())
