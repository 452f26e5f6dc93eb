"""The decoder for messages that hold one protobuf message each, by ptars from a FileDescriptorSet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from ptars import HandlerPool, PtarsConfig

from stream.decode import UNDECODABLE, Decoded, Failure, assemble, split_bad
from stream.errors import SourceError
from stream.framing import unframe_protobuf
from stream.protobuf_wire import WireCheck


class ProtobufDecoder:
    """One event per message; timestamps become microseconds in UTC, enums their numbers.

    A field that is not set is null where its schema tells that from a zero (proto2, `optional`, messages, members of a
    oneof); else it is the zero that the producer's library makes of it, but null for the columns `never_zero`.
    """

    format = "PROTOBUF"

    def __init__(
        self, descriptor: Descriptor, columns: Collection[str] | None = None, never_zero: Collection[str] = ()
    ) -> None:
        pool = HandlerPool([descriptor.file], PtarsConfig(timestamp_unit="us", list_nullable=False))
        self._handler = pool.get_for_message(descriptor)
        self._indexes = _indexes(descriptor)
        names = [field.name for field in descriptor.fields]
        self._names = names if columns is None else [name for name in names if name in columns]
        self._never_zero = set(never_zero) & set(unset_is_zero(descriptor, self._names))
        self._wire = WireCheck(descriptor, self._names)

    def decode(self, payloads: Sequence[bytes | None]) -> Decoded:
        """Decode a run of messages; those that are no such protobuf message are failures."""
        plain: list[bytes | None] = []
        foreign: list[Failure] = []
        for index, payload in enumerate(payloads):
            try:
                plain.append(unframe_protobuf(payload, self._indexes))
            except ValueError as error:
                plain.append(None)
                foreign.append(Failure(index=index, reason=UNDECODABLE, detail=str(error)))
        there = [index for index, payload in enumerate(plain) if payload]
        for fault in self._wire.faults([payload for payload in plain if payload]):
            plain[there[fault.index]] = None
            foreign.append(Failure(index=there[fault.index], reason=UNDECODABLE, detail=fault.detail))
        pieces, failures = split_bad(plain, self._decode_run)
        known = {failure.index for failure in foreign}
        return assemble(pieces, foreign + [f for f in failures if f.index not in known], len(payloads))

    def _decode_run(self, payloads: list[bytes]) -> pa.RecordBatch:
        try:
            rows = self._handler.list_to_record_batch(payloads)
        except RuntimeError as error:
            raise pa.ArrowInvalid(str(error)) from None
        except BaseException as error:
            # A length near 2^64 makes ptars panic, which is no Exception: uncaught, it would end the feed's thread.
            if type(error).__name__ != "PanicException":
                raise
            raise pa.ArrowInvalid(f"a length leads out of the message: {error}") from None
        if rows.num_rows != len(payloads):
            raise pa.ArrowInvalid(f"{len(payloads)} messages gave {rows.num_rows} rows")
        return self._with_nulls(rows.select(self._names))

    def _with_nulls(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        for name in self._never_zero:
            column = rows.column(name)
            zero = pa.scalar("" if pa.types.is_string(column.type) else 0, column.type)
            nulled = pc.if_else(pc.equal(column, zero), pa.scalar(None, column.type), column)
            rows = rows.set_column(rows.schema.get_field_index(name), name, nulled)
        return rows


def unset_is_zero(descriptor: Descriptor, names: Collection[str]) -> list[str]:
    """Which of the fields of these names are the same on the wire whether they are 0 or not set."""
    fields = [field for field in descriptor.fields if field.name in names]
    return [field.name for field in fields if not field.has_presence and not field.is_repeated]


def load_descriptor(path: str, message: str) -> Descriptor:
    """The descriptor of a message from a FileDescriptorSet file; raise SourceError where it is not there.

    `protoc --include_imports --descriptor_set_out=FILE` writes such a file.
    """
    try:
        described = descriptor_pb2.FileDescriptorSet.FromString(Path(path).read_bytes())
    except OSError as error:
        raise SourceError(f"protobuf_descriptor_file {path} cannot be read: {error.strerror}") from None
    except DecodeError:
        raise SourceError(
            f"protobuf_descriptor_file {path} is no FileDescriptorSet: write it with "
            "protoc --include_imports --descriptor_set_out=FILE"
        ) from None
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in described.file:
            pool.Add(file)
        return pool.FindMessageTypeByName(message)
    except (KeyError, TypeError) as error:
        raise SourceError(f"protobuf_message {message!r} is not in {path}: {error}") from None


def _indexes(descriptor: Descriptor) -> tuple[int, ...]:
    """The path of a message type in its file, as schema-registry frames carry it."""
    parent = descriptor.containing_type
    if parent is None:
        return (list(descriptor.file.message_types_by_name).index(descriptor.name),)
    return (*_indexes(parent), list(parent.nested_types_by_name).index(descriptor.name))
