"""What requests carry: the columns that features read, and the tensors by which a client sends each."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from features import Feature, FeatureSet
from protos import data_pb2, pipeline_pb2
from publisher.replica.protocol import BYTES, wire_type
from publisher.replica.request import InputColumn
from publisher.replica.serving import TensorSpec
from stream.decode_schema import declared_schema

_LENGTHS: Final = "INT32"
_ARROW: Final = {
    BYTES: pa.string(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FP32": pa.float32(),
    "FP64": pa.float64(),
}


def input_columns(config: pipeline_pb2.EasyRecConfig, features: FeatureSet) -> tuple[InputColumn, ...]:
    """The columns, with their declared types, their readers, and which are the user's for all of them."""
    schema = declared_schema(config.data_config)
    declared = {} if schema is None else {field.name: field.type for field in schema}
    return tuple(
        InputColumn(
            name=name, user=name in features.user_columns, type=declared.get(name), features=features.readers[name]
        )
        for name in features.input_columns
    )


def input_tensors(
    config: pipeline_pb2.EasyRecConfig, features: FeatureSet, columns: Sequence[InputColumn]
) -> tuple[TensorSpec, ...]:
    """The tensors of all columns: by the declared type, else of what the column's first feature usually reads."""
    encoded = config.data_config.fg_mode == data_pb2.FG_NONE
    by_name = {feature.name: feature for feature in features.features}
    return tuple(
        TensorSpec(
            name=f"{column.name}.{part}" if part else column.name,
            datatype=datatype,
            shape=(-1,) if part else (-1, *_width(column, by_name)),
            column=column.name if part else "",
            user=column.user,
        )
        for column in columns
        for part, datatype in _parts(column, by_name, encoded)
    )


def _width(column: InputColumn, features: dict[str, Feature]) -> tuple[int, ...]:
    """How many numbers a row of an undeclared column holds, where its first feature says so."""
    feature = features.get(column.features[0])
    if column.type is not None or feature is None or not _is_number(feature) or feature.value_dim <= 1:
        return ()
    return (feature.value_dim,)


def sample(columns: Sequence[InputColumn], tensors: Sequence[TensorSpec], rows: int) -> pa.RecordBatch:
    """Rows that almost every feature takes, of the types that clients usually send: 1 wherever a value is."""
    usual = {spec.name: _arrow(spec) for spec in tensors if not spec.column}
    arrays = [pa.array([_one(kind)] * rows, kind) for kind in (column.type or usual[column.name] for column in columns)]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def _arrow(spec: TensorSpec) -> pa.DataType:
    kind = _ARROW[spec.datatype]
    return kind if len(spec.shape) == 1 else pa.list_(kind, spec.shape[1])


def _one(kind: pa.DataType) -> object:
    if pa.types.is_map(kind):
        return [(_one(kind.key_type), _one(kind.item_type))]
    if pa.types.is_fixed_size_list(kind):
        return [_one(kind.value_type)] * kind.list_size
    if pa.types.is_list(kind):
        return [_one(kind.value_type)]
    return "1" if pa.types.is_string(kind) else 1


def _parts(column: InputColumn, features: dict[str, Feature], encoded: bool) -> Iterator[tuple[str, str]]:
    kind = column.type
    if kind is None:
        yield "", _usual(features.get(column.features[0]), encoded)
    elif pa.types.is_map(kind):
        yield "keys", _scalar(kind.key_type)
        yield "values", _scalar(kind.item_type)
        yield "lengths", _LENGTHS
    elif pa.types.is_list(kind) and pa.types.is_list(kind.value_type):
        yield "values", _scalar(kind.value_type.value_type)
        yield "key_lengths", _LENGTHS
        yield "lengths", _LENGTHS
    elif pa.types.is_list(kind):
        yield "values", _scalar(kind.value_type)
        yield "lengths", _LENGTHS
    else:
        yield "", _scalar(kind)


def _scalar(kind: pa.DataType) -> str:
    return BYTES if pa.types.is_string(kind) else wire_type(np.dtype(kind.to_pandas_dtype()))


def _usual(feature: Feature | None, encoded: bool) -> str:
    """Text fits every feature; a column may have no reader but stubs."""
    if feature is not None and _is_number(feature):
        return "FP32"
    return "INT64" if encoded else BYTES


def _is_number(feature: Feature) -> bool:
    return feature.kind == "raw" and not feature.is_sequence
