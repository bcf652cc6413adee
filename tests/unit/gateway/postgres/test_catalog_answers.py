"""What tools ask of `pg_catalog` and `information_schema`, and what they may not ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.postgres.catalog_answers import CatalogAnswers
from gateway.postgres.catalog_query import read_catalog_query
from gateway.postgres.session import PgSession
from penstock.auth.access import Access
from penstock.catalog.view import Catalog
from penstock.errors import SqlSemanticError
from tests.unit.gateway.kit import MemoryGateway
from tests.unit.gateway.postgres.kit import DEFINITIONS

#: JDBC's DatabaseMetaData (pgjdbc 42.7)
JDBC_TABLES = """
SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, c.relname AS TABLE_NAME,
 CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema' WHEN true THEN CASE
 WHEN n.nspname = 'pg_catalog' OR n.nspname = 'information_schema' THEN CASE c.relkind
 WHEN 'r' THEN 'SYSTEM TABLE' WHEN 'v' THEN 'SYSTEM VIEW' WHEN 'i' THEN 'SYSTEM INDEX' ELSE NULL END
 ELSE NULL END WHEN false THEN CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' ELSE NULL END
 ELSE NULL END AS TABLE_TYPE, d.description AS REMARKS, '' as TYPE_CAT, '' as TYPE_SCHEM,
 '' as TYPE_NAME, '' AS SELF_REFERENCING_COL_NAME, '' AS REF_GENERATION
FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_description d ON
 (c.oid = d.objoid AND d.objsubid = 0 and d.classoid = 'pg_class'::regclass)
WHERE c.relnamespace = n.oid AND n.nspname LIKE 'd' AND (false OR ( c.relkind = 'r' AND n.nspname !~
 '^pg_' AND n.nspname <> 'information_schema' ) ) ORDER BY TABLE_TYPE,TABLE_SCHEM,TABLE_NAME
"""
JDBC_COLUMNS = """
SELECT * FROM (SELECT current_database() AS current_database, n.nspname,c.relname,a.attname,
 a.atttypid,a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull,a.atttypmod,a.attlen,
 t.typtypmod,row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum,
 nullif(a.attidentity, '') as attidentity,nullif(a.attgenerated, '') as attgenerated,
 pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc,dsc.description,t.typbasetype,t.typtype
FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid)
 JOIN pg_catalog.pg_attribute a ON (a.attrelid=c.oid) JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid)
 LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid=def.adrelid AND a.attnum = def.adnum)
 LEFT JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)
 LEFT JOIN pg_catalog.pg_class dc ON (dc.oid=dsc.classoid AND dc.relname='pg_class')
 LEFT JOIN pg_catalog.pg_namespace dn ON (dc.relnamespace=dn.oid AND dn.nspname='pg_catalog')
WHERE c.relkind in ('r','p','v','f','m') and a.attnum > 0 AND NOT a.attisdropped
 AND n.nspname LIKE 'd' AND c.relname LIKE 'meters') c WHERE true
ORDER BY nspname,c.relname,attnum
"""
JDBC_KEYS = """
SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, ct.relname AS TABLE_NAME, a.attname AS COLUMN_NAME,
 (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ, ci.relname AS PK_NAME,
 information_schema._pg_expandarray(i.indkey) AS KEYS, a.attnum AS A_ATTNUM
FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)
 JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)
 JOIN pg_catalog.pg_index i ON ( a.attrelid = i.indrelid)
 JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)
WHERE true AND ct.relname = 'meters' AND i.indisprimary
"""
JDBC_INDEXES = """
SELECT tmp.TABLE_CAT AS "TABLE_CAT", tmp.TABLE_SCHEM AS "TABLE_SCHEM", tmp.TABLE_NAME AS "TABLE_NAME",
 tmp.NON_UNIQUE AS "NON_UNIQUE", tmp.INDEX_QUALIFIER AS "INDEX_QUALIFIER",
 tmp.INDEX_NAME AS "INDEX_NAME", tmp.TYPE AS "TYPE", tmp.ORDINAL_POSITION AS "ORDINAL_POSITION",
 trim(both '"' from pg_catalog.pg_get_indexdef(tmp.CI_OID, tmp.ORDINAL_POSITION, false))
 AS "COLUMN_NAME", CASE tmp.AM_NAME WHEN 'btree' THEN CASE
 tmp.I_INDOPTION[tmp.ORDINAL_POSITION - 1] & 1::smallint WHEN 1 THEN 'D' ELSE 'A' END ELSE NULL END
 AS "ASC_OR_DESC", tmp.CARDINALITY AS "CARDINALITY", tmp.PAGES AS "PAGES",
 tmp.FILTER_CONDITION AS "FILTER_CONDITION", tmp.REMARKS AS "REMARKS"FROM (
SELECT current_database() AS TABLE_CAT, n.nspname AS TABLE_SCHEM, ct.relname AS TABLE_NAME,
 NOT i.indisunique AS NON_UNIQUE, NULL AS INDEX_QUALIFIER, ci.relname AS INDEX_NAME,
 CASE i.indisclustered WHEN true THEN 1 ELSE CASE am.amname WHEN 'hash' THEN 2 ELSE 3 END END AS TYPE,
 (information_schema._pg_expandarray(i.indkey)).n AS ORDINAL_POSITION, ci.reltuples AS CARDINALITY,
 ci.relpages AS PAGES, pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS FILTER_CONDITION,
 ci.oid AS CI_OID, i.indoption AS I_INDOPTION, am.amname AS AM_NAME, d.description AS REMARKS
FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)
 JOIN pg_catalog.pg_index i ON (ct.oid = i.indrelid)
 JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid) JOIN pg_catalog.pg_am am ON (ci.relam = am.oid)
 LEFT JOIN pg_catalog.pg_description d ON (ci.oid = d.objoid)
WHERE true AND n.nspname = $1 AND ct.relname = $2 ) AS tmp
 ORDER BY "NON_UNIQUE", "TYPE", "INDEX_NAME", "ORDINAL_POSITION"
"""
#: Grafana's PostgreSQL source
GRAFANA_TABLES = """
SELECT CASE WHEN quote_ident(table_schema) IN (
 SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
 FROM generate_series(array_lower(string_to_array(current_setting('search_path'),','),1),
   array_upper(string_to_array(current_setting('search_path'),','),1)) as i,
   string_to_array(current_setting('search_path'),',') s)
 THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name)
 END AS "table"
FROM information_schema.tables
WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', '_timescaledb_cache')
ORDER BY 1
"""
GRAFANA_COLUMNS = """
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
WHERE table_schema = 'd' AND quote_ident(table_name) = 'meters'
"""
#: dbt's postgres adapter
DBT_RELATIONS = """
select 'penstock' as database, tablename as name, schemaname as schema, 'table' as type
from pg_tables where schemaname ilike 'd' union all
select 'penstock' as database, viewname as name, schemaname as schema, 'view' as type
from pg_views where schemaname ilike 'd' union all
select 'penstock' as database, matviewname as name, schemaname as schema, 'materialized_view' as type
from pg_matviews where schemaname ilike 'd'
"""
METABASE_TABLES = """
select "n"."nspname" as "schema", "c"."relname" as "name", case "c"."relkind" when 'r' then 'TABLE'
 when 'v' then 'VIEW' else null end as "type", "d"."description" as "description",
 "stat"."n_live_tup" as "estimated_row_count"
from "pg_catalog"."pg_class" as "c" inner join "pg_catalog"."pg_namespace" as "n" on
 "c"."relnamespace" = "n"."oid" left join "pg_catalog"."pg_description" as "d" on
 ("c"."oid" = "d"."objoid") and ("d"."objsubid" = 0) and ("d"."classoid" = 'pg_class'::regclass)
 left join "pg_stat_user_tables" as "stat" on ("n"."nspname" = "stat"."schemaname") and
 ("c"."relname" = "stat"."relname")
where ("c"."relnamespace" = "n"."oid") and ("n"."nspname" !~ '^pg_') and
 ("n"."nspname" <> 'information_schema') and c.relkind in ('r', 'p', 'v', 'f', 'm')
order by "type" asc, "schema" asc, "name" asc
"""
SQLALCHEMY_TABLES = """
SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace
 ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p']) AND pg_catalog.pg_class.relpersistence
 != 't' AND pg_catalog.pg_namespace.nspname = 'd'
"""
PSYCOPG_TYPE = """
SELECT typname AS name, oid, typarray AS array_oid, oid::regtype::text AS regtype, typdelim AS delimiter
FROM pg_type t WHERE t.oid = to_regtype('int4') ORDER BY t.oid
"""


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    gateway = MemoryGateway(tmp_path)
    gateway.define(DEFINITIONS)
    home = gateway.catalog.database("d")
    assert home is not None
    gateway.allow("ann", "READ", on=home.id)
    yield gateway.catalog
    gateway.close()


def ask(
    catalog: Catalog, sql: str, *values: Any, user: str = "root", database: str | None = None
) -> list[dict[str, Any]]:
    query = read_catalog_query(sql)
    assert query is not None
    answers = CatalogAnswers(lambda: catalog, Access(lambda: catalog, "root"))
    session = PgSession(user, "127.0.0.1", with_password=True, database=database)
    rows: list[dict[str, Any]] = answers.answer(query, session, 7, values).to_pylist()
    return rows


def test_jdbc_lists_tables_and_columns(catalog: Catalog) -> None:
    tables = ask(catalog, JDBC_TABLES)
    assert [(r["table_schem"], r["table_name"], r["table_type"]) for r in tables] == [
        ("d", "meters", "TABLE"),
        ("d", "plain", "TABLE"),
    ]
    columns = ask(catalog, JDBC_COLUMNS)
    assert [(r["attname"], r["atttypid"], r["attnum"], r["description"]) for r in columns] == [
        ("ts", 1184, 1, None),
        ("volts", 701, 2, None),
        ("price", 1700, 3, None),
        ("site", 25, 4, "tag"),
    ]
    assert [r["attnotnull"] for r in columns] == [True, False, False, False]
    assert ask(catalog, JDBC_KEYS) == []
    limit = "SELECT setting FROM pg_catalog.pg_settings WHERE name='max_index_keys'"
    assert ask(catalog, limit) == [{"setting": "32"}]
    assert ask(catalog, JDBC_INDEXES, "d", "meters") == []


def test_grafana_lists_tables_and_columns(catalog: Catalog) -> None:
    found = [r["table"] for r in ask(catalog, GRAFANA_TABLES, user="ann")]
    assert found == ["d.meters", "d.plain"]
    found = [r["table"] for r in ask(catalog, GRAFANA_TABLES, user="ann", database="d")]
    assert found == ["meters", "plain"]
    assert ask(catalog, GRAFANA_COLUMNS)[:2] == [
        {"column": "ts", "type": "timestamp with time zone"},
        {"column": "volts", "type": "double precision"},
    ]


def test_dbt_metabase_and_sqlalchemy_list_tables(catalog: Catalog) -> None:
    assert {r["name"] for r in ask(catalog, DBT_RELATIONS)} == {"meters", "plain"}
    assert [r["name"] for r in ask(catalog, METABASE_TABLES, user="ann")] == ["meters", "plain"]
    assert {r["relname"] for r in ask(catalog, SQLALCHEMY_TABLES)} == {"meters", "plain"}


def test_psycopg_finds_types(catalog: Catalog) -> None:
    assert ask(catalog, PSYCOPG_TYPE) == [
        {"name": "int4", "oid": 23, "array_oid": 1007, "regtype": "integer", "delimiter": ","}
    ]


@pytest.mark.parametrize(
    ("sql", "row"),
    [
        ("SELECT version()", {"version": "PostgreSQL 15.0 (Penstock)"}),
        (
            "SELECT current_schema, current_database()",
            {"current_schema": "d", "current_database": "penstock"},
        ),
        ("SELECT current_schemas(true) AS x", {"x": ["pg_catalog", "d"]}),
        ("SELECT current_setting('server_version_num')::int AS n", {"n": 150000}),
        ("SELECT set_config('search_path', '', false)", {"set_config": ""}),
        ("SELECT user, session_user", {"user": "root", "session_user": "root"}),
        ("SELECT 'd.meters'::regclass::oid = to_regclass('meters') AS x", {"x": True}),
        ("SELECT to_regclass('d.nothing') AS x", {"x": None}),
        ("SELECT oid::regclass AS x FROM pg_class WHERE relname = 'plain'", {"x": "plain"}),
        ("SELECT has_schema_privilege('d', 'USAGE') AS x", {"x": True}),
        (
            "SELECT format_type(1700, 655366), format_type(1009, -1) AS b",
            {"format_type": "numeric(10,2)", "b": "text[]"},
        ),
        ("SELECT count(*) AS n FROM pg_catalog.pg_get_keywords()", {"n": 0}),
        (
            "SELECT pg_catalog.count(*) AS n FROM pg_namespace WHERE nspname = ANY('{d,x}'::text[])",
            {"n": 1},
        ),
        (
            "SELECT nspname = ALL('{d,x}'::text[]) AS x FROM pg_namespace WHERE nspname <> ALL"
            " ('{pg_catalog,information_schema,penstock}'::text[]) AND nspname = 'd'",
            {"x": False},
        ),
        (
            "select string_agg(word, ',') from pg_catalog.pg_get_keywords()"
            " where word <> ALL ('{a,abs}'::text[])",
            {"string_agg": None},
        ),
        ("WITH d AS (SELECT 1 AS a) SELECT a FROM d WHERE a OPERATOR(pg_catalog.=) 1", {"a": 1}),
    ],
)
def test_functions_and_casts_of_postgresqls(
    catalog: Catalog, sql: str, row: dict[str, Any]
) -> None:
    assert ask(catalog, sql, database="d") == [row]


def test_values_are_bound(catalog: Catalog) -> None:
    sql = "SELECT relname FROM pg_class c WHERE relname = $1 AND relkind <> $2"
    assert ask(catalog, sql, "plain", "v' OR true --") == [{"relname": "plain"}]
    with pytest.raises(SqlSemanticError, match=r"\$2"):
        ask(catalog, sql, "plain")


def test_nobody_sees_what_they_have_no_right_on(catalog: Catalog) -> None:
    for name in ("pg_class", "pg_attribute", "pg_tables", "information_schema.columns"):
        shown = str(ask(catalog, f"SELECT * FROM {name}", user="ann"))
        assert "hidden" not in shown and "secrets" not in shown and "'x'" not in shown
    assert "secrets" in str(ask(catalog, "SELECT * FROM pg_class"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM pg_class, read_csv('/etc/passwd')",
        "SELECT * FROM pg_class, '/etc/passwd'",
        "SELECT * FROM pg_class, duckdb_settings()",
        "SELECT * FROM pg_class, d.meters",
        "SELECT getenv('HOME') FROM pg_class",
        "SELECT read_text('/etc/passwd') FROM pg_class",
        "SELECT pg_read_file('/etc/passwd') FROM pg_class",
        "SELECT * INTO x FROM pg_class",
        "SELECT 1 FROM pg_class FOR UPDATE",
        "SELECT query('SELECT 1') FROM pg_class",
        "SELECT relname::geometry FROM pg_class",
    ],
)
def test_nothing_else_is_reached(catalog: Catalog, sql: str) -> None:
    with pytest.raises(SqlSemanticError):
        ask(catalog, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM meters",
        "SELECT * FROM meters WHERE site = 'pg_class'",
        "SELECT * FROM information_schema.ins_tables",
        "COPY pg_class TO '/tmp/x'",
        "SELECT pg_x FROM d.plain",
        "SELECT (",
        "SELECT 1; SELECT 2",
    ],
)
def test_what_is_not_about_catalogs_is_left_to_the_dialect(sql: str) -> None:
    assert read_catalog_query(sql) is None
