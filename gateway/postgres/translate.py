"""PostgreSQL's words as ours: how a text is cut into statements, and what is written otherwise.

"Names" become `names`, $1 becomes ?, backslashes in strings are kept as they are, `x::type` becomes
CAST, and the catalog in front of a table's schema goes. The grammar is not looked at: what a
statement means, and what is wrong with it, the dialect says. Each statement knows where its text
came from, so that places in errors are those of the client's text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from penstock.errors import SqlSyntaxError

#: the only catalog: databases are schemas in it
CATALOG = "penstock"
#: longest text of one message's statements that is looked at, in characters
MAX_CHARACTERS = 1 << 20
_TOKEN = re.compile(
    r"""(?P<blank>\s+|--[^\n]*)
    | (?P<comment>/\*)
    | (?P<escaped>[eE]'(?:[^'\\]|\\.|'')*+')
    | (?P<string>'(?:[^']|'')*+')
    | (?P<quoted>"(?:[^"]|"")*+")
    | (?P<backticked>`[^`]*`)
    | (?P<parameter>\$\d{1,5})
    | (?P<dollar>\$(?:[A-Za-z_]\w*)?\$)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<cast>::)
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
#: schemas whose functions are called without them
_SYSTEM_SCHEMAS = ("pg_catalog", "information_schema")
_COMMENT_PART = re.compile(r"/\*|\*/")
_NAMES = ("word", "quoted", "backticked")
_OPERANDS = (*_NAMES, "string", "escaped", "number", "parameter", "dollar")
_TYPE_NAMES = {
    "text": "VARCHAR",
    "varchar": "VARCHAR",
    "character varying": "VARCHAR",
    "name": "VARCHAR",
    "int": "INT",
    "int4": "INT",
    "integer": "INT",
    "int2": "SMALLINT",
    "smallint": "SMALLINT",
    "int8": "BIGINT",
    "bigint": "BIGINT",
    "float4": "FLOAT",
    "real": "FLOAT",
    "float8": "DOUBLE",
    "double precision": "DOUBLE",
    "numeric": "DECIMAL",
    "decimal": "DECIMAL",
    "bool": "BOOL",
    "boolean": "BOOL",
    "bytea": "VARBINARY",
    "timestamp": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMP",
    "timestamp without time zone": "TIMESTAMP",
    "timestamptz": "TIMESTAMP",
}
#: words that types of several words go on with
_TYPE_PARTS = frozenset(word for name in _TYPE_NAMES for word in name.split()[1:])


@dataclass(frozen=True)
class PgToken:
    """A piece of a text, where it began, and what stands for it in our SQL."""

    kind: str
    text: str
    at: int
    ours: str


@dataclass(frozen=True)
class PgStatement:
    """A statement as its client wrote it, and as our dialect reads it.

    Attributes:
        at: where it begins in the client's text.
        parameters: numbers of the parameters, in the order in which their `?` come.
    """

    theirs: str
    at: int
    ours: str
    parameters: tuple[int, ...]
    starts: tuple[int, ...] = ()
    origins: tuple[int, ...] = ()

    @property
    def first_word(self) -> str:
        """Return its first word, in capitals."""
        found = re.match(r"\s*(\w+)", self.ours)
        return found[1].upper() if found else ""

    def position(self, line: int, column: int) -> int:
        """Return the character, from 1, of the client's text that *line* and *column* of ours are;
        0: there is no such line.
        """
        lines = self.ours.split("\n")
        if not 1 <= line <= len(lines):
            return 0
        offset = sum(len(text) + 1 for text in lines[: line - 1]) + column - 1
        place = bisect_right(self.starts, offset) - 1
        if place < 0:
            return self.at + 1
        return self.origins[place] + offset - self.starts[place] + 1


def split_statements(text: str) -> list[PgStatement]:
    """Return the statements of a text. Raises SqlSyntaxError."""
    if len(text) > MAX_CHARACTERS:
        raise SqlSyntaxError(
            f"the text has {len(text)} characters, the limit is {MAX_CHARACTERS}", code="E_TOO_LONG"
        )
    found = []
    some: list[PgToken] = []
    for token in _tokens(text):
        if token.text == ";":
            found += _statement(text, some)
            some = []
        else:
            some.append(token)
    return found + _statement(text, some)


def _statement(text: str, tokens: list[PgToken]) -> list[PgStatement]:
    """Return the statement that tokens are; none if there are only blanks."""
    tokens = _without_outer_blanks(tokens)
    if not tokens:
        return []
    parameters = tuple(int(t.text[1:]) for t in tokens if t.kind == "parameter")
    made = _with_casts(_without_catalog(tokens))
    starts = []
    at = 0
    for token in made:
        starts.append(at)
        at += len(token.ours)
    begin = tokens[0].at
    end = tokens[-1].at + len(tokens[-1].text)
    return [
        PgStatement(
            text[begin:end],
            begin,
            "".join(token.ours for token in made),
            parameters,
            tuple(starts),
            tuple(token.at for token in made),
        )
    ]


def _without_outer_blanks(tokens: list[PgToken]) -> list[PgToken]:
    while tokens and tokens[0].kind == "blank":
        tokens = tokens[1:]
    while tokens and tokens[-1].kind == "blank":
        tokens = tokens[:-1]
    return tokens


def without_schemas(text: str) -> str:
    """Return a query over catalogs without the schemas in front of its functions. Raises
    SqlSyntaxError.
    """
    tokens = _tokens(text)
    kept = []
    skipped = 0
    for at, token in enumerate(tokens):
        if skipped:
            skipped -= 1
            continue
        ahead = [t.text for t in tokens[at + 1 : at + 4]]
        called = len(ahead) == 3 and (ahead[0], ahead[2]) == (".", "(")
        if called and token.text.lower() in _SYSTEM_SCHEMAS:
            skipped = 1
            continue
        kept.append(token.text)
    return "".join(kept)


# ---------------------------------------------------------------- tokens


def _tokens(text: str) -> list[PgToken]:
    found = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None
        kind = match.lastgroup or "other"
        end = match.end()
        if kind == "comment":
            kind = "blank"
            end = _comment_end(text, at)
        elif kind == "dollar":
            end = _dollar_end(text, match[0], end, at)
        part = text[at:end]
        if kind == "other" and part in "'\"`":
            raise _unclosed(text, at, "it")
        found.append(PgToken(kind, part, at, _ours(kind, part, match[0])))
        at = end
    return found


def _ours(kind: str, part: str, opening: str) -> str:
    """Return a token as our dialect has it."""
    if kind == "string":
        return part.replace("\\", "\\\\")
    if kind == "escaped":
        return part[1:]
    if kind == "quoted":
        name = part[1:-1].replace('""', '"')
        # a name with a backtick is none of ours: it stays as it is, to be refused
        return part if "`" in name else f"`{name}`"
    if kind == "dollar":
        content = part[len(opening) : -len(opening)]
        return "'" + content.replace("\\", "\\\\").replace("'", "''") + "'"
    if kind == "parameter":
        return "?"
    if kind == "blank" and part.startswith("/*"):
        # ours do not nest
        return " "
    return part


def _comment_end(text: str, at: int) -> int:
    depth = 0
    for part in _COMMENT_PART.finditer(text, at):
        depth += 1 if part[0] == "/*" else -1
        if depth == 0:
            return part.end()
    raise _unclosed(text, at, "the comment")


def _dollar_end(text: str, opening: str, after: int, at: int) -> int:
    end = text.find(opening, after)
    if end < 0:
        raise _unclosed(text, at, "the string")
    return end + len(opening)


def _unclosed(text: str, at: int, what: str) -> SqlSyntaxError:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return SqlSyntaxError(f"{what} begins here and has no end", line=line, column=column)


# ---------------------------------------------------------------- what is written otherwise


def _without_catalog(tokens: list[PgToken]) -> list[PgToken]:
    """Return tokens without the catalog of `catalog.schema.table`."""
    made: list[PgToken] = []
    at = 0
    while at < len(tokens):
        some = tokens[at : at + 5]
        whole = [t.kind in _NAMES if n % 2 == 0 else t.text == "." for n, t in enumerate(some)]
        inside = bool(made) and made[-1].text == "."
        if len(whole) == 5 and all(whole) and not inside and _name(some[0]) == CATALOG:
            at += 2
            continue
        made.append(tokens[at])
        at += 1
    return made


def _name(token: PgToken) -> str:
    return token.text.strip('"`').lower()


def _with_casts(tokens: list[PgToken]) -> list[PgToken]:
    """Return tokens with CAST for each `::`."""
    made: list[PgToken] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token.kind != "cast":
            made.append(token)
            continue
        begin = _operand(made)
        end, name = _type_at(tokens, at)
        if begin is None or name is None:
            made.append(token)
            continue
        made.insert(begin, PgToken("word", "CAST", made[begin].at, "CAST("))
        # the parenthesis is of the token, so that a further cast takes CAST(…) as it is
        made[begin:] = [_joined(made[begin:], f" AS {name})")]
        at = end
    return made


def _joined(tokens: list[PgToken], tail: str) -> PgToken:
    ours = "".join(token.ours for token in tokens) + tail
    return PgToken("word", "CAST", tokens[0].at, ours)


def _operand(made: list[PgToken]) -> int | None:
    """Return where the operand of a cast begins, at whose end *made* ends; None: nothing is
    there.
    """
    if not made:
        return None
    at = len(made) - 1
    if made[at].text == ")":
        begin = _call_begin(made)
        if begin is None:
            return None
        at = begin
    elif made[at].kind not in _OPERANDS:
        return None
    while at >= 2 and made[at - 1].text == "." and made[at - 2].kind in _NAMES:
        at -= 2
    return at


def _call_begin(made: list[PgToken]) -> int | None:
    """Return where the `(…)` or `f(…)` begins at whose end *made* ends; None: nowhere."""
    depth = 0
    for at in range(len(made) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(made[at].text, 0)
        if depth == 0:
            named = at > 0 and made[at - 1].kind in _NAMES
            return at - 1 if named else at
    return None


def _type_at(tokens: list[PgToken], at: int) -> tuple[int, str | None]:
    """Return where the type behind `::` ends, and how ours has it; None: ours has none."""
    end, words = _type_words(tokens, at)
    name = _TYPE_NAMES.get(words)
    if name is None:
        return at, None
    if end < len(tokens) and tokens[end].text == "(":
        end, length = _type_length(tokens, end)
        return end, name + ("" if name == "TIMESTAMP" else length)
    return end, "DOUBLE" if name == "DECIMAL" else name


def _type_words(tokens: list[PgToken], at: int) -> tuple[int, str]:
    """Return where the words of the type at *at* end, and the words."""
    words: list[str] = []
    end = at
    for place in range(at, len(tokens)):
        token = tokens[place]
        word = token.text.lower()
        if token.kind == "blank":
            continue
        if token.kind == "word" and (not words or word in _TYPE_PARTS):
            words.append(word)
            end = place + 1
            continue
        break
    return end, " ".join(words)


def _type_length(tokens: list[PgToken], at: int) -> tuple[int, str]:
    """Return where the parentheses of a type end that begin at *at*, and their text."""
    close = at
    while close < len(tokens) and tokens[close].text != ")":
        close += 1
    return close + 1, "".join(token.text for token in tokens[at : close + 1])
