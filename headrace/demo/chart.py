"""Line charts as inline SVG: no script, no network, nothing to install."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 620, 272, 70, 32, 24, 32
_COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df")


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One curve; `x` and `y` of equal length."""

    name: str
    x: np.ndarray
    y: np.ndarray
    step: bool = False


def chart(title: str, lines: Sequence[Line], *, x_label: str, y_label: str, zero: bool = False) -> str:
    """Return one `<figure>`; `zero` makes the y axis begin at zero."""
    drawn = [line for line in lines if len(line.x)]
    if not drawn:
        return f"<figure><figcaption>{html.escape(title)}</figcaption><p>nothing was recorded</p></figure>"
    x_range = _range(np.concatenate([line.x for line in drawn]), zero=False)
    y_range = _range(np.concatenate([line.y for line in drawn]), zero=zero)
    body = [_axes(x_range, y_range, x_label, y_label)]
    body += [_curve(line, x_range, y_range, _COLOURS[i % len(_COLOURS)]) for i, line in enumerate(drawn)]
    body += [_legend(line, i) for i, line in enumerate(drawn)]
    svg = f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{"".join(body)}</svg>'
    return f"<figure><figcaption>{html.escape(title)}</figcaption>{svg}</figure>"


def _range(values: np.ndarray, *, zero: bool) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    low = min(0.0, low) if zero else low
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def ticks(low: float, high: float) -> list[float]:
    """Three to eight round numbers from `low` to `high`.

    >>> ticks(0.53, 0.734)
    [0.55, 0.6, 0.65, 0.7]
    >>> ticks(0.0007, 34.5)
    [10.0, 20.0, 30.0]
    """
    power = 10.0 ** math.floor(math.log10((high - low) / 3))
    step = power * max(factor for factor in (1, 2, 5) if factor * power <= (high - low) / 3)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [float(f"{number * step:.10g}") for number in range(first, last + 1)]


def _x(value: float, span: tuple[float, float]) -> float:
    return _LEFT + (value - span[0]) / (span[1] - span[0]) * (_WIDTH - _LEFT - _RIGHT)


def _y(value: float, span: tuple[float, float]) -> float:
    return _HEIGHT - _BOTTOM - (value - span[0]) / (span[1] - span[0]) * (_HEIGHT - _BOTTOM - _TOP)


def _curve(line: Line, x_range: tuple[float, float], y_range: tuple[float, float], colour: str) -> str:
    keep = np.isfinite(line.y)
    x, y = line.x[keep], line.y[keep]
    if len(x) > 1500:
        chosen = np.linspace(0, len(x) - 1, 1500).astype(int)
        x, y = x[chosen], y[chosen]
    if line.step and len(x) > 1:
        x, y = np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]
    points = " ".join(f"{_x(a, x_range):.1f},{_y(b, y_range):.1f}" for a, b in zip(x, y, strict=True))
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>'


def _axes(x_range: tuple[float, float], y_range: tuple[float, float], x_label: str, y_label: str) -> str:
    parts = []
    for value in ticks(*y_range):
        y = _y(value, y_range)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.10g}</text>')
    for value in ticks(*x_range):
        x = _x(value, x_range)
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{value:,.10g}</text>')
    middle = (_WIDTH + _LEFT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 2}" text-anchor="middle">{html.escape(x_label)}</text>')
    parts.append(
        f'<text transform="translate(11 {_HEIGHT / 2}) rotate(-90)" text-anchor="middle">{html.escape(y_label)}</text>'
    )
    return "".join(parts)


def _legend(line: Line, index: int) -> str:
    x, y = _LEFT + 10 + 190 * (index % 3), 10 + 15 * (index // 3)
    colour = _COLOURS[index % len(_COLOURS)]
    return (
        f'<rect x="{x}" y="{y - 8}" width="10" height="10" fill="{colour}"/>'
        f'<text x="{x + 14}" y="{y + 1}">{html.escape(line.name)}</text>'
    )
