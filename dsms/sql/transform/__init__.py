"""From grammar to AST: one function per rule of grammar/cql.lark, called as the parser reduces (so
no recursion)."""
