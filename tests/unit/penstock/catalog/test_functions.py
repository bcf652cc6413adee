"""Rules of user-defined functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from penstock.catalog import changes
from penstock.catalog.functions import MAX_CODE, MAX_PARAMETERS, create_function, drop_function
from penstock.catalog.model import StreamEntry
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.types import ColumnType
from penstock.udf import UserFunction

from .builders import TIME, VOLTAGE, apply, ids, plan

INT = ColumnType("INT")


@pytest.fixture
def new_id() -> Callable[[], int]:
    return ids()


@pytest.fixture
def catalog(new_id: Callable[[], int]) -> Catalog:
    made = Catalog()
    apply(made, create_function(made, new_id, "Half", (INT,), INT, "code"))
    return made


def refused(code: str, call: Callable[[], Any]) -> CatalogError:
    with pytest.raises(CatalogError) as caught:
        call()
    assert caught.value.code == code
    return caught.value


def test_a_function_is_created_under_its_spelling(catalog: Catalog) -> None:
    assert catalog.function("HALF") == UserFunction(100, "Half", (INT,), INT, "code")


def test_a_function_that_is_there_is_kept_or_replaced(
    catalog: Catalog, new_id: Callable[[], int]
) -> None:
    def create(**options: Any) -> changes.Change:
        return create_function(catalog, new_id, "half", (INT,), INT, "new", **options)

    refused("E_FUNCTION_EXISTS", create)
    assert create(if_not_exists=True) == changes.Change()
    old = catalog.function("half")
    made = create(or_replace=True)
    assert made.removes == (old,)
    apply(catalog, made)
    found = catalog.function("half")
    assert found is not None and (found.code, found.name) == ("new", "half")
    assert old is not None and found.id != old.id
    assert (
        create_function(catalog, new_id, "fresh", (INT,), INT, "c", or_replace=True).removes == ()
    )


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("1a", "E_BAD_NAME"),
        ("a b", "E_BAD_NAME"),
        ("a\n", "E_BAD_NAME"),
        ("", "E_BAD_NAME"),
        ("_a", "E_BAD_NAME"),
        ("ä", "E_BAD_NAME"),
        ("lambda", "E_BAD_NAME"),
        ("x" * 65, "E_BAD_NAME"),
        ("ABS", "E_RESERVED_NAME"),
        ("Sum", "E_RESERVED_NAME"),
        ("twa", "E_RESERVED_NAME"),
        ("rand", "E_RESERVED_NAME"),
    ],
)
def test_a_name_is_one_of_python_and_none_of_the_dialect(
    catalog: Catalog, new_id: Callable[[], int], name: str, code: str
) -> None:
    refused(code, lambda: create_function(catalog, new_id, name, (INT,), INT, "c"))


@pytest.mark.parametrize(
    ("parameters", "returns", "code", "aggregate", "refusal"),
    [
        ((), INT, "c", False, "E_BAD_OPTION"),
        ((INT,) * (MAX_PARAMETERS + 1), INT, "c", False, "E_BAD_OPTION"),
        ((INT, INT), INT, "c", True, "E_BAD_OPTION"),
        ((INT,), INT, "é" * (MAX_CODE // 2 + 1), False, "E_BAD_OPTION"),
        ((ColumnType("JSON"),), INT, "c", False, "E_BAD_JSON"),
        ((INT,), ColumnType("JSON"), "c", False, "E_BAD_JSON"),
    ],
)
def test_a_function_has_limits(
    catalog: Catalog,
    new_id: Callable[[], int],
    parameters: tuple[ColumnType, ...],
    returns: ColumnType,
    code: str,
    aggregate: bool,
    refusal: str,
) -> None:
    refused(
        refusal,
        lambda: create_function(
            catalog, new_id, "f", parameters, returns, code, aggregate=aggregate
        ),
    )


def test_the_most_that_is_possible_is_taken(catalog: Catalog, new_id: Callable[[], int]) -> None:
    made = create_function(catalog, new_id, "f" * 64, (INT,) * MAX_PARAMETERS, INT, "c" * MAX_CODE)
    assert len(made.puts) == 1
    one = create_function(catalog, new_id, "g", (INT,), INT, "c", aggregate=True)
    assert isinstance(one.puts[0], UserFunction) and one.puts[0].aggregate


def test_a_function_is_dropped_unless_a_stream_calls_it(
    catalog: Catalog, new_id: Callable[[], int]
) -> None:
    refused("E_NO_FUNCTION", lambda: drop_function(catalog, "nope"))
    assert drop_function(catalog, "nope", if_exists=True) == changes.Change()
    half = catalog.function("half")
    assert half is not None
    apply(catalog, changes.create_database(catalog, new_id, "power"))
    for name in ("meters", "highs"):
        apply(catalog, changes.create_table(catalog, new_id, "power", name, (TIME, VOLTAGE)))
    made = dataclasses.replace(plan(catalog, 900, "s", "meters", "highs"), functions=(half,))
    stream = StreamEntry(900, made)
    catalog.put(stream)
    error = refused("E_IN_USE", lambda: drop_function(catalog, "HALF"))
    assert "power.s" in error.message
    catalog.remove(stream.id)
    assert drop_function(catalog, "half").removes == (half,)
