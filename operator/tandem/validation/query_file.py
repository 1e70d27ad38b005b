"""Checks the Python file of a pipeline's query without running it."""

import ast
from pathlib import Path

from tandem_core.model.fields.problems import Fault, Problem, suggestion
from tandem_core.model.pipeline import Pipeline
from tandem_core.model.spec import PythonQuery


def check_query_file(pipeline: Pipeline, directory: Path) -> list[Problem]:
    """Check that the file exists, is Python, and defines the function at its top level.

    `directory` is the manifest's, to which the file's path is relative.
    """
    query = pipeline.spec.query.program
    if not isinstance(query, PythonQuery):
        return []
    at = ("spec", "query", "python")
    try:
        text = (directory / query.file).read_text(encoding="utf-8")
        tree = ast.parse(text, filename=query.file)
    except SyntaxError as error:
        wanted = f"a Python file without errors; line {error.lineno}: {error.msg}"
        return [Problem((*at, "file"), query.file, Fault.SYNTAX, wanted)]
    except (OSError, ValueError):
        wanted = f"a readable Python file in {directory}, the manifest's directory"
        return [Problem((*at, "file"), query.file, Fault.MISSING, wanted)]
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if query.function in functions:
        return []
    wanted = f"a function that {query.file} defines{suggestion(query.function, functions)}"
    return [Problem((*at, "function"), query.function, Fault.MISSING, wanted)]
