"""Which script measures which figure of the issue, and with how many threads."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """A module `benchmarks.NAME` with `measure(quick) -> list[Figure]`. `threads` is its OMP_NUM_THREADS.

    `kafka` tells that it starts a real Apache Kafka; `cheap`, that `--quick` takes seconds.
    """

    name: str
    figures: tuple[str, ...]
    threads: int
    kafka: bool = False
    cheap: bool = False


SCRIPTS = (
    Script(name="arrow_to_batch", figures=("arrow_to_batch",), threads=1, cheap=True),
    Script(
        name="delta_bytes",
        figures=("delta_bytes_per_row_int8", "delta_bytes_per_row_fp32"),
        threads=2,
        cheap=True,
    ),
    Script(
        name="feature_kinds",
        figures=(
            "features_id_integer_num_buckets",
            "features_id_integer_hash",
            "features_id_string_hash",
            "features_id_string_vocabulary",
            "features_id_float_hash",
            "features_raw_zscore",
            "features_raw_boundaries",
            "features_combo",
            "features_combine",
            "features_combine_text",
            "features_lookup_map",
            "features_lookup_text",
            "features_match",
            "features_overlap_ratio",
            "features_overlap_distance",
            "features_kv_dot_product",
            "features_bool_mask",
            "features_expr",
            "features_tokenize",
            "features_custom_edit_distance",
            "features_sequence_string_hash",
            "features_sequence_integer_num_buckets",
            "features_sequence_raw_boundaries",
        ),
        threads=1,
    ),
    Script(
        name="feature_mix",
        figures=("features_mix", "features_mix_beside_polars", "features_mix_beside_duckdb", "features_request_p99"),
        threads=1,
    ),
    Script(name="online_tax", figures=("online_tax",), threads=2),
    Script(name="online_tax_whole", figures=("online_tax_whole",), threads=2),
    Script(name="lookup_swap", figures=("lookup_p99_during_swap",), threads=1),
    Script(name="kafka_to_batch", figures=("kafka_to_batch",), threads=1, kafka=True),
    Script(name="seal_pause", figures=("seal_pause_p99", "seal_pause_share"), threads=2),
    Script(name="recovery", figures=("recovery_standby", "recovery_cold"), threads=2, kafka=True),
    Script(
        name="staleness",
        figures=("staleness_p50", "staleness_p99", "staleness_p50_at_95", "staleness_p99_at_95"),
        threads=1,
        kafka=True,
    ),
)
