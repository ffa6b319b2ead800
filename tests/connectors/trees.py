"""Random syntax trees of statements about sources and sinks."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dsms.sql import ast

Strategy = st.SearchStrategy[Any]


def connectors(idents: Strategy, values: Strategy, texts: Strategy) -> Strategy:
    """`values`: of options."""
    option = st.one_of(
        st.builds(ast.Option, idents, values),
        st.builds(ast.SecretOption, idents, st.sampled_from(["env", "file"]), texts),
    )
    options = st.lists(option, max_size=2, unique_by=lambda o: o.name.text.lower()).map(tuple)
    kinds, some = st.sampled_from(list(ast.ConnectorKind)), st.booleans()
    parts = (kinds, idents, idents, idents, options)
    return st.one_of(
        st.builds(ast.CreateConnector, *parts, if_not_exists=some),
        st.builds(ast.CreateConnector, *parts, or_replace=some),
        st.builds(ast.DropConnector, kinds, idents, some),
        st.builds(ast.PauseConnector, kinds, idents),
        st.builds(ast.ResumeConnector, kinds, idents),
    )
