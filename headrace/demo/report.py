"""The demo's report: one self-contained page, and its summary as JSON."""

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from headrace.demo.chart import chart
from headrace.demo.curves import Figure

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#1f2328;max-width:1320px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin-bottom:.2rem} main{display:grid;grid-template-columns:repeat(auto-fit,minmax(560px,1fr));gap:1rem}
figure{margin:0;border:1px solid #d0d7de;border-radius:8px;padding:.7rem} figcaption{font-weight:600;margin-bottom:.4rem}
svg text{font:11px system-ui,sans-serif;fill:#57606a} table{border-collapse:collapse;margin:1rem 0}
td,th{border-bottom:1px solid #d0d7de;padding:.2rem .8rem;text-align:left} td:last-child{text-align:right;font-variant-numeric:tabular-nums}
"""


def write_summary(path: Path, summary: Mapping[str, object]) -> None:
    """Write `summary.json`."""
    path.write_text(json.dumps(summary, indent=2) + "\n")


def write_report(path: Path, *, summary: Mapping[str, object], figures: Sequence[Figure]) -> None:
    """Write `report.html`; every figure is drawn from what the run recorded."""
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(_show(value))}</td></tr>" for name, value in summary.items()
    )
    charts = "".join(
        chart(figure.title, figure.lines, x_label=figure.x_label, y_label=figure.y_label, zero=figure.zero)
        for figure in figures
    )
    path.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>headrace demo</title>'
        f"<style>{_STYLE}</style></head><body><h1>headrace demo: MovieLens-100K, learnt online in one pass</h1>"
        "<p>Events go into a topic in time order; a DeepFM learns from them, is committed, published and served while a "
        "client keeps asking it. Progressive AUC judges each event before it is learnt.</p>"
        f"<main>{charts}</main><h2>Summary</h2><table>{rows}</table></body></html>\n",
        encoding="utf-8",
    )


def _show(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_show(inner)}" for name, inner in value.items())
    if isinstance(value, float):
        return f"{value:,.4f}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
