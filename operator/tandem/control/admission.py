"""Decides whether a resource can be run."""

from collections.abc import Sequence

from tandem.kube.kinds import Object
from tandem.policy.snapshot import Complaint
from tandem.validation.unsupported import unsupported
from tandem_core.model.fields.problems import Problem, path_text, value_text
from tandem_core.model.pipeline import Pipeline, Refusal, parse_pipeline

MOST_PROBLEMS = 10
"""Problems listed in one message; the others are only counted."""


def judge(resource: Object) -> Pipeline | Complaint:
    """Return the pipeline that a resource describes, or its problems, field by field."""
    parsed = parse_pipeline(resource)
    if isinstance(parsed, Refusal):
        return Complaint("InvalidSpec", _listed(parsed.problems))
    missing = tuple(unsupported(parsed))
    return Complaint("Unsupported", _listed(missing)) if missing else parsed


def _listed(problems: Sequence[Problem]) -> str:
    sentences = [
        f"{path_text(problem.path)}: {value_text(problem.value)} → {problem.expected}"
        for problem in problems
    ]
    more = len(sentences) - MOST_PROBLEMS
    return "; ".join(sentences[:MOST_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
