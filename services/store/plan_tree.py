"""A query's plan in words: a tree of steps, each above those that it gets its rows from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.relational import (
    ComputedRows,
    Derived,
    Enclosed,
    Join,
    PlannedQuery,
    QueryPlan,
    RowLimits,
    RowSource,
    SelectItem,
    SelectPlan,
)
from services.store.chosen_rows import chooser_of
from services.store.plan_notes import PlanNotes
from services.store.scan_words import describe_scan, describe_tags, names_read
from services.store.translate import is_aggregated, order_by_time

#: how far a step is moved to the right of the one above it
_INDENT = "  "
#: what names begin with that no user gave
_INTERNAL = "_penstock_"
_NO_MEANINGS: Mapping[str, exp.Expr] = {}


@dataclass(frozen=True)
class Step:
    """What is done, and the steps whose rows it is done with."""

    text: str
    below: tuple[Step, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the lines of the step and of all below it."""
        # a stack, because a query may be deeper than Python calls
        waiting = [(self, "")]
        while waiting:
            step, indent = waiting.pop()
            yield indent + step.text
            waiting += [(below, indent + _INDENT) for below in reversed(step.below)]


def steps_of(plan: QueryPlan, notes: PlanNotes) -> list[str]:
    """Return the steps of *plan*, whose tables are relations."""
    return list(_Tree(notes).query(plan, on_top=True).lines())


class _Tree:
    def __init__(self, notes: PlanNotes) -> None:
        self._notes = notes
        #: how many queries inside expressions were met
        self._queries = 0

    def query(self, plan: QueryPlan, *, on_top: bool = False) -> Step:
        """Return the last step of *plan*.

        Args:
            on_top: its rows are the answer.
        """
        if isinstance(plan, SelectPlan):
            return _SelectSteps(self, plan, on_top=on_top).last()
        if isinstance(plan, Enclosed):
            step = self.query(plan.query)
        else:
            word = plan.word.lower() + (" all" if plan.every else "")
            step = Step(word, (self.query(plan.left), self.query(plan.right)))
        texts = _Texts(self, _NO_MEANINGS)
        if plan.order_by:
            step = texts.step(f"sort by {texts.several(plan.order_by)}", step)
        return _limited(step, plan.limits)

    def next_query(self) -> str:
        """Return a name for a query inside an expression."""
        self._queries += 1
        return f"query {self._queries}"

    # ---------------------------------------------------------------- FROM

    def source(self, source: RowSource, read: Mapping[str, frozenset[str]]) -> Step:
        """Return the last step of what FROM names.

        Args:
            read: the columns that are read of each table, by the name that it has in the query.
        """
        if isinstance(source, Join):
            return self._join(source, read)
        if isinstance(source, Derived):
            return self._derived(source)
        if isinstance(source, ComputedRows):
            return self._computed(source)
        if source.of_tags:
            return Step(describe_tags(source))
        reading = self._notes.tables[source.relation]
        return Step(describe_scan(source, reading, read.get(source.name)))

    def _join(self, join: Join, read: Mapping[str, frozenset[str]]) -> Step:
        texts = _Texts(self, _NO_MEANINGS)
        words = [word.lower() for word in (join.method, join.side, join.kind) if word]
        text = " ".join([*words, "join"])
        if join.on is not None:
            text += f" on {texts.one(join.on)}"
        elif join.using:
            text += f" using {', '.join(join.using)}"
        if join.limit is not None:
            text += f", at most {join.limit.count} rows each"
        return texts.step(text, self.source(join.left, read), self.source(join.right, read))

    def _derived(self, source: Derived) -> Step:
        step = self.query(source.query)
        if not source.alias or source.alias.startswith(_INTERNAL):
            return step
        names = f" ({', '.join(source.names)})" if source.names else ""
        return Step(f"call it {source.alias}{names}", (step,))

    def _computed(self, rows: ComputedRows) -> Step:
        engine = self._notes.computed[rows.relation]
        read = {rows.source.name: engine.read} if engine.read is not None else {}
        step = self.source(rows.source, read)
        texts = _Texts(self, _NO_MEANINGS)
        if rows.where is not None:
            step = texts.step(f"keep rows where {texts.one(rows.where)}", step)
        each = f" of each {texts.several(rows.partition_by)}" if rows.partition_by else ""
        clause = to_sql(rows.clause)
        filled = "" if rows.fill is None else to_sql(rows.fill)
        if isinstance(rows.clause, nodes.Range):
            text = f"values between rows{each} at {clause} {filled}".rstrip()
            return texts.step(f"{text}, computed by {engine.name}", step)
        step = texts.step(f"windows of {clause}{each}, computed by {engine.name}", step)
        return Step(filled, (step,)) if filled else step


class _SelectSteps:
    """Makes the steps of one SELECT."""

    def __init__(self, tree: _Tree, select: SelectPlan, *, on_top: bool) -> None:
        self._tree = tree
        self._aggregated = is_aggregated(select)
        if on_top and not self._aggregated:
            select = order_by_time(select)
        self._select = select
        source = select.source
        self._computed = source if isinstance(source, ComputedRows) else None
        meanings = _NO_MEANINGS if self._computed is None else self._computed.meanings
        self._texts = _Texts(tree, meanings)

    def last(self) -> Step:
        """Return the last step."""
        select = self._select
        step = None
        if select.source is not None:
            step = self._tree.source(select.source, names_read(select))
        for text in self._middle():
            step = self._texts.step(text, *([step] if step is not None else []))
        assert step is not None  # a SELECT computes something
        return step if select.partition_by else _limited(step, select.limits)

    def _middle(self) -> Iterator[str]:
        """Yield the steps between FROM and LIMIT, the first one first."""
        select = self._select
        one = self._texts.one
        if select.where is not None:
            # over windows it is what HAVING was
            kept = "rows" if self._computed is None else "windows"
            yield f"keep {kept} where {one(select.where)}"
        yield from self._grouping()
        chooser = chooser_of(select)
        if chooser is not None:
            yield f"choose rows by {one(chooser)}{self._of_partitions()}"
        if select.series is not None:
            yield f"take rows in the order of {select.series.time}{self._of_partitions()}"
        yield f"compute {', '.join(map(self._item, select.items))}"
        if select.qualify is not None:
            yield f"keep rows where {one(select.qualify)}"
        if select.distinct:
            yield "leave out repeated rows"
        if select.order_by:
            yield f"sort by {self._texts.several(select.order_by)}"
        if select.partition_by and select.limits:
            yield f"{_limit_words(select.limits)}{self._of_partitions()}"

    def _grouping(self) -> Iterator[str]:
        select = self._select
        keys = select.group_by or (select.partition_by if self._aggregated else ())
        if keys:
            yield f"group by {self._texts.several(keys)}"
        elif self._aggregated:
            yield "group all rows"
        if select.having is not None:
            yield f"keep groups where {self._texts.one(select.having)}"

    def _of_partitions(self) -> str:
        if not self._select.partition_by:
            return ""
        rows = self._computed
        keys = self._select.partition_by if rows is None else rows.partition_by
        return f" in each partition by {self._texts.several(keys)}"

    def _item(self, item: SelectItem) -> str:
        """Return a column of the list: how it is computed, its name and its type."""
        text = self._texts.one(item.expression)
        named = item.name and not item.name.startswith(_INTERNAL) and item.name != text
        called = f" AS {to_sql(exp.to_identifier(item.name))}" if named else ""
        typed = f": {item.binding.type}" if item.binding is not None else ""
        return f"{text}{called}{typed}"


class _Texts:
    """Writes expressions of one SELECT in the words of the user's query, and makes steps of them
    with the queries inside them below.
    """

    def __init__(self, tree: _Tree, meanings: Mapping[str, exp.Expr]) -> None:
        self._tree = tree
        self._meanings = meanings
        self._inside: list[Step] = []

    def one(self, node: exp.Expr) -> str:
        """Return the text of an expression; queries in it are numbered."""
        return to_sql(node.copy().transform(self._replace, copy=False))

    def several(self, nodes: Sequence[exp.Expr]) -> str:
        """Return the texts of expressions."""
        return ", ".join(map(self.one, nodes))

    def step(self, text: str, *below: Step) -> Step:
        """Return a step above *below*, and above the queries that were written since the last."""
        inside = tuple(self._inside)
        self._inside.clear()
        return Step(text, (*below, *inside))

    def _replace(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, PlannedQuery):
            name = self._tree.next_query()
            self._inside.append(Step(name, (self._tree.query(node.args["plan"]),)))
            return exp.var(name)
        if not isinstance(node, exp.Column):
            return node
        if node.name in self._meanings:
            return self._meanings[node.name].copy()
        if node.table.startswith(_INTERNAL):
            node.set("table", None)
        return node


def _limited(step: Step, limits: RowLimits) -> Step:
    return Step(_limit_words(limits), (step,)) if limits else step


def _limit_words(limits: RowLimits) -> str:
    words = (
        ("SLIMIT", limits.partitions),
        ("SOFFSET", limits.skipped_partitions),
        ("LIMIT", limits.rows),
        ("OFFSET", limits.skipped),
    )
    return ", ".join(f"{word} {to_sql(count)}" for word, count in words if count is not None)
