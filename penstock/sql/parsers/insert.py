from penstock.sql.source import Source
from penstock.sql.statements import Insert
def parse_insert(source: Source, start: int, end: int) -> Insert:
    raise source.syntax_error("x", start)
