"""Source text of row functions for the forms in which PostgreSQL sends rows, beside those of `connectors.engine.encode.generate`:

  quick_copy_rows  a loop over lines of COPY text that hold no NULL and nothing that JSON must escape
  nulls_copy_rows  the same with `\\N` in places
  quick_tuple      a pgoutput tuple whose values are all sent, short, ASCII and need no escape

pgoutput's values are split off by the marker of a length below 256, `t\\0\\0\\0`, which no text can hold: 0.3 µs a row; a regular
expression for any length takes 0.9 µs, unpacking lengths one by one 1.7 µs.
"""

from __future__ import annotations

from connectors.engine.encode.generate import RowPlan, Writer, checked_variables, variables


def source_text(plan: RowPlan) -> str:
    """The functions' text. The names it uses besides its own are given by `connectors.postgres.encode.table`."""
    return "\n".join(
        [
            *_copy_rows(plan, "quick_copy_rows", nulls=False),
            *_copy_rows(plan, "nulls_copy_rows", nulls=True),
            *_quick_tuple(plan),
            "",
        ]
    )


def _copy_rows(plan: RowPlan, name: str, *, nulls: bool) -> list[str]:
    writer = Writer(plan, tests=[("$ == NULL", "null")] if nulls else [])
    return [
        f"def {name}(lines, route, end, append):",
        "    for line in lines:",
        "        try:",
        f"            {variables(plan)} = line{'.split(TAB)' if len(plan.columns) > 1 else ''}",
        *(f"            {line}" for line in writer.lines),
        f"            append((route, {writer.key}, join((HEAD, {writer.row}, end))))",
        "        except (ValueError, IndexError):",
        "            key, row = convert_line(line)",
        "            append((route, key, join((HEAD, row, end))))",
    ]


def _quick_tuple(plan: RowPlan) -> list[str]:
    writer = Writer(plan, stream=True)
    targets = ["_"] * plan.width
    for index, position in enumerate(plan.positions):
        targets[position] = f"c{index}"
    checked = checked_variables(plan)
    check = []
    if checked:
        texts = checked[0] if len(checked) == 1 else 'f"' + "".join(f"{{{name}}}" for name in checked) + '"'
        check = [
            f"    texts = {texts}",
            "    if len(dumps(texts)) != len(texts) + 2:",
            f"        return mixed_stream(({variables(plan)},))",
        ]
    return [
        "def quick_tuple(pieces):",
        f"    _, {', '.join(targets)} = pieces",
        *(f"    c{i} = c{i}[1:]" for i in range(len(plan.columns))),
        *check,
        *(f"    {line}" for line in writer.lines),
        f"    return {writer.key}, {writer.row}",
    ]
