# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""
The bench's chart: bandwidth over size for WRITE, READ and SEND, and the 8-byte
latency and message rate, drawn as plain SVG. All scales are logarithmic: the
peers are orders of magnitude apart. Follows the reader's light or dark theme.
"""

import math
from xml.sax.saxutils import escape

WIDTH, MARGIN, PANEL_GAP = 960, 24, 30
LINES_TOP, LINES_HEIGHT = 96, 250
BARS_TOP, BAR, BAR_GAP, GROUP_GAP = 436, 15, 3, 12

# name: (on white, on black). Variables would be shorter, but not all viewers of
# SVG know them.
COLOURS = {
    "bg": ("#ffffff", "#0d1117"), "ink": ("#1f2328", "#e6edf3"), "dim": ("#59636e", "#9198a1"),
    "vrnic": ("#0969da", "#58a6ff"), "rxe": ("#bc4c00", "#f0883e"), "siw": ("#8250df", "#bc8cff"),
    "limit": ("#1a7f37", "#3fb950"),
}
GRID = ("#d8dee4", "#2f353d")


def theme(dark):
    rules = [f".{name} {{ fill: {pair[dark]} }}" for name, pair in COLOURS.items()]
    rules += [f".line.{name} {{ fill: none; stroke: {pair[dark]} }}"
              for name, pair in COLOURS.items()]
    rules.append(f".grid {{ stroke: {GRID[dark]} }}")
    return "\n".join(rules)


def style(dark_rules):
    return f"""
text {{ font: 12px "DejaVu Sans", Verdana, sans-serif }}
text.title {{ font-size: 17px; font-weight: bold }}
text.head {{ font-size: 13px; font-weight: bold }}
.line {{ stroke-width: 2.5; stroke-linejoin: round }}
.line.limit {{ stroke-width: 1.5; stroke-dasharray: 6 4 }}
{theme(0)}
@media (prefers-color-scheme: dark) {{
{dark_rules}
}}
"""


class Drawing:
    def __init__(self):
        self.parts = []

    def add(self, tag, text=None, **attributes):
        names = {k.rstrip("_").replace("_", "-"): v for k, v in attributes.items()}
        inner = " ".join(f'{k}="{round(v, 1) if isinstance(v, float) else v}"'
                         for k, v in names.items())
        self.parts.append(f"<{tag} {inner}/>" if text is None
                          else f"<{tag} {inner}>{escape(text)}</{tag}>")

    def text(self, x, y, text, cls="ink", anchor="start"):
        self.add("text", text, x=x, y=y, class_=cls, text_anchor=anchor)

    def line(self, x1, y1, x2, y2, cls):
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=cls)


class Scale:
    """Logarithmic, from the power of ten below the least to that above the most."""

    def __init__(self, values, start, end):
        self.low = math.floor(math.log10(min(values)))
        self.high = max(math.ceil(math.log10(max(values))), self.low + 1)
        self.start, self.end = start, end

    def __call__(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self):
        return [10.0 ** e for e in range(self.low, self.high + 1)]


def short(value):
    """An axis label: 0.1, 10, 1k, 10k."""
    if value >= 1000:
        return f"{value / 1000:g}k"
    return f"{value:g}"


def points(results, device, what, quantity):
    found = [(s, results.get(device, what, s, quantity)) for s in results.sizes(what, quantity)]
    return [(s, v) for s, v in found if v]


def bandwidth_panel(d, results, op, left, width, scale, size_name):
    what = f"ib_{op}_bw"
    sizes = results.sizes(what, "MBps")
    top, bottom = LINES_TOP + 16, LINES_TOP + LINES_HEIGHT
    d.text(left, LINES_TOP, f"{op.upper()}, MB/s", "ink head")
    for tick in scale.ticks():
        d.line(left, scale(tick), left + width, scale(tick), "grid")
        d.text(left - 5, scale(tick) + 4, short(tick), "dim", "end")
    if not sizes:
        return
    step = width / max(len(sizes), 2)
    at = {s: left + step * (i + 0.5) for i, s in enumerate(sizes)}
    for size, x in at.items():
        d.line(x, top, x, bottom, "grid")
        d.text(x, bottom + 16, size_name(size), "dim", "middle")
    copies = [(s, results.memcpy(s)) for s in sizes if s >= 65536 and results.memcpy(s)]
    if copies:
        d.add("polyline", class_="line limit", points=" ".join(
            f"{at[s]:.1f},{scale(v):.1f}" for s, v in copies))
    for device in reversed(results.devices):
        found = points(results, device, what, "MBps")
        d.add("polyline", class_=f"line {device}", points=" ".join(
            f"{at[s]:.1f},{scale(v):.1f}" for s, v in found))
        for size, value in found:
            d.add("circle", cx=at[size], cy=scale(value), r=3.5, class_=device)


def bars_panel(d, results, title, kind, quantity, left, width, ops, number):
    rows = [(op, device, results.get(device, f"ib_{op}_{kind}", 8, quantity))
            for op in ops for device in results.devices]
    rows = [row for row in rows if row[2]]
    d.text(left, BARS_TOP, title, "ink head")
    if not rows:
        return BARS_TOP
    label = 48
    scale = Scale([row[2] for row in rows], left + label, left + width - 60)
    y, last = BARS_TOP + 16, None
    for op, device, value in rows:
        if op != last:
            y += GROUP_GAP if last else 0
            d.text(left, y + BAR - 3, op.upper(), "dim")
            last = op
        d.add("rect", x=left + label, y=y, width=max(scale(value) - left - label, 2.0), height=BAR,
              rx=2, class_=device)
        d.text(max(scale(value), left + label + 2) + 5, y + BAR - 3, number(value))
        y += BAR + BAR_GAP
    return y


def legend(d, results, titles):
    x = MARGIN
    for device in results.devices:
        d.add("rect", x=x, y=58, width=14, height=14, rx=2, class_=device)
        d.text(x + 20, 70, titles[device])
        x += 36 + 8 * len(titles[device])
    if results.memcpy(65536):
        d.line(x, 65, x + 24, 65, "line limit")
        d.text(x + 30, 70, "memory copy", "limit")


def chart(results, devices, titles, ops, size_name, number):
    del devices
    d = Drawing()
    facts = results.facts
    d.text(MARGIN, 32, "RDMA devices made of software, two processes on one host", "ink title")
    d.text(WIDTH - MARGIN, 32, f"Linux {facts.get('kernel', '?')} on {facts.get('bed', '?')}, "
           f"{facts.get('cpus', '?')} CPUs", "dim", "end")
    legend(d, results, titles)

    ops = [op for op in ops if results.sizes(f"ib_{op}_bw", "MBps")]
    values = [v for op in ops for dev in results.devices
              for _, v in points(results, dev, f"ib_{op}_bw", "MBps")]
    values += [v for v in (results.memcpy(s) for s in (65536, 1048576)) if v]
    bottom = BARS_TOP
    if ops:
        scale = Scale(values, LINES_TOP + LINES_HEIGHT, LINES_TOP + 16)
        pitch = (WIDTH - 2 * MARGIN - 2 * PANEL_GAP) / len(ops)
        for i, op in enumerate(ops):
            left = MARGIN + PANEL_GAP + i * (pitch + PANEL_GAP)
            bandwidth_panel(d, results, op, left, pitch - PANEL_GAP, scale, size_name)
        half = (WIDTH - 2 * MARGIN - PANEL_GAP) / 2
        bottom = max(
            bars_panel(d, results, "Latency of 8 bytes, us (shorter is better)", "lat",
                       "typical_us", MARGIN, half, ops, number),
            bars_panel(d, results, "8-byte messages, million/s (longer is better)", "bw",
                       "Mmsgps", MARGIN + half + PANEL_GAP, half, ops, number))
    d.text(MARGIN, bottom + 28, "perftest, medians; all scales are logarithmic", "dim")
    height = bottom + 44
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}">\n'
            "<!-- SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB -->\n"
            f"<style>{style(theme(1))}</style>\n"
            f'<rect class="bg" width="{WIDTH}" height="{height}"/>\n'
            + "\n".join(d.parts) + "\n</svg>\n")
