"""OTLP metrics in their JSON form, to points.

A metric becomes what Prometheus makes of it: gauges and sums a table with `_value`, a histogram
`…_bucket` with the tag `le`, `…_count`, `…_sum`, and `…_min` and `…_max` where they are sent.
Attributes of the resource and of the data point are tags.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any, TypeAlias

from gateway.wires.otlp_messages import body_error, too_large
from gateway.wires.points import LineError, Point
from gateway.wires.puts import VALUE_COLUMN
from gateway.wires.row_budget import RowBudget

#: in place of a time of JSON, which has whole numbers of 64 bits as texts
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_NO_WORD = re.compile(r"\W", re.ASCII)
#: names that rows have besides tags
_TAKEN = frozenset(("tbname", "op", "_ts", VALUE_COLUMN))
_NO_VALUE = 1
_LARGEST = 1 << 63
#: name in lower case → name and value
Tags: TypeAlias = dict[str, tuple[str, str]]
#: what follows the metric's name, tags besides those of the data point, and the value
Value: TypeAlias = tuple[str, Tags, float]
#: a data point and its number → its values
Convert: TypeAlias = Callable[[dict[str, Any], int], Iterator[Value]]


def read_points(sent: Any) -> tuple[list[Point], list[LineError]]:
    """Return the points of an ExportMetricsServiceRequest, and its data points that are refused, by
    their numbers from 1; times in nanoseconds. Values that are no number are left out.

    Raises:
        SchemaError: it is no such request, or its rows are too many.
    """
    return _Metrics().read(sent)


class _Metrics:
    """A request on its way."""

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._refused: list[LineError] = []
        self._line = 0
        self._budget = RowBudget(too_large)

    def read(self, sent: Any) -> tuple[list[Point], list[LineError]]:
        if not isinstance(sent, dict):
            raise body_error("it is no object")
        for of_resource in _objects(sent, "resourceMetrics"):
            common = _tags(_object(of_resource, "resource"))
            for of_scope in _objects(of_resource, "scopeMetrics"):
                tags = common | _scope_tags(_object(of_scope, "scope"))
                for metric in _objects(of_scope, "metrics"):
                    self._metric(metric, tags)
        return self._points, self._refused

    def _metric(self, metric: dict[str, Any], common: Tags) -> None:
        name = metric.get("name")
        for kind, convert in _KINDS.items():
            for sent in _objects(_object(metric, kind), "dataPoints"):
                self._line += 1
                try:
                    if not isinstance(name, str) or not name:
                        raise LineError("the metric has no name", self._line)
                    if convert is None:
                        raise LineError(f"{kind} is not taken", self._line)
                    self._take(_plain_name(name), common | _tags(sent), convert, sent)
                except LineError as bad:
                    self._refused.append(bad)

    def _take(self, metric: str, tags: Tags, convert: Convert, sent: dict[str, Any]) -> None:
        flags = _integer(sent, "flags", self._line) or 0
        if flags & _NO_VALUE:
            return
        time = _integer(sent, "timeUnixNano", self._line) or 0
        if not 0 < time < _LARGEST:
            raise LineError("the data point has no time", self._line)
        made = []
        for suffix, more, value in convert(sent, self._line):
            if math.isfinite(value):
                own = tuple(sorted((tags | more).values()))
                self._budget.spend(1, own)
                made.append(Point(metric + suffix, own, {VALUE_COLUMN: value}, time, self._line))
        self._points += made


def _number(sent: dict[str, Any], line: int) -> Iterator[Value]:
    """Yield the value of a gauge or sum."""
    value = _double(sent, "asDouble", line)
    if value is None:
        whole = _integer(sent, "asInt", line)
        value = float(whole) if whole is not None else None
    if value is None:
        raise LineError("the data point has no value", line)
    yield "", {}, value


def _histogram(sent: dict[str, Any], line: int) -> Iterator[Value]:
    """Yield the values of a histogram; buckets count what is below them, too."""
    counts, bounds = _buckets(sent, line)
    yield "_count", {}, float(_integer(sent, "count", line) or 0)
    for name in ("sum", "min", "max"):
        value = _double(sent, name, line)
        if value is not None:
            yield f"_{name}", {}, value
    for below, bound in zip(accumulate(counts), [*bounds, None], strict=False):
        edge = "+Inf" if bound is None else repr(bound)
        yield "_bucket", {"le": ("le", edge)}, float(below)


def _buckets(sent: dict[str, Any], line: int) -> tuple[list[int], list[float | None]]:
    """Return what each bucket of a histogram counts, and the bounds between them."""
    counts = [_integer({"": one}, "", line) or 0 for one in _list(sent, "bucketCounts")]
    bounds = [_double({"": one}, "", line) for one in _list(sent, "explicitBounds")]
    if counts and len(counts) != len(bounds) + 1:
        raise LineError("the histogram has not one bucket more than bounds", line)
    return counts, bounds


#: kind of a metric → what makes values of a data point; None: it is not taken
_KINDS: Mapping[str, Convert | None] = {
    "gauge": _number,
    "sum": _number,
    "histogram": _histogram,
    "exponentialHistogram": None,
    "summary": None,
}


# ---------------------------------------------------------------- names and tags


def _plain_name(name: str) -> str:
    """Return *name* with an underscore for each character that SQL would want quoted."""
    plain = _NO_WORD.sub("_", name)
    return f"_{plain}" if plain[0].isdigit() else plain


def _tags(sent: dict[str, Any]) -> Tags:
    """Return the attributes of *sent* as tags; names that become one have their values joined."""
    found: Tags = {}
    for one in _objects(sent, "attributes"):
        key = one.get("key")
        text = _text(_object(one, "value"))
        if not isinstance(key, str) or not key or not text:
            continue
        name = _plain_name(key)
        if name.lower() in _TAKEN:
            name += "_"
        before = found.get(name.lower())
        found[name.lower()] = (name, text) if before is None else (before[0], f"{before[1]};{text}")
    return found


def _scope_tags(scope: dict[str, Any]) -> Tags:
    found: Tags = {}
    for field in ("name", "version"):
        text = scope.get(field)
        if isinstance(text, str) and text:
            found[f"otel_scope_{field}"] = (f"otel_scope_{field}", _printable(text))
    return found


def _text(value: dict[str, Any]) -> str:
    """Return an attribute's value as a text."""
    plain = _plain(value)
    if plain is None:
        return ""
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain(value: dict[str, Any]) -> Any:
    """Return an AnyValue as JSON would have it; None: it is empty."""
    for kind, plain in value.items():
        if kind == "arrayValue" and isinstance(plain, dict):
            return [_plain(one) for one in _objects(plain, "values")]
        if kind == "kvlistValue" and isinstance(plain, dict):
            pairs = _objects(plain, "values")
            return {str(one.get("key", "")): _plain(_object(one, "value")) for one in pairs}
        single = _single(kind, plain)
        if single is not None:
            return single
    return None


def _single(kind: str, plain: Any) -> str | float | None:
    """Return a text, a number or a truth value of an AnyValue; None: it is something else."""
    if not isinstance(plain, str):
        return plain if isinstance(plain, bool | int | float) else None
    if kind == "intValue" and _WHOLE.fullmatch(plain):
        return int(plain)
    return _printable(plain)


def _printable(text: str) -> str:
    """Return *text* without halves of characters, which JSON can say and no text may have."""
    return text if text.isascii() else text.encode(errors="replace").decode()


# ---------------------------------------------------------------- parts of JSON


def _object(sent: dict[str, Any], name: str) -> dict[str, Any]:
    found = sent.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise body_error(f"{name} is no object")
    return found


def _list(sent: dict[str, Any], name: str) -> list[Any]:
    found = sent.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise body_error(f"{name} is no array")
    return found


def _objects(sent: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = _list(sent, name)
    if not all(isinstance(one, dict) for one in found):
        raise body_error(f"{name} holds something else than objects")
    return found


def _integer(sent: dict[str, Any], name: str, line: int) -> int | None:
    """Return a whole number, which JSON may have as a text. Raises LineError."""
    value = sent.get(name)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise LineError(f"{name or 'a count'} is no whole number", line)


def _double(sent: dict[str, Any], name: str, line: int) -> float | None:
    """Return a number, which JSON may have as a text. Raises LineError."""
    value = sent.get(name)
    if value is None:
        return None
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise LineError(f"{name or 'a bound'} is no number", line)
