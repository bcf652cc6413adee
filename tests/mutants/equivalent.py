"""Tells mutants that no test can notice: changes in docstrings, annotations, texts for the log,
imports for the type checker, and in options that only forbid what nobody does.
"""

from __future__ import annotations

import ast

_LEVELS = {"debug", "info", "warning", "error", "exception"}


def same_behaviour(original: str, mutated: str) -> bool:
    """Return whether *mutated* does what *original* does, or does not compile at all."""
    try:
        after = _essence(mutated)
    except SyntaxError:
        return True
    return after == _essence(original)


def _essence(text: str) -> str:
    tree = ast.parse(text)
    compile(text, "mutant", "exec", dont_inherit=True)
    return ast.dump(_Essence().visit(tree))


class _Essence(ast.NodeTransformer):
    """Takes out of a module what does nothing when it runs."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant) or _is_for_the_log(node.value):
            return ast.Pass()
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        # a class stays a dataclass; whether one may be assigned to is for the type checker
        node.decorator_list = [_called(decorator) for decorator in node.decorator_list]
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "zip":
            node.keywords = []
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        if any(isinstance(n, ast.Name) and n.id == "TYPE_CHECKING" for n in ast.walk(node.test)):
            return ast.Pass()
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)


def _called(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _is_for_the_log(call: ast.expr) -> bool:
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    owner = call.func.value
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return call.func.attr in _LEVELS and name in ("log", "_log")
