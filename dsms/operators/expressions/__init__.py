"""Scalar expressions over columns: compiled once into closures, evaluated a batch at a time by
Arrow and NumPy."""

from dsms.operators.expressions.compile import (
    Predicate,
    can_fail,
    compile_expr,
    compile_many,
    compile_predicate,
    evaluate_constant,
    foresee,
)
from dsms.operators.expressions.errors import ErrorCounter
from dsms.operators.expressions.node import Evaluator

__all__ = [
    "ErrorCounter", "Evaluator", "Predicate", "can_fail", "compile_expr", "compile_many",
    "compile_predicate",
    "evaluate_constant", "foresee",
]  # a long list  # fmt: skip
