"""The log of a soak as a page: one file of HTML with plots in SVG, without anything from elsewhere."""

from __future__ import annotations

import html
from dataclasses import dataclass

WIDTH, HEIGHT, LEFT = 1100, 150, 60
COLOURS = ["#1668b8", "#c2571a", "#3c8a3c", "#7a4fb5", "#8a6d1d", "#0f8a8a", "#b03a6a", "#666666", "#4b6cb7", "#a03030", "#59863b", "#735c8f", "#9a7a00", "#2b7a8c", "#555577"]
MARKS = {"around": "#3c8a3c", "within": "#c2571a", "upgrade": "#1668b8", "machine": "#777777", "violation": "#d00000"}

STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; max-width: 1180px; margin: 1em auto; padding: 0 1em; color: #222; background: #fff }
svg { display: block; width: 100%; height: auto } text { font: 11px system-ui, sans-serif; fill: #444 }
table { border-collapse: collapse } td, th { padding: 1px 10px 1px 0; text-align: left; vertical-align: top } h2 { font-size: 16px; margin: 1.2em 0 .2em }
pre { white-space: pre-wrap; background: #f5f5f5; padding: .6em; font-size: 12px } .bad { color: #b00000 } .good { color: #1f7a1f }
"""


@dataclass
class Mark:
    """An event in the plots, from one second of the run to another."""

    began: float
    ended: float
    kind: str
    text: str


def plot(title: str, unit: str, series: dict[str, list[tuple[float, float]]], seconds: float, marks: list[Mark], *, top: float | None = None) -> str:
    values = sorted(value for points in series.values() for _, value in points)
    if not values:
        return f"<h2>{html.escape(title)}</h2><p>No values.</p>"
    # One value of a thousand may be cut off, so that the others are seen.
    high = top or max(values[min(len(values) - 1, int(len(values) * 0.999))] * 1.1, 1e-9)
    across, down = lambda at: LEFT + (WIDTH - LEFT) * at / max(seconds, 1), lambda value: HEIGHT - 15 - (HEIGHT - 25) * min(value, high) / high
    parts = [f'<h2>{html.escape(title)}</h2><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(title)}">']
    for mark in marks:
        width = max(1.0, across(mark.ended) - across(mark.began))
        parts.append(f'<rect x="{across(mark.began):.1f}" y="5" width="{width:.1f}" height="{HEIGHT - 20}" fill="{MARKS[mark.kind]}" '
                     f'opacity="{0.9 if mark.kind == "violation" else 0.16}"><title>{html.escape(mark.text)}</title></rect>')
    for share in (0, 0.5, 1):
        y = down(high * share)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/><text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{high * share:.4g} {unit}</text>')
    step = next(each for each in (10, 30, 60, 300, 600, 1800, 3600, 36000) if seconds / each <= 12)
    for at in range(0, int(seconds) + 1, step):
        parts.append(f'<text x="{across(at):.1f}" y="{HEIGHT - 2}" text-anchor="middle">{at // 60}:{at % 60:02d}</text>')
    for index, (name, points) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        text = " ".join(f"{across(at):.1f},{down(value):.1f}" for at, value in thinned(points))
        parts.append(f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="1.2"><title>{html.escape(name)}</title></polyline>')
    parts.append("</svg><p>" + " · ".join(f'<span style="color:{COLOURS[index % len(COLOURS)]}">{html.escape(name)}</span>' for index, name in enumerate(series)) + "</p>")
    return "".join(parts)


def thinned(points: list[tuple[float, float]], most: int = 2000) -> list[tuple[float, float]]:
    """At most `most` points: of each group the highest."""
    size = -(-len(points) // most) or 1
    return [max(points[at : at + size], key=lambda point: point[1]) for at in range(0, len(points), size)]


def page(title: str, facts: list[tuple[str, str]], results: list[dict], plots: list[str], marks: list[Mark], violations: list[str]) -> str:
    rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in facts)
    told = "".join(f'<tr><td class="{"good" if each["pass"] else "bad"}">{"passed" if each["pass"] else "FAILED"}</td><td>{html.escape(each["name"])}</td><td>{html.escape(each["goal"])}</td>'
                   f'<td>{html.escape(str(each["measured"]))}</td></tr>' for each in results)
    events = "".join(f"<tr><td>{mark.began:.1f} s</td><td>{mark.ended - mark.began:.1f} s</td><td>{html.escape(mark.text)}</td></tr>" for mark in marks if mark.kind != "violation")
    found = "".join(f"<pre>{html.escape(each)}</pre>" for each in violations) or "<p>None.</p>"
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style><h1>{html.escape(title)}</h1><table>{rows}</table>'
            f"<h2>Results</h2><table>{told}</table>{''.join(plots)}<h2>Violations</h2>{found}<h2>Events</h2><table><tr><th>at</th><th>for</th><th>event</th></tr>{events}</table></html>\n")
