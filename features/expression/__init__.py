"""Formulas over the inputs of a feature: parsed once, then closures over NumPy blocks; nothing is ever executed."""

from features.expression.operand import Operand
from features.expression.program import Program, compile_expression

__all__ = ["Operand", "Program", "compile_expression"]
