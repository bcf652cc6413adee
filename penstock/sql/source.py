"""Places in a text: offsets to lines, columns and caret snippets, and errors made from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from penstock.errors import SqlSemanticError, SqlSyntaxError
from penstock.sql.secret import mask

#: A snippet shows at most this much of a line on each side of the caret.
CONTEXT = 60


@dataclass(frozen=True, repr=False)
class Source:
    """One text given to `parse`. Offsets count characters from 0; lines and columns from 1."""

    text: str = ""

    @cached_property
    def shown(self) -> str:
        """The text as errors may show it: passwords are asterisks."""
        return mask(self.text)

    def locate(self, offset: int) -> tuple[int, int]:
        """Line and column of *offset*."""
        offset = min(max(offset, 0), len(self.text))
        before = self.text.rfind("\n", 0, offset)
        return self.text.count("\n", 0, offset) + 1, offset - before

    def offset(self, line: int, column: int) -> int:
        """Offset of *column* in *line*."""
        before = 0
        for _ in range(line - 1):
            before = self.text.index("\n", before) + 1
        return before + column - 1

    def snippet(self, offset: int, length: int = 1) -> str:
        """The line around *offset* with carets below *length* characters of it."""
        offset = min(max(offset, 0), len(self.text))
        text = self.shown
        begin = text.rfind("\n", 0, offset) + 1
        end = text.find("\n", offset)
        end = len(text) if end < 0 else end
        left = max(begin, offset - CONTEXT)
        right = min(end, offset + CONTEXT)
        prefix = ("…" if left > begin else "") + text[left:offset]
        rest = text[offset:right] + ("…" if right < end else "")
        # Every blank of the prefix is kept as it is, so tabs line up; all else becomes a space.
        pad = "".join(c if c == "\t" else " " for c in prefix)
        return f"{prefix}{rest}\n{pad}{'^' * max(1, min(length, right - offset))}".replace(
            "\r", " "
        )

    def syntax_error(
        self,
        message: str,
        offset: int,
        length: int = 1,
        *,
        code: str | None = None,
        detail: str = "",
        hint: str = "",
    ) -> SqlSyntaxError:  # noqa: E501
        """A syntax error at *offset*."""
        line, column = self.locate(offset)
        snippet = self.snippet(offset, length)
        return SqlSyntaxError(
            message, code=code, detail=detail, hint=hint, line=line, column=column, snippet=snippet
        )

    def semantic_error(
        self,
        message: str,
        at: int | exp.Expr | None,
        length: int = 1,
        *,
        code: str | None = None,
        detail: str = "",
        hint: str = "",
    ) -> SqlSemanticError:
        """A semantic error at an offset or at an expression node of this text (the nearest part of
        it that knows its place).
        """
        span = (at, at + length) if isinstance(at, int) else span_of(at)
        if span is None:
            return SqlSemanticError(message, code=code, detail=detail, hint=hint)
        line, column = self.locate(span[0])
        snippet = self.snippet(span[0], span[1] - span[0])
        return SqlSemanticError(
            message, code=code, detail=detail, hint=hint, line=line, column=column, snippet=snippet
        )


def mark(node: exp.Expr, start: int, end: int) -> None:
    """Note that *node* is written at [start, end) of its source."""
    node.meta["start"] = start
    node.meta["end"] = end


def span_of(node: exp.Expr | None) -> tuple[int, int] | None:
    """[start, end) of *node* in its source, from its own mark or those of its parts."""
    if node is None:
        return None
    if "start" in node.meta:
        return node.meta["start"], node.meta["end"]
    spans = [(n.meta["start"], n.meta["end"]) for n in node.walk() if "start" in n.meta]
    return (min(s for s, _ in spans), max(e for _, e in spans)) if spans else None
