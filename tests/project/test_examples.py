"""Public docstrings: examples run when they are copied, and results are described."""

import ast
import builtins
import doctest
import inspect
from importlib import import_module

PLACES = "changepoints datasets distributed estimators evaluation plotting report testing theory"
MODULES = ["graphratio", *(f"graphratio.{place}" for place in (*PLACES.split(), "transfer"))]


def public():
    """Public functions and classes, and their public methods and properties, by full name."""
    for module in map(import_module, MODULES):
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isclass(found):
                for key in dir(found):
                    member = inspect.getattr_static(found, key)
                    member = getattr(member, "__func__", getattr(member, "fget", member))
                    if key[0] != "_" and inspect.isfunction(member):
                        yield f"{name}.{key}", member
            if inspect.isclass(found) or inspect.isfunction(found):
                yield name, found


PUBLIC = {name: found for name, found in public() if found.__module__.startswith("graphratio")}


def undefined(examples):
    """Names that the examples read before any of them has bound these names.

    The doctests run all examples, but among the names of their module. A reader has an empty
    namespace; reading the names costs less than running all examples twice.
    """
    bound, missing = set(dir(builtins)), []
    for example in examples:
        nodes = list(ast.walk(ast.parse(example.source)))
        for node in nodes:
            if isinstance(node, ast.alias):
                bound.add((node.asname or node.name).split(".")[0])
            elif isinstance(node, ast.arg):
                bound.add(node.arg)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                bound.add(node.name)
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                bound.add(node.id)
        read = [node.id for node in nodes if isinstance(node, ast.Name)]
        missing += [name for name in read if name not in bound]
    return missing


def missing_names(text):
    return undefined(doctest.DocTestParser().get_examples(text))


def test_examples_import_what_they_use():
    missing = {name: missing_names(inspect.getdoc(found) or "") for name, found in PUBLIC.items()}
    assert {name: names for name, names in missing.items() if names} == {}


def test_names_that_an_example_lacks_are_found():
    text = """
    >>> import numpy as np
    >>> graph = gr.Graph.empty(3)
    >>> total = sum(each for each in np.ones(3))
    >>> total + lost
    """
    assert missing_names(text) == ["gr", "lost"]


def test_results_are_described():
    """Of functions that return something and of methods with parameters, except constructors."""
    lacking = []
    for name, found in PUBLIC.items():
        owner, method, _ = name.partition(".")
        text = inspect.getdoc(found) or ""
        if inspect.isfunction(found) and (not method or "\nParameters\n" in text):
            returned = inspect.signature(found).return_annotation
            if returned not in (None, "None", "Self", owner) and "\nReturns\n---" not in text:
                lacking.append(name)
    assert lacking == []


def test_many_names_are_looked_at():
    assert len(PUBLIC) > 100
