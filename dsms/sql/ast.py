"""The syntax tree: what a statement says, before names and types are looked up.

All nodes are frozen; two nodes are equal when they say the same, wherever they stand: `pos` takes
no part in equality.  Instants are int microseconds since the epoch (UTC), durations are `Duration`.
Spellings that mean the same give the same node (`WINDOW t` is `RANGE t`, `!=` is `<>`, `+x` is `x`,
`-5` is a literal), so that ``parse(to_sql(node)) == node`` holds for every node the parser can make
(dsms.sql.printer).
"""

from __future__ import annotations

from dsms.sql.nodes.alterations import (
    AddColumn,
    AlterStream,
    Rename,
    RenameColumn,
    Reopen,
    SetSince,
    SetStream,
)
from dsms.sql.nodes.base import (
    NOWHERE,
    Duration,
    FieldName,
    Ident,
    Instant,
    Node,
    Pos,
    TypeName,
    Unit,
    Within,
    children,
    walk,
)
from dsms.sql.nodes.clocks import EndStream, Heartbeat, Punctuate
from dsms.sql.nodes.connectors import (
    ConnectorKind,
    CreateConnector,
    DropConnector,
    PauseConnector,
    ResumeConnector,
    SecretOption,
)
from dsms.sql.nodes.expressions import (
    And,
    Between,
    Binary,
    BoolLit,
    BytesLit,
    Case,
    Cast,
    ColumnRef,
    Comparison,
    DecimalLit,
    Expr,
    FloatLit,
    FuncCall,
    InList,
    IntervalLit,
    IntLit,
    IsBool,
    IsDistinct,
    IsNull,
    Like,
    Negate,
    Not,
    NullLit,
    Or,
    Parameter,
    RowExpr,
    StringLit,
    TimestampLit,
    TypedLit,
    When,
)
from dsms.sql.nodes.functions import (
    Argument,
    CreateFunction,
    DropFunction,
    Given,
    ParameterDef,
    PythonSource,
)
from dsms.sql.nodes.inspections import MadeKind, ShowCreate
from dsms.sql.nodes.queries import (
    Exists,
    Frame,
    FrameBound,
    FromItem,
    GroupingSets,
    InQuery,
    Join,
    JoinKind,
    Match,
    MatchStep,
    NamedWindow,
    OrderItem,
    Output,
    OutputKind,
    Over,
    Per,
    Quantified,
    Query,
    Sample,
    ScalarQuery,
    Select,
    SelectItem,
    SetOp,
    SetOpKind,
    StarItem,
    StepKind,
    SubqueryRef,
    TableRef,
    UnnestRef,
    WstreamArg,
)
from dsms.sql.nodes.rights import (
    AlterQuota,
    AlterUser,
    CreateRole,
    CreateUser,
    Credential,
    DropRole,
    DropUser,
    Grant,
    GrantRole,
    Mask,
    Privilege,
    Revoke,
    RevokeRole,
    Right,
    SecretKind,
    UserChange,
)
from dsms.sql.nodes.statements import (
    Archive,
    Assignment,
    CancelSession,
    ColumnDef,
    Comment,
    Confidential,
    Conflict,
    CreateQuery,
    CreateStream,
    CreateTable,
    Delete,
    Describe,
    Drop,
    Explain,
    ExplainFormat,
    FunctionKind,
    Insert,
    Into,
    Late,
    Lookup,
    ObjectKind,
    Option,
    PauseQuery,
    RenameQuery,
    ResumeQuery,
    SelectStatement,
    Set,
    SetQuery,
    Show,
    ShowKind,
    Statement,
    TimestampBy,
    Update,
)
from dsms.sql.nodes.windows import (
    FirstWindow,
    LandmarkWindow,
    LastingWindow,
    NowWindow,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    Slide,
    ThrottledWindow,
    UnboundedWindow,
    WhenWindow,
    Window,
)

AnyStatement = (
    SelectStatement
    | CreateStream
    | CreateTable
    | CreateQuery
    | CreateFunction
    | Drop
    | DropFunction
    | Describe
    | Show
    | ShowCreate
    | Insert
    | Update
    | Delete
    | Explain
    | Set
    | Lookup
    | CancelSession
    | AlterStream
    | Reopen
    | Rename
    | RenameColumn
    | AddColumn
    | Heartbeat
    | EndStream
    | Punctuate
    | PauseQuery
    | ResumeQuery
    | RenameQuery
    | SetQuery
    | SetSince
    | SetStream
    | Comment
    | CreateUser
    | AlterUser
    | AlterQuota
    | DropUser
    | CreateRole
    | DropRole
    | Grant
    | Revoke
    | GrantRole
    | RevokeRole
    | CreateConnector
    | DropConnector
    | PauseConnector
    | ResumeConnector
)  # every statement that there is, for a `match` that forgets none

__all__ = [
    "NOWHERE",
    "AddColumn",
    "AlterQuota",
    "AlterStream",
    "AlterUser",
    "And",
    "AnyStatement",
    "Archive",
    "Argument",
    "Assignment",
    "Between",
    "Binary",
    "BoolLit",
    "BytesLit",
    "CancelSession",
    "Case",
    "Cast",
    "ColumnDef",
    "ColumnRef",
    "Comment",
    "Comparison",
    "Confidential",
    "Conflict",
    "ConnectorKind",
    "CreateConnector",
    "CreateFunction",
    "CreateQuery",
    "CreateRole",
    "CreateStream",
    "CreateTable",
    "CreateUser",
    "Credential",
    "DecimalLit",
    "Delete",
    "Describe",
    "Drop",
    "DropConnector",
    "DropFunction",
    "DropRole",
    "DropUser",
    "Duration",
    "EndStream",
    "Exists",
    "Explain",
    "ExplainFormat",
    "Expr",
    "FieldName",
    "FirstWindow",
    "FloatLit",
    "Frame",
    "FrameBound",
    "FromItem",
    "FuncCall",
    "FunctionKind",
    "Given",
    "Grant",
    "GrantRole",
    "GroupingSets",
    "Heartbeat",
    "Ident",
    "InList",
    "InQuery",
    "Insert",
    "Instant",
    "IntLit",
    "IntervalLit",
    "Into",
    "IsBool",
    "IsDistinct",
    "IsNull",
    "Join",
    "JoinKind",
    "LandmarkWindow",
    "LastingWindow",
    "Late",
    "Like",
    "Lookup",
    "MadeKind",
    "Mask",
    "Match",
    "MatchStep",
    "NamedWindow",
    "Negate",
    "Node",
    "Not",
    "NowWindow",
    "NullLit",
    "ObjectKind",
    "Option",
    "Or",
    "OrderItem",
    "Output",
    "OutputKind",
    "Over",
    "Parameter",
    "ParameterDef",
    "PauseConnector",
    "PauseQuery",
    "Per",
    "Pos",
    "Privilege",
    "Punctuate",
    "PythonSource",
    "Quantified",
    "Query",
    "RangeWindow",
    "Rename",
    "RenameColumn",
    "RenameQuery",
    "Reopen",
    "ResumeConnector",
    "ResumeQuery",
    "Revoke",
    "RevokeRole",
    "Right",
    "RowExpr",
    "RowsWindow",
    "Sample",
    "ScalarQuery",
    "SecretKind",
    "SecretOption",
    "Select",
    "SelectItem",
    "SelectStatement",
    "SessionWindow",
    "Set",
    "SetOp",
    "SetOpKind",
    "SetQuery",
    "SetSince",
    "SetStream",
    "Show",
    "ShowCreate",
    "ShowKind",
    "Slide",
    "StarItem",
    "Statement",
    "StepKind",
    "StringLit",
    "SubqueryRef",
    "TableRef",
    "ThrottledWindow",
    "TimestampBy",
    "TimestampLit",
    "TypeName",
    "TypedLit",
    "UnboundedWindow",
    "Unit",
    "UnnestRef",
    "Update",
    "UserChange",
    "When",
    "WhenWindow",
    "Window",
    "Within",
    "WstreamArg",
    "children",
    "walk",
]
