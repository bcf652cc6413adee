"""The select list taken apart: aggregates over rows, and outputs over their results, partition keys
and window times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.functions.aggregate import AGGREGATES, AggregateFunction
from penstock.sql.functions.time import NOW
from penstock.sql.plan import Aggregate, Fill, FillMode, Key, Output, State, Window
from penstock.sql.planning.binder import TIMESTAMP, WINDOW_NAMES, Binder
from penstock.sql.planning.refusals import refuse
from penstock.types import ColumnType
from penstock.udf import UserFunction

BIGINT = ColumnType("BIGINT")
MAX_COLUMN_NAME_BYTES = 64
_WINDOW_TYPES = {"_wstart": TIMESTAMP, "_wend": TIMESTAMP, "_wduration": BIGINT}


@dataclass
class Keys:
    """PARTITION BY, bound. `texts` maps the canonical text of each key to its place."""

    items: tuple[Key, ...] = ()
    nodes: tuple[exp.Expr, ...] = ()
    texts: dict[str, int] = field(default_factory=dict)

    @property
    def by_table(self) -> bool:
        """Whether tbname is among the keys, so that every partition is one table."""
        return "tbname" in self.texts

    def place(self, bound: exp.Expr) -> int | None:
        """Which key an expression is."""
        return self.texts.get(to_sql(_bare(bound)))

    def named(self, name: str) -> int | None:
        """Which key is called *name*: by alias, or by its own text."""
        for i, key in enumerate(self.items):
            if key.alias.lower() == name.lower():
                return i
        return None


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def plan_keys(binder: Binder, clause: nodes.PartitionBy | None) -> Keys:
    """Bind PARTITION BY and make its aliases known to the binder."""
    keys = Keys()
    items = []
    bound_nodes = []
    for i, item in enumerate(clause.expressions if clause else []):
        alias = item.alias if isinstance(item, exp.Alias) else ""
        bound = _bare(binder.bind(item.this if isinstance(item, exp.Alias) else item))
        kind = binder.compiled(bound).type
        text = to_sql(bound)
        if kind.kind == "JSON":
            if isinstance(bound, exp.Column):
                unsupported(
                    binder,
                    item,
                    "a JSON tag cannot be a partition key",
                    "take a value out of it: tag->'key'",
                )
            # A value from JSON is text from here on.
            kind = ColumnType("VARCHAR", length=4096)
            bound = exp.Cast(this=bound, to=nodes.TypeName(this=str(kind)))
        keys.texts.setdefault(text, i)
        items.append(
            Key(
                alias
                or (bound.name if isinstance(bound, exp.Column) else item.meta.get("sql", text)),
                to_sql(bound),
                kind,
            )
        )
        bound_nodes.append(bound)
        if alias:
            binder.aliases.setdefault(alias.lower(), bound)
    keys.items = tuple(items)
    keys.nodes = tuple(bound_nodes)
    return keys


def unsupported(binder: Binder, at: exp.Expr | int | None, what: str, hint: str) -> NoReturn:
    refuse(binder.statement, "E_UNSUPPORTED_QUERY", at, what=what, hint=hint)


@dataclass
class Selection:
    """The select list in plan terms. `names[i]` is what output i is called, as the user sees it."""

    outputs: list[Output] = field(default_factory=list)
    aggregates: list[Aggregate] = field(default_factory=list)
    #: whether output i is filled by FILL (made of aggregates) or computed
    filled: list[bool] = field(default_factory=list)
    nodes: list[exp.Expr] = field(default_factory=list)


def _items(select: exp.Select, binder: Binder) -> list[exp.Expr]:
    """Select items with `*`, `last(*)` and the like written out."""
    out: list[exp.Expr] = []
    for item in select.expressions:
        plain = item.this if isinstance(item, exp.Alias) else item
        star = isinstance(plain, exp.Star) or (
            isinstance(plain, exp.Column) and isinstance(plain.this, exp.Star)
        )
        if star and select.args.get("window") is not None:
            unsupported(
                binder,
                item,
                "* gives rows, but a window gives one result for many",
                "name aggregates: count(*), last(column)",
            )
        if star:
            if isinstance(plain, exp.Column):
                binder.column_name(
                    exp.Column(this=exp.Identifier(this="*"), table=plain.args["table"])
                )
            out += [_column(name, item) for name in binder.columns if name != "tbname"]
        elif _is_call(plain, ("first", "last", "last_row")) and any(
            isinstance(a, exp.Star) for a in plain.expressions
        ):
            out += [_wrapped(plain, c.name, item) for c in binder.source.columns]
        else:
            out.append(item)
    return out


def _is_call(node: exp.Expr, names: tuple[str, ...]) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in names


def _column(name: str, like: exp.Expr) -> exp.Expr:
    node = exp.Column(this=exp.Identifier(this=name, quoted=False))
    node.meta.update({k: v for k, v in like.meta.items() if k != "sql"})
    return node


def _wrapped(call: exp.Expr, name: str, like: exp.Expr) -> exp.Expr:
    function = str(call.this).lower()
    node = exp.Anonymous(this=function, expressions=[_column(name, like)])
    node.meta.update(like.meta)
    node.meta["sql"] = f"{function}({name})"
    return node


def select_rows(binder: Binder, select: exp.Select) -> Selection:
    """The select list of a stream without window: scalars over rows."""
    made = Selection()
    for item in _items(select, binder):
        plain = item.this if isinstance(item, exp.Alias) else item
        bound = binder.bind(plain)
        for call in bound.find_all(exp.Anonymous):
            if str(call.this).lower() in AGGREGATES:
                refuse(binder.statement, "E_NONWINDOW_AGG", call, function=str(call.this).lower())
        for column in bound.find_all(exp.Column):
            if column.name in WINDOW_NAMES and column.name not in binder.columns:
                unsupported(
                    binder,
                    item,
                    f"{column.name} needs a window",
                    "add a window such as INTERVAL(10s)",
                )
        _add(made, binder, item, bound, binder.compiled(bound).type, filled=False)
    return made


def _add(
    made: Selection,
    binder: Binder,
    item: exp.Expr,
    bound: exp.Expr,
    kind: ColumnType,
    *,
    filled: bool,
) -> None:
    if kind.kind == "JSON":
        unsupported(
            binder,
            item,
            "a result column cannot be JSON",
            "write CAST(… AS VARCHAR(…)), or take a value out of it: tag->'key'",
        )
    made.outputs.append(Output(_name(item, bound), to_sql(bound), kind))
    made.filled.append(filled)
    made.nodes.append(item)


def _name(item: exp.Expr, bound: exp.Expr) -> str:
    """Alias, column name, or the text of the expression."""
    if isinstance(item, exp.Alias):
        return item.alias
    if isinstance(item, exp.Column):
        return (
            bound.name
            if isinstance(bound, exp.Column) and bound.name.lower() == item.name.lower()
            else item.name
        )
    text = " ".join(str(item.meta.get("sql") or to_sql(item)).split())
    return text.encode()[:MAX_COLUMN_NAME_BYTES].decode(errors="ignore")


class WindowSelect:
    """Takes the select list of a stream with a window apart."""

    def __init__(self, binder: Binder, keys: Keys, window: Window) -> None:
        self.binder = binder
        self.keys = keys
        self.window = window
        self.made = Selection()
        self.companions: list[tuple[int, exp.Expr]] = []
        self.after: dict[str, ColumnType] = (
            {f"_k{i}": k.type for i, k in enumerate(keys.items)} | _WINDOW_TYPES | {NOW: TIMESTAMP}
        )

    def run(self, select: exp.Select) -> Selection:
        """Aggregates and outputs of the whole list."""
        items = _items(select, self.binder)
        lowered = [
            self._lower(self.binder.bind(i.this if isinstance(i, exp.Alias) else i), i)
            for i in items
        ]
        if not self.made.aggregates or all(a.function == "companion" for a in self.made.aggregates):
            unsupported(
                self.binder,
                items[0],
                "a stream with a window needs at least one aggregate",
                "add one, such as count(*) or last(column)",
            )
        self._attach_companions()
        aggregates = {a.name: a.type for a in self.made.aggregates}
        for item, bound in zip(items, lowered, strict=True):
            kind = self.binder.compiled(bound, self.after | aggregates).type
            filled = any(c.name in aggregates for c in bound.find_all(exp.Column))
            plain = item.this if isinstance(item, exp.Alias) else item
            shown = self.binder.bind(plain) if isinstance(plain, exp.Column) else plain
            if kind.kind == "JSON":
                unsupported(
                    self.binder,
                    item,
                    "a result column cannot be JSON",
                    "write CAST(… AS VARCHAR(…)) around it",
                )
            self.made.outputs.append(Output(_name(item, shown), to_sql(bound), kind))
            self.made.filled.append(filled)
            self.made.nodes.append(item)
        return self.made

    def _lower(self, node: exp.Expr, item: exp.Expr) -> exp.Expr:
        """*node* (bound) over plan names: keys, window times and aggregates replaced."""
        place = self.keys.place(node)
        if place is not None:
            return _column(f"_k{place}", node)
        if isinstance(node, exp.Anonymous):
            name = str(node.this).lower()
            if name == "_group_key":
                return self._group_key(node)
            if name in AGGREGATES:
                return self._aggregate(AGGREGATES[name], node)
            user = self.binder.function(name)
            if user is not None and user.aggregate:
                return self._user_aggregate(user, node)
        if isinstance(node, exp.Column):
            return self._plain_column(node, item)
        if self._is_state(node):
            return self._add_aggregate(
                "first", to_sql(_bare(node)), self.binder.compiled(node).type, (), node
            )
        for key, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                node.set(key, self._lower(value, item))
            elif isinstance(value, list):
                node.set(
                    key, [self._lower(v, item) if isinstance(v, exp.Expr) else v for v in value]
                )
        return node

    def _is_state(self, node: exp.Expr) -> bool:
        return isinstance(self.window, State) and to_sql(_bare(node)) == self.window.sql

    def _group_key(self, node: exp.Anonymous) -> exp.Expr:
        place = self.keys.place(node.expressions[0]) if len(node.expressions) == 1 else None
        if place is None:
            keys = ", ".join(k.sql for k in self.keys.items)
            hint = f"one of: {keys}" if keys else "add PARTITION BY"
            unsupported(self.binder, node, "_group_key() takes an expression of PARTITION BY", hint)
        return _column(f"_k{place}", node)

    def _plain_column(self, node: exp.Column, item: exp.Expr) -> exp.Expr:
        if node.name in _WINDOW_TYPES or node.name == NOW:
            return node
        if isinstance(node.this, exp.Star) or node.name not in self.binder.columns:
            self.binder.compiled(node)  # says that there is no such column
        name = f"_a{len(self.made.aggregates)}"
        known = next(
            (
                a.name
                for a in self.made.aggregates
                if a.function == "companion" and a.sql == to_sql(node)
            ),
            None,
        )
        if known:
            return _column(known, node)
        kind = self.binder.compiled(node).type
        self.companions.append((len(self.made.aggregates), item))
        self.made.aggregates.append(Aggregate(name, "companion", to_sql(node), kind))
        return _column(name, node)

    def _attach_companions(self) -> None:
        """Give each plain column the row of the one aggregate that chooses a row."""
        if not self.companions:
            return
        choosers = [
            a
            for a in self.made.aggregates
            if a.function in AGGREGATES and AGGREGATES[a.function].chooses
        ]
        for index, item in self.companions:
            column = self.made.aggregates[index]
            if (
                isinstance(self.window, State)
                and column.sql == self.window.sql
                and len(choosers) != 1
            ):
                # The state is the same in every row of its window.
                self.made.aggregates[index] = Aggregate(
                    column.name, "first", column.sql, column.type
                )
                continue
            if len(choosers) != 1:
                count = f"the list has {len(choosers)}" if choosers else "the list has none"
                unsupported(
                    self.binder,
                    item,
                    f"column {column.sql} stands beside aggregates, which only one min, max, first"
                    f" or last allows ({count})",
                    f"put it into an aggregate such as last({column.sql}), or into PARTITION BY",
                )
            self.made.aggregates[index] = Aggregate(
                column.name, "companion", column.sql, column.type, of=choosers[0].name
            )

    def _aggregate(self, function: AggregateFunction, node: exp.Anonymous) -> exp.Expr:
        arguments = node.expressions
        if not function.least <= len(arguments) <= function.at_most:
            wanted = (
                f"{function.least} to {function.at_most} arguments"
                if function.at_most > 1
                else "one argument"
            )
            self._bad_call(
                node, f"{function.name}() takes {wanted}, not {len(arguments)}", function
            )
        first = arguments[0]
        if isinstance(first, exp.Distinct):
            unsupported(
                self.binder,
                node,
                f"{function.name}(DISTINCT …) must keep every value",
                "use hyperloglog(x), or PARTITION BY x",
            )
        if isinstance(first, exp.Star):
            if function.name != "count":
                self._bad_call(node, f"{function.name}(*) is not possible", function)
            return self._add_aggregate("count", None, BIGINT, (), node)
        kind = self._argument_type(function, first)
        name = function.plan_name or function.name
        return self._add_aggregate(
            name, to_sql(first), function.returns(kind), self._parameters(function, node), node
        )

    def _user_aggregate(self, function: UserFunction, node: exp.Anonymous) -> exp.Expr:
        """An aggregate of somebody's own: it is given a window's values at once."""
        [wanted] = function.parameters
        if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Star):
            message = f"{function.name}() takes one argument"
            raise self.binder.statement.error(
                message, node, code="E_FUNCTION_ARGUMENT", hint=f"{function.name}({wanted})"
            )
        argument = node.expressions[0]
        self._not_of_the_window(argument, function.name)
        if self.binder.compiled(argument).type != wanted:
            argument = exp.Cast(this=argument, to=nodes.TypeName(this=str(wanted)))
            self.binder.compiled(argument)
        return self._add_aggregate(
            f"user:{function.name}", to_sql(argument), function.returns, (), node
        )

    def _not_of_the_window(self, argument: exp.Expr, function: str) -> None:
        for column in argument.find_all(exp.Column):
            if column.name in _WINDOW_TYPES:
                unsupported(
                    self.binder,
                    argument,
                    f"{column.name} is known only when the window is",
                    f"take it out of {function}()",
                )

    def _argument_type(self, function: AggregateFunction, argument: exp.Expr) -> ColumnType:
        self._not_of_the_window(argument, function.name)
        kind = self.binder.compiled(argument).type
        number = kind.numeric or kind.kind == "BOOL"
        fits = {"any": True, "number": number, "spread": number or kind.kind == "TIMESTAMP"}[
            function.argument
        ]
        if function.name in ("min", "max"):
            fits = kind.kind not in ("JSON", "VARBINARY")
        if function.name in ("first", "last", "last_row") and kind.kind == "JSON":
            unsupported(
                self.binder,
                argument,
                "a result column cannot be JSON",
                "take a value out of it: CAST(tag->'key' AS VARCHAR(64))",
            )
        if not fits:
            raise self.binder.statement.error(
                f"{function.name}() needs a number, not {kind}",
                argument,
                code="E_TYPE",
                detail=f"{kind} and DOUBLE do not fit",
                hint="write CAST(… AS DOUBLE)",
            )
        return kind

    def _parameters(
        self, function: AggregateFunction, node: exp.Anonymous
    ) -> tuple[float | int | str, ...]:
        made: list[float | int | str] = []
        for i, argument in enumerate(node.expressions[1:]):
            value = self.binder.compiled(argument)
            wanted = (
                isinstance(value.value, int | float) and 0 <= value.value <= 100
                if i == 0
                else str(value.value).lower() in _ALGORITHMS
            )
            if not value.literal or not wanted:
                self._bad_call(
                    node,
                    f"{function.name}() takes p from 0 to 100 and 'default' or 't-digest', both"
                    " constants",
                    function,
                )
            made.append(value.value.lower() if isinstance(value.value, str) else value.value)
        return tuple(made)

    def _bad_call(self, node: exp.Expr, what: str, function: AggregateFunction) -> NoReturn:
        raise self.binder.statement.error(
            what, node, code="E_FUNCTION_ARGUMENT", hint=f"{function.signature}: {function.doc}"
        )

    def _add_aggregate(
        self,
        function: str,
        sql: str | None,
        kind: ColumnType,
        parameters: tuple[float | int | str, ...],
        node: exp.Expr,
    ) -> exp.Expr:
        for known in self.made.aggregates:
            if (known.function, known.sql, known.params) == (function, sql, parameters):
                return _column(known.name, node)
        name = f"_a{len(self.made.aggregates)}"
        self.made.aggregates.append(Aggregate(name, function, sql, kind, parameters))
        return _column(name, node)


_ALGORITHMS = ("default", "t-digest")


def fill_mode(select: exp.Select) -> FillMode | None:
    """The mode of FILL; NULL_F and VALUE_F are NULL and VALUE in a stream. None: no FILL clause."""
    node = select.args.get("fill")
    if node is None:
        return None
    mode: FillMode = node.args["mode"].removesuffix("_F").lower()
    return mode


def plan_fill(binder: Binder, select: exp.Select, selection: Selection) -> Fill:
    """FILL with one value per output that is made of aggregates."""
    mode = fill_mode(select)
    if mode is None:
        return Fill("none")
    node = select.args["fill"]
    if select.args.get("window") is None or not isinstance(
        select.args["window"], nodes.IntervalWindow
    ):
        refuse(binder.statement, "E_FILL_WINDOW", node)
    if any(a.function.startswith("user:") for a in selection.aggregates):
        unsupported(
            binder,
            node,
            "FILL cannot make up values of a user-defined aggregate",
            "fill in a SELECT over the results",
        )
    if mode != "value":
        return Fill(mode)
    values = node.args["values"]
    wanted = sum(selection.filled)
    if len(values) != wanted:
        refuse(binder.statement, "E_FILL_VALUES", node, given=len(values), wanted=wanted)
    texts = iter(values)
    made: list[str | None] = []
    for output, filled in zip(selection.outputs, selection.filled, strict=True):
        made.append(_fill_value(binder, next(texts), output) if filled else None)
    return Fill("value", tuple(made))


def _fill_value(binder: Binder, node: exp.Expr, output: Output) -> str:
    value = binder.compiled(node, {})
    if not value.literal:
        raise binder.statement.error(
            "a FILL value must be a constant",
            node,
            code="E_FILL_VALUES",
            hint=f"it is for {output.name}",
        )
    if output.type.numeric and value.type.text:
        try:
            float(value.value)
        except ValueError:
            raise binder.statement.error(
                f"'{value.value}' does not fit column {output.name}",
                node,
                code="E_FILL_VALUES",
                detail=f"{value.type} and {output.type} do not fit",
                hint="write a number",
            ) from None
    return to_sql(node)
