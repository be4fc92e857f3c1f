"""Options in groups and their help; repeated and empty options are refused.

:class:`Option` belongs to one of the groups input, design, test and output; ``--help`` shows the
common ones, ``--help-all`` all of them. :class:`Verb` refuses options of other commands and names
the command that has them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from caltest.cli.remedies import Refusal
from caltest.errors import Reading

#: Groups of options, in the order of the help.
OPTION_GROUPS = ("Input", "Design", "Test", "Output")


class Option(click.Option):
    """Option of a command that belongs to a group of the help page.

    A ``rare`` option is listed by ``--help-all`` only.
    """

    def __init__(self, *words: Any, group: str = "Test", rare: bool = False, **more: Any) -> None:
        super().__init__(*words, **more)
        self.group, self.rare = group, rare


option: Callable[..., Callable[..., Any]] = partial(click.option, cls=Option, show_default=True)


class ColumnExpression(click.ParamType):  # type: ignore[type-arg]
    """Click type of options that name columns.

    A name, several with commas, or an SQL expression.
    """

    name = "expr"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | None:
        if value is not None and not str(value).strip():
            self.fail("it is empty: name a column, or leave the option out", param, ctx)
        return None if value is None else str(value)


def column(
    name: str, *more: str, help: str, group: str = "Input", **extra: Any
) -> Callable[..., Any]:
    """Return an option that takes a column or an expression."""
    extra.setdefault("metavar", "EXPR")
    return option(name, *more, type=ColumnExpression(), help=help, group=group, **extra)


class Verb(click.Command):
    """Command whose help lists options in groups; an option may be given only once."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters and the two options of help."""
        more = Option(
            ["--help-all"], is_flag=True, is_eager=True, expose_value=False, group="Output",
            callback=_help_all, help="Show all options and exit.",
        )  # fmt: skip
        return [*super().get_params(ctx), more]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words, and refuse a repeated option that takes one value."""
        _, _, order = self.make_parser(ctx).parse_args(args=[*args])
        for one in order:
            single = isinstance(one, Option) and not (one.multiple or one.is_flag)
            if single and order.count(one) > 1:
                name = one.opts[0]
                list_of = isinstance(one.type, ColumnExpression) and one.name in (
                    "probs",
                    "by",
                    "clusters",
                )
                advice = f"once, with commas: {name} A,B" if list_of else "once"
                raise Refusal(f"{name} is given {order.count(one)} times: give it {advice}")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by groups: the common options, or all with --help-all."""
        everything = bool(ctx.meta.get("caltest.all"))
        for group in OPTION_GROUPS:
            rows = []
            for one in self.get_params(ctx):
                rare = isinstance(one, Option) and one.rare and not everything
                own = one.group if isinstance(one, Option) else OPTION_GROUPS[-1]
                listed = isinstance(one, click.Option) and own == group and not rare
                record = one.get_help_record(ctx) if listed else None
                rows += [record] if record else []
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows, col_max=26)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names that are read without an option, with all options, and the epilog."""
        if ctx.meta.get("caltest.all") and any(one.name == "probs" for one in self.params):
            from caltest.read.contract import CONTRACT

            with formatter.section("Names that are read without an option"):
                formatter.write_dl([(what, ", ".join(names)) for what, names, _ in CONTRACT])
        super().format_epilog(ctx, formatter)


def _help_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta["caltest.all"] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def elsewhere(name: str, **options: object) -> Reading:
    """Return the reading of another command."""
    return Reading(options, verb=name)
