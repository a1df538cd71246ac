"""``extends``: a derivative states only what differs from its base, which is a bundled descriptor or a file beside it."""

from __future__ import annotations

from pathlib import Path

from flaot.errors import FlaotError, HcdError, printable
from flaot.files import read_file
from flaot.hcd.bundle import bundled
from flaot.hcd.text import MAX_BYTES, Tree, describe, nearest, parse

MAX_BASES = 8


def with_bases(tree: Tree, path: Path | None) -> tuple[Tree, list[tuple[str, Path]]]:
    """The tree with all its bases beneath it and without 'extends', and the bases' names and paths from the nearest on.

    ``path`` is the file the tree was read from; without one only bundled bases are found. A base is a bundled name, or a file in the
    folder of the first descriptor or below it. Mappings merge key by key, all other values replace the base's.

    Raises HcdError at the 'extends' that names a missing, repeated or escaping base, and whatever is wrong with a base's text.
    """
    chain: list[Tree] = [tree]
    bases: list[tuple[str, Path]] = []
    root = path.resolve().parent if path is not None else None
    seen = {path.resolve()} if path is not None else set()
    while "extends" in chain[-1].value:
        stated = chain[-1].value["extends"]
        base = _base(stated, path, root)
        if base.resolve() in seen:
            raise HcdError(f"extends: {printable(stated.value)} extends itself, by way of its bases", where=str(stated.place))
        if len(bases) == MAX_BASES:
            raise HcdError(f"extends: more than {MAX_BASES} bases", where=str(stated.place))
        seen.add(base.resolve())
        path, root = base, base.resolve().parent if base in bundled().values() else root
        name = base.name if base in bundled().values() else printable(base, 200)
        bases.append((name, base))
        chain.append(_read(base, name, stated))
    whole = chain.pop()
    while chain:
        whole = _over(chain.pop(), whole)
    return Tree({k: t for k, t in whole.value.items() if k != "extends"}, tree.place, tree.key_place), bases


def _base(stated: Tree, path: Path | None, root: Path | None) -> Path:
    """The file a value of 'extends' names."""
    name, where, known = stated.value, str(stated.place), bundled()
    if not isinstance(name, str) or not 0 < len(name) <= 200:
        raise HcdError(f"extends: found {describe(name)}, expected a bundled name or a file", where=where)
    if name in known:
        return known[name]
    if "/" not in name and not name.endswith(".hcd"):
        raise HcdError(f"extends: no bundled descriptor named '{printable(name)}'", where=where, hint=nearest(name, list(known)))
    if path is None or root is None:
        raise HcdError(f"extends: '{printable(name)}' is relative to a file, and this is none", where=where, hint="name a bundled one")
    if "\0" in name or not (path.parent / name).resolve().is_relative_to(root):
        raise HcdError(f"extends: '{printable(name)}' leads out of the descriptor's folder", where=where, hint="put the base beside it")
    return path.parent / name


def _read(base: Path, shown: str, stated: Tree) -> Tree:
    try:
        data = read_file(str(base), "a descriptor (.hcd)", MAX_BYTES)
    except FlaotError as e:
        raise HcdError(f"extends: {shown}: {e.what}", where=str(stated.place)) from None
    return parse(data, shown)


def _over(upper: Tree, lower: Tree) -> Tree:
    """``upper`` where it says something, else ``lower``. As deep as a descriptor may be nested, no deeper."""
    if not (isinstance(upper.value, dict) and isinstance(lower.value, dict)):
        return upper
    both = {k: _over(upper.value[k], t) if k in upper.value else t for k, t in lower.value.items()}
    return Tree({**both, **{k: t for k, t in upper.value.items() if k not in both}}, upper.place, upper.key_place)
