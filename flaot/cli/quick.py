"""A parser for well-formed ``flaot run`` lines, because importing click takes longer than running a small plan.

click stays the authority: whatever is not plainly well-formed (unknown or abbreviated options, ``--help``, numbers out of range) is left
to it. A test holds the two declarations equal.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TEXTS = {"--inputs": "inputs", "--outputs": "outputs", "--trace": "trace"}
LISTS = {"--input": "single", "--adapter": "adapter"}
NUMBERS = {"--seed": ("seed", 0, 0, 2**63 - 1), "--threads": ("threads", 1, 1, 256), "--repeat": ("repeat", 1, 1, 10**9)}
"""Option -> parameter, default, smallest, largest."""
FLAGS = {"--profile": "profile", "--json": "as_json"}


def parse(arguments: list[str]) -> dict[str, Any] | None:
    """The parameters of ``run_plan``, or None when click should look at the line."""
    if not arguments or arguments[0] != "run":
        return None
    found: dict[str, Any] = {name: None for name in TEXTS.values()} | {name: False for name in FLAGS.values()}
    found |= {name: default for name, default, _, _ in NUMBERS.values()}
    lists: dict[str, list[str]] = {name: [] for name in LISTS.values()}
    plans: list[str] = []
    rest = iter(arguments[1:])
    for word in rest:
        option, equals, value = word.partition("=")
        if not word.startswith("-"):
            plans.append(word)
        elif word in FLAGS:
            found[FLAGS[word]] = True
        elif option in TEXTS or option in LISTS or option in NUMBERS:
            text = value if equals else next(rest, None)
            if text is None or not _take(option, text, found, lists):
                return None
        else:
            return None
    if len(plans) != 1 or not plans[0]:
        return None
    return {"plan": plans[0], **found, **{name: tuple(values) for name, values in lists.items()}}


def _take(option: str, text: str, found: dict[str, Any], lists: dict[str, list[str]]) -> bool:
    if option in TEXTS:
        found[TEXTS[option]] = text
    elif option in LISTS:
        lists[LISTS[option]].append(text)
    else:
        name, _, low, high = NUMBERS[option]
        if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
            return False
        found[name] = int(text)
    return True
