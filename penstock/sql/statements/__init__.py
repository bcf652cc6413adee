"""Every statement of the dialect as frozen data. Positions, source text and notices do not count in
comparisons.

A statement says what was written, not what it means: names are unbound, nothing is checked against
the catalog. Expressions are sqlglot trees (`exp.Expr`, see `penstock.sql.nodes`); literals in
INSERT and TAGS are plain values.
"""

from penstock.sql.statements.base import Name, Placeholder, RelativeTime, Statement, Value
from penstock.sql.statements.data import (
    Delete,
    Describe,
    Insert,
    InsertPart,
    InsertSelect,
    Query,
    Show,
    ShowCreate,
)
from penstock.sql.statements.databases import (
    AlterDatabase,
    CreateDatabase,
    CreateSnode,
    DatabaseOptions,
    UseDatabase,
)
from penstock.sql.statements.federation import CreateExternalStream, CreateView, SteerView
from penstock.sql.statements.principals import (
    AlterUser,
    CreateRole,
    CreateUser,
    Grant,
    GrantKind,
    GrantRole,
    RevokeTokens,
)
from penstock.sql.statements.streams import (
    AlterStream,
    CreateStream,
    Explain,
    FlushStream,
    NotifyClause,
    PauseStream,
    RecalculateStream,
    ResumeStream,
    StreamOptions,
    TargetColumn,
    TargetTag,
)
from penstock.sql.statements.tables import (
    AlterAction,
    AlterTable,
    ChildDef,
    ColumnDef,
    CreateChildren,
    CreateFunction,
    CreateStable,
    CreateStreamTable,
    CreateTable,
    Drop,
    DropKind,
    StreamTableSettings,
    TableOptions,
)

__all__ = [
    "AlterAction",
    "AlterDatabase",
    "AlterStream",
    "AlterTable",
    "AlterUser",
    "ChildDef",
    "ColumnDef",
    "CreateChildren",
    "CreateDatabase",
    "CreateExternalStream",
    "CreateFunction",
    "CreateRole",
    "CreateSnode",
    "CreateStable",
    "CreateStream",
    "CreateStreamTable",
    "CreateTable",
    "CreateUser",
    "CreateView",
    "DatabaseOptions",
    "Delete",
    "Describe",
    "Drop",
    "DropKind",
    "Explain",
    "FlushStream",
    "Grant",
    "GrantKind",
    "GrantRole",
    "Insert",
    "InsertPart",
    "InsertSelect",
    "Name",
    "NotifyClause",
    "PauseStream",
    "Query",
    "RecalculateStream",
    "Placeholder",
    "RelativeTime",
    "ResumeStream",
    "RevokeTokens",
    "Show",
    "ShowCreate",
    "Statement",
    "SteerView",
    "StreamOptions",
    "StreamTableSettings",
    "TableOptions",
    "TargetColumn",
    "TargetTag",
    "UseDatabase",
    "Value",
]
