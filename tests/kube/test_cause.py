import ssl

import pytest

from tandem.kube.client import cause_of


def raised_from(cause: Exception) -> Exception:
    problem = RuntimeError("two\nlines")
    problem.__cause__ = cause
    return problem


def certificate() -> Exception:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] (_ssl.c:992)")
    error.verify_message = "self-signed certificate"
    return error


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (raised_from(ConnectionRefusedError(111, "refused")), "refused"),
        (raised_from(raised_from(ValueError("why"))), "why"),
        (RuntimeError("aborted", ConnectionResetError("closed")), "closed"),
        (RuntimeError("two\n  lines"), "two lines"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_first_cause_is_reported_on_one_line(problem: Exception, told: str) -> None:
    assert cause_of(problem) == told


def test_certificate_error_names_its_fault() -> None:
    assert cause_of(raised_from(certificate())).endswith(": self-signed certificate")
