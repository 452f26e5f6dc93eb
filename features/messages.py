"""Groups of feature messages that have fields in common."""

from __future__ import annotations

from protos import feature_pb2

Tokened = (
    feature_pb2.IdFeature
    | feature_pb2.ComboFeature
    | feature_pb2.LookupFeature
    | feature_pb2.MatchFeature
    | feature_pb2.BoolMaskFeature
    | feature_pb2.CustomFeature
)
"""Features whose tokens become ids."""

Numeric = (
    feature_pb2.RawFeature
    | feature_pb2.CombineFeature
    | feature_pb2.LookupFeature
    | feature_pb2.MatchFeature
    | feature_pb2.ExprFeature
    | feature_pb2.OverlapFeature
    | feature_pb2.KvDotProduct
    | feature_pb2.CustomFeature
)
"""Features of numbers, which boundaries may turn into ids, and which may have a dense embedding."""

Message = Tokened | Numeric | feature_pb2.TokenizeFeature
"""Any of the feature messages."""
