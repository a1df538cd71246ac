"""Rules on storage orders: every name is known, every blocked layout is whole, somebody converts."""

from __future__ import annotations

from collections.abc import Iterator

from flaot.hcd.fields import LAYOUTS
from flaot.hcd.rules import Finding, active_units, rule, unknown
from flaot.hcd.schema import Schema


@rule
def layout_names_are_known(hcd: Schema) -> Iterator[Finding]:
    known = [*LAYOUTS, *(hcd.layouts or {})]
    for name, unit in hcd.compute_units.items():
        yield from unknown(("compute_units", name, "supported_layouts"), unit.supported_layouts, known, "layout")
    for name, op in (hcd.operators or {}).items():
        yield from unknown(("operators", name, "layouts_in"), op.layouts_in, known, "layout")
        yield from unknown(("operators", name, "layouts_out"), op.layouts_out, known, "layout")
    default = hcd.tensor.default_layout if hcd.tensor else None
    yield from unknown(("tensor", "default_layout"), (default,) if default else (), known, "layout", one=True)


@rule
def layouts_are_whole(hcd: Schema) -> Iterator[Finding]:
    for name, layout in (hcd.layouts or {}).items():
        inner = {c.upper() for c in layout.axes if c.islower()}
        outer = [c for c in layout.axes if c.isupper()]
        if len(set(layout.axes)) < len(layout.axes) or inner - set(outer):
            yield Finding(("layouts", name, "axes"), f"{layout.axes}: every axis appears once, an inner block only beside its axis")
        for axis in sorted(inner - set(layout.blocks or {})):
            yield Finding(("layouts", name, "axes"), f"{layout.axes} has an inner block of {axis} without a size in blocks")
        for key, allowed in (("blocks", sorted(inner)), ("pad_to", outer)):
            for axis in getattr(layout, key) or {}:
                yield from unknown(("layouts", name, key, axis), (axis,), allowed, f"axis of {layout.axes} here", one=True)


@rule
def plain_names_mean_what_they_say(hcd: Schema) -> Iterator[Finding]:
    for name, layout in (hcd.layouts or {}).items():
        if name in LAYOUTS and layout.axes != name:
            yield Finding(("layouts", name, "axes"), f"{layout.axes} under the name {name}", "choose another name", on_value=True)


@rule
def somebody_converts(hcd: Schema) -> Iterator[Finding]:
    units = list(active_units(hcd))
    able = [*units, "host", *(["dma"] if hcd.dma else [])]
    for name, layout in (hcd.layouts or {}).items():
        yield from unknown(
            ("layouts", name, "converted_by"), layout.converted_by, able, "compute unit in use, 'host', or 'dma' of a chip with DMA"
        )
        if not layout.converted_by and layout.axes != "NCHW":
            yield Finding(("layouts", name), "a layout that nobody converts to", "state 'converted_by': a unit, host or dma")
