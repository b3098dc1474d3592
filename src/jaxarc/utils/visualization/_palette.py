"""The ten colours of ARC: the official ones, and ten that colour-blind people tell apart."""

from __future__ import annotations

from dataclasses import dataclass

from worldloom._errors import WorldloomError


class PaletteError(WorldloomError, ValueError):
    """No palette of that name."""


@dataclass(frozen=True)
class Palette:
    """Ten colours.

    **Arguments:**

    - `colours`: of the cells 0 to 9, as `"#rrggbb"`.
    - `names`: what people call them.
    - `basic`: their nearest relatives on a terminal of 16 colours, all different.
    """

    name: str
    colours: tuple[str, ...]
    names: tuple[str, ...]
    basic: tuple[str, ...]

    def rgb(self, colour: int) -> tuple[int, int, int]:
        """One colour as three numbers."""
        text = self.colours[colour]
        return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)

    def is_light(self, colour: int) -> bool:
        """Whether dark ink is read better on it than light ink."""
        red, green, blue = self.rgb(colour)
        return 0.299 * red + 0.587 * green + 0.114 * blue > 140


ARC = Palette(
    "arc",
    (
        "#000000",
        "#0074d9",
        "#ff4136",
        "#2ecc40",
        "#ffdc00",
        "#aaaaaa",
        "#f012be",
        "#ff851b",
        "#7fdbff",
        "#870c25",
    ),
    ("black", "blue", "red", "green", "yellow", "grey", "magenta", "orange", "sky", "maroon"),
    (
        "black",
        "blue",
        "bright_red",
        "green",
        "bright_yellow",
        "white",
        "bright_magenta",
        "yellow",
        "bright_cyan",
        "red",
    ),
)
"""The colours of the official ARC site."""

COLOUR_BLIND = Palette(
    "colour-blind",
    (
        "#000000",
        "#0b4d9b",
        "#e45900",
        "#14a75f",
        "#dcd056",
        "#8d8d8d",
        "#cd7ec1",
        "#ffc400",
        "#a2f0eb",
        "#5f1641",
    ),
    ("black", "blue", "vermilion", "green", "yellow", "grey", "orchid", "amber", "aqua", "plum"),
    ARC.basic,
)
"""After Okabe and Ito, moved until the nearest two are as far apart as they get, as people without
red or green cones see them: 20 units of CIELAB, where the official colours have 8."""

PALETTES = {palette.name: palette for palette in (ARC, COLOUR_BLIND)}


def find_palette(palette: Palette | str) -> Palette:
    """A palette, or the one of that name: `"arc"` or `"colour-blind"`."""
    if isinstance(palette, Palette):
        return palette
    if palette not in PALETTES:
        raise PaletteError(f"palette is {palette!r}; expected one of: {', '.join(PALETTES)}")
    return PALETTES[palette]
