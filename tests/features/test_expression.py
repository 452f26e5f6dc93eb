"""Formulas: the reference's vectors, muParser's levels, and a plain evaluator of one row on random formulas."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features import BASE, FeatureConfigError, FeatureSet
from features.expression import Operand, compile_expression
from features.expression.program import BLOCK_ROWS

Build = Callable[..., FeatureSet]
Cells: TypeAlias = object


def value(text: str, **variables: float) -> float:
    """A formula of one row."""
    program = compile_expression(text, list(variables))
    operands = [Operand(np.array([item], np.float64)) for item in variables.values()]
    return float(program(operands, 1).values[0])


LEVELS = [
    ("-2^2", -4), ("2^-1", 0.5), ("2^3^2", 512), ("2*3+4", 10), ("2+3*4", 14), ("8/4/2", 1), ("7-2-1", 4),
    ("1+1==2", 1), ("3>2>1", 0), ("1||0&&0", 1), ("6&3|8", 10), ("1|2==2", 1), ("0?1:2", 2), ("1?0?3:4:5", 4),
    ("0?1:0?2:3", 3), ("1<2?10:20", 10), ("--2", 2), ("+-2", -2), ("(1+2)*3", 9), ("1e3+.5", 1000.5), ("5.", 5),
    ("_pi", math.pi), ("_e", math.e), ("2 * 3", 6), ("-2*3", -6), ("2&&0||1", 1), ("1!=2", 1),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), LEVELS)
def test_operators_bind_as_in_muparser(text: str, expected: float) -> None:
    assert value(text) == expected


FUNCTIONS = [
    ("round(2.5)", 3), ("round(-2.5)", -3), ("rint(2.5)", 3), ("rint(-2.5)", -2), ("roundp(1.256, 2)", 1.26),
    ("floor(-1.5)", -2), ("ceil(-1.5)", -1), ("trunc(-1.5)", -1), ("sign(0)", 0), ("sign(-3)", -1), ("abs(-3)", 3),
    ("mod(7, 3)", 1), ("mod(-7, 3)", -1), ("log(_e)", 1), ("ln(_e)", 1), ("log2(8)", 3), ("log10(100)", 2),
    ("exp(0)", 1), ("sqrt(9)", 3), ("min(3, 1, 2)", 1), ("max(3, 1, 2)", 3), ("sum(1, 2, 3)", 6), ("avg(1, 2, 3)", 2),
    ("sigmoid(0)", 0.5), ("isnan(0/0)", 1), ("isnan(1)", 0), ("sin(0)+cos(0)+tan(0)", 1), ("asin(1)", math.pi / 2),
    ("acos(1)", 0), ("atan(1)", math.pi / 4), ("sinh(0)+cosh(0)+tanh(0)", 1), ("asinh(0)+acosh(1)+atanh(0)", 0),
    ("atan2(1, 1)", math.pi / 4), ("cot(1)*tan(1)", 1), ("coth(1)*tanh(1)", 1), ("1/0", math.inf), ("-1/0", -math.inf),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FUNCTIONS)
def test_functions_of_numbers(text: str, expected: float) -> None:
    assert value(text) == pytest.approx(expected, rel=1e-15)


VECTORS = [
    ("len(a)", [3, 1]), ("l2_norm(a)", [math.sqrt(14), 4]), ("squared_norm(a)", [14, 16]), ("dot(a, b)", [20, 8]),
    ("euclid_dist(a, b)", [math.sqrt(3), 2]), ("reduce_min(a)", [1, 4]), ("reduce_max(a)", [3, 4]),
    ("reduce_sum(a)", [6, 4]), ("reduce_mean(a)", [2, 4]), ("reduce_prod(a)", [6, 4]),
    ("variance(a)", [2 / 3, 0]), ("pop_variance(a)", [1, math.nan]), ("std_dev(a)", [math.sqrt(2 / 3), 0]),
    ("pop_std_dev(a)", [1, math.nan]), ("corr(a, b)", [1, math.nan]), ("reduce_sum(a) + c", [16, 24]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), VECTORS)
def test_functions_of_vectors(text: str, expected: list[float]) -> None:
    lengths = np.array([3, 1], np.int32)
    a, b = Operand(np.array([1.0, 2, 3, 4]), lengths), Operand(np.array([2.0, 3, 4, 2]), lengths)
    made = compile_expression(text, ["a", "b", "c"])([a, b, Operand(np.array([10.0, 20.0]))], 2)
    assert made.lengths is None
    np.testing.assert_allclose(made.values, expected, rtol=1e-15)


def test_elements_of_vectors_go_with_the_numbers_of_their_row() -> None:
    a = Operand(np.array([1.0, 2, 3, 2, 1]), np.array([4, 1], np.int32))
    made = compile_expression("a==b", ["a", "b"])([a, Operand(np.array([2.0, 1.0]))], 2)
    assert made.values.tolist() == [0, 1, 0, 1, 1]


def test_the_shorter_of_two_vectors_is_filled_up() -> None:
    a = Operand(np.array([1.0, 2, 3]), np.array([3], np.int32))
    b = Operand(np.array([10.0, 20]), np.array([2], np.int32))
    program = compile_expression("a+b", ["a", "b"])
    assert program([a, b], 1, 5.0).values.tolist() == [11, 22, 8]
    assert math.isnan(program([a, b], 1).values[2])


def test_distance_on_the_globe() -> None:
    assert value("sphere_dist(113.1057, 22.5614, 116.4074, 39.9042)") == pytest.approx(1955, abs=10)
    assert value("haversine(0, 0, 0, 0)") == 0


def test_rnd_is_drawn_from_the_row() -> None:
    program = compile_expression("rnd() + 0 * rnd()", ["a"])
    rows = np.random.default_rng(0).random(BLOCK_ROWS * 2)
    drawn = program([Operand(rows)], len(rows)).values
    assert drawn.min() > 0 and drawn.max() < 1 and abs(drawn.mean() - 0.5) < 0.02
    assert program([Operand(rows[5000:5003])], 3).values.tolist() == drawn[5000:5003].tolist()
    assert value("rnd() == rnd()", a=1.0) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 +", "cannot be read"), ("a b", "cannot be read"), ("!a", "cannot be read"), ("a % 2", "cannot be read"),
        ("__import__('os')", "cannot be read"), ("b", "'b' is no variable"), ("open(a)", "'open' is no function"),
        ("sin(a, a)", "sin takes 1 arguments, not 2"), ("min()", "min takes 1 or more"), ("a.b", "cannot be read"),
        ("(" * 200 + "a" + ")" * 200 + "+" + "-" * 200 + "a", "nested more than"), ("a" * 20_000, "characters"),
    ],
)  # fmt: skip
def test_what_is_no_formula_says_why(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compile_expression(text, ["a"])


# --- an evaluator of one row, apart from everything that is tested


@dataclass(frozen=True)
class Formula:
    text: str
    of: Callable[[dict[str, float]], float]


def _safe(how: Callable[..., float]) -> Callable[..., float]:
    def run(*arguments: float) -> float:
        try:
            made = how(*arguments)
        except (ZeroDivisionError, ValueError, OverflowError):
            return math.nan
        return math.nan if isinstance(made, complex) else float(made)

    return run


BINARY: dict[str, Callable[..., float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "/": operator.truediv,
    "&&": lambda a, b: a != 0 and b != 0, "||": lambda a, b: a != 0 or b != 0,
}  # fmt: skip
UNARY: dict[str, Callable[..., float]] = {
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "sqrt": math.sqrt,
    "atan": math.atan,
}


def _binary(parts: tuple[str, Formula, Formula]) -> Formula:
    sign, one, other = parts
    how = _safe(BINARY[sign])
    return Formula(f"({one.text}) {sign} ({other.text})", lambda row: how(one.of(row), other.of(row)))


def _unary(parts: tuple[str, Formula]) -> Formula:
    name, inner = parts
    how = _safe(UNARY[name])
    return Formula(f"{name}({inner.text})", lambda row: how(inner.of(row)))


def _choice(parts: tuple[Formula, Formula, Formula]) -> Formula:
    condition, then, otherwise = parts
    return Formula(
        f"({condition.text}) ? {then.text} : {otherwise.text}",
        lambda row: then.of(row) if condition.of(row) != 0 else otherwise.of(row),
    )


LEAVES = st.sampled_from([Formula(name, operator.itemgetter(name)) for name in "abc"]) | st.integers(0, 9).map(
    lambda number: Formula(str(number), lambda row: float(number))
)
FORMULAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(sorted(BINARY)), inner, inner).map(_binary),
        st.tuples(st.sampled_from(sorted(UNARY)), inner).map(_unary),
        st.tuples(inner, inner, inner).map(_choice),
    ),
    max_leaves=12,
)
ROWS = st.lists(st.tuples(*[st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float)] * 3), min_size=1, max_size=6)


@settings(max_examples=200, deadline=None)
@given(FORMULAS, ROWS)
def test_formulas_equal_a_plain_evaluator(formula: Formula, rows: list[tuple[float, float, float]]) -> None:
    columns = [Operand(np.array(column)) for column in zip(*rows, strict=True)]
    made = compile_expression(formula.text, list("abc"))(columns, len(rows)).values
    for ours, row in zip(made.tolist(), rows, strict=True):
        expected = formula.of(dict(zip("abc", row, strict=True)))
        if math.isfinite(expected) and math.isfinite(ours):
            assert ours == expected


# --- as a feature


def expr(options: str, expression: str = "a+b", more: str = 'variables: ["user:a", "user:b"]') -> str:
    return f'feature_configs {{ expr_feature {{ feature_name: "f" expression: "{expression}" {more} {options} }} }}'


def rows_of(**columns: Cells) -> pa.RecordBatch:
    return pa.record_batch(
        {name: cells if isinstance(cells, pa.Array) else pa.array(cells) for name, cells in columns.items()}
    )


def numbers(features: FeatureSet, rows: pa.RecordBatch) -> list[list[float]]:
    assert not features.validate(rows)
    found: list[list[float]] = features.parse(rows).dense_features[BASE].values().tolist()
    return found


def ids(features: FeatureSet, rows: pa.RecordBatch) -> tuple[list[int], list[int]]:
    assert not features.validate(rows)
    tensor = features.parse(rows).sparse_features[BASE]
    return tensor.values().tolist(), tensor.lengths().tolist()


def narrow(values: list[float]) -> list[list[float]]:
    found: list[list[float]] = np.array(values, np.float32)[:, None].tolist()
    return found


def test_expr_equals_the_reference(build: Build) -> None:
    rows = rows_of(a=["0.2", "", "0.3", None], b=[0.2] * 4)
    assert numbers(build(expr('default_value: "0.1"')), rows) == narrow([0.4, 0.1, 0.5, 0.1])


BOUNDS = "boundaries: [0.15, 0.25, 0.35] embedding_dim: 4"


def test_expr_buckets_equal_the_reference(build: Build) -> None:
    rows = rows_of(a=[0.2, 0.1, 0.3, None], b=[0.2] * 4)
    assert ids(build(expr(f'default_value: "0.1" {BOUNDS}')), rows) == ([3, 2, 3, 0], [1] * 4)
    rows = rows_of(a=["0.2", "", "0.3"], b=[0.2] * 3)
    assert ids(build(expr(f'default_value: "" {BOUNDS}')), rows) == ([3, 3], [1, 0, 1])


@pytest.mark.parametrize("separator", [",", "\x1d"])
def test_expr_of_vectors_equals_the_reference(build: Build, separator: str) -> None:
    bounds = 'boundaries: [0.05, 0.10, 0.15] embedding_dim: 4 separator: "' + separator.replace("\x1d", "\\x1d") + '"'
    a = [separator.join(row) for row in (["0.2", "0.2"], [], ["0.3", "0.4"])]
    rows = rows_of(a=a, b=[separator.join(["0.2", "0.2"])] * 3)
    assert ids(build(expr(f'default_value: "" {bounds}', "dot(a, b)")), rows) == ([1, 2], [1, 0, 1])
    lists = rows_of(a=[[0.2, 0.3], [0.1, 0.2], [0.3, 0.4], []], b=[[0.2, 0.2]] * 4)
    assert ids(build(expr(f'default_value: "0.1" {bounds}', "dot(a, b)")), lists) == ([2, 1, 2, 2], [1] * 4)


def test_expr_of_several_values_equals_the_reference(build: Build) -> None:
    rows = rows_of(a=["1\x1d2\x1d3\x1d2", "1\x1d1\x1d1\x1d1"], b=[2, 1])
    assert numbers(build(expr("value_dim: 4", "a==b")), rows) == [[0, 1, 0, 1], [1, 1, 1, 1]]


def test_expr_gives_one_bucket_for_each_element(build: Build) -> None:
    rows = rows_of(a=[[1.0, 2.0], [3.0], None], b=[0, 0, 0])
    features = build(expr('boundaries: [1.5, 2.5] embedding_dim: 4 default_value: "9"'))
    assert ids(features, rows) == ([0, 1, 2, 2], [2, 1, 1])


def test_what_is_not_a_number_is_the_default_and_infinity_a_bad_row(build: Build) -> None:
    features = build(expr('default_value: "7"', "a/b"))
    rows = rows_of(a=[0.0, 1.0, 1.0], b=[0.0, 0.0, 2.0])
    errors = features.validate(rows)
    assert (errors.rows.tolist(), errors.reasons) == ([1], ("not_finite",))
    assert features.parse(rows.take(pa.array([0, 2]))).dense_features[BASE].values().tolist() == [[7], [0.5]]


def test_expr_names_bad_rows(build: Build) -> None:
    errors = build(expr("")).validate(rows_of(a=["1", "x", None], b=[1, 2, 3]))
    assert (errors.rows.tolist(), errors.reasons) == ([1], ("not_a_number",))
    assert errors.details[0].startswith("feature 'f': ") and "'x'" in errors.details[0]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (expr("", "a+c"), "'c' is no variable"),
        (expr("", "a+"), "cannot be read"),
        (expr("", "a", ""), "variables is empty"),
        (expr('default_value: "x"'), "must be numbers"),
    ],
)
def test_exprs_that_cannot_be_built_say_why(build: Build, config: str, message: str) -> None:
    with pytest.raises(FeatureConfigError, match=message):
        build(config)


def test_a_normalizer_may_be_a_formula_with_commas(build: Build) -> None:
    raw = 'feature_configs {{ raw_feature {{ feature_name: "f" expression: "user:a" normalizer: "{}" }} }}'
    rows = rows_of(a=[20.0, 3.0, None])
    assert numbers(build(raw.format("method=expression,expr=x>16?16:x")), rows) == [[16], [3], [0]]
    assert numbers(build(raw.format("method=expression,expr=max(x, 5) + 1")), rows) == [[21], [6], [0]]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.none() | st.floats(allow_nan=False), st.none() | st.floats()), min_size=1, max_size=30))
def test_a_rows_value_does_not_depend_on_its_neighbours(
    build: Build, pairs: list[tuple[float | None, float | None]]
) -> None:
    features = build(expr("", "a > b ? a - b : b * 2"))
    rows = rows_of(a=pa.array([a for a, _ in pairs], pa.float64()), b=pa.array([b for _, b in pairs], pa.float64()))
    bad = features.validate(rows).bad
    for row in range(len(pairs)):
        assert bool(features.validate(rows.slice(row, 1))) == bool(bad[row])
    good = rows.filter(pa.array(~bad))
    whole = features.parse(good).dense_features[BASE].values() if good.num_rows else []
    for row in range(good.num_rows):
        assert features.parse(good.slice(row, 1)).dense_features[BASE].values().tolist()[0] == whole[row].tolist()


def test_expr_counts_rows_that_miss_an_input(build: Build) -> None:
    features = build(expr(""))
    features.parse(rows_of(a=[1, None, 3], b=[None, None, 3]))
    assert features.counts.totals() == {("f", "null"): 2, ("f", "defaulted"): 2}
