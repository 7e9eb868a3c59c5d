"""Drawings in SVG beside those that `run-cu --draw` makes, in their style. `scripts/lesson-pictures` uses them."""

import re
from xml.sax.saxutils import escape

WIDTH, MARGIN, LINE, ROW, CELL = 1030, 20, 20, 24, 20
# Dark enough for white letters, on light and dark pages alike.
COLOURS = {"upload": "#2554a8", "compute": "#6b3a93", "download": "#9a4b12"}


def style_of(drawing):
    """Returns the style of a drawing by `run-cu`, which follows dark and light."""
    return re.search(r"<style>(.*?)</style>", drawing, re.DOTALL).group(1)


def number(value):
    """Returns a number with few digits, the same on every machine."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Canvas:
    """An unfinished drawing: its elements, the sentences that say what they show, and the height of the last one."""

    def __init__(self, subject):
        self.subject, self.body, self.words, self.y = subject, [], [], 10

    def text(self, classes, x, words):
        """Writes a text in the current row."""
        self.body.append(f'<text class="{classes}" x="{number(x)}" y="{number(self.y)}">{escape(words)}</text>')

    def line(self, classes, words):
        """Writes a line of text from the left margin."""
        self.y += LINE
        self.text(classes, MARGIN, words)

    def block(self, x, width, words="", tip="", colour="", classes="moved"):
        """Draws a block in the current row, with words in it if they fit."""
        of = f'fill="{colour}"' if colour else f'class="{classes}"'
        tip = f"<title>{escape(tip)}</title>" if tip else ""
        place = f'x="{number(x)}" y="{number(self.y - 15)}" width="{number(max(width - 1, 1))}" height="{CELL}" rx="3"'
        self.body.append(f"<g>{tip}<rect {of} {place}/>")
        if words and 7.5 * len(words) < width:
            self.text("mid lane" if colour else "mid", x + width / 2, words)
        self.body.append("</g>")

    def rule(self, x, top):
        """Draws a line downwards from `top` to the current row."""
        self.body.append(f'<path class="row" d="M{number(x)} {number(top)}V{number(self.y + 8)}"/>')

    def finish(self, style):
        """Returns the drawing."""
        height, words = number(self.y + MARGIN), escape(" ".join(self.words))
        size = f'width="{WIDTH}" height="{height}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="ws" role="img" {size} viewBox="0 0 {WIDTH} {height}">'
        parts = [head, f"<title>{escape(self.subject)}</title>", f"<desc>{words}</desc>", f"<style>{style}</style>"]
        return "\n".join([*parts, f'<rect class="page" {size} rx="8"/>', *self.body, "</svg>"]) + "\n"


def bars(rows, ceiling, subject, style):
    """Draws a bar for each name and speed in GB/s, and a line at the one that is the ceiling."""
    canvas, left, room = Canvas(subject), MARGIN + 160, WIDTH - 160 - 200
    canvas.line("title", subject)
    canvas.y += LINE / 2
    scale, top = room / max(speed for _, speed in rows), canvas.y
    for name, speed in rows:
        canvas.y += ROW
        share = f"{speed:.1f} GB/s, {100 * speed / ceiling:.1f} %"
        canvas.text("end", left - 10, name)
        canvas.block(left, speed * scale, tip=f"{name}: {share}", colour=COLOURS["upload"])
        canvas.text("", left + speed * scale + 8, share)
        canvas.words.append(f"{name}: {share}.")
    canvas.rule(left + ceiling * scale, top)
    canvas.y += LINE / 2
    canvas.line("faint", f"the line is the ceiling, the speed of a copy: {ceiling:.1f} GB/s")
    return canvas.finish(style)
