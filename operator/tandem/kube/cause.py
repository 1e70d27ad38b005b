"""Why there was no answer, in the words of the system and not of the library that asked."""

import ssl


def cause_of(problem: BaseException) -> str:
    """The first cause of a problem, on one line."""
    inmost = problem
    while inmost.__cause__ is not None:
        inmost = inmost.__cause__
    # Some say what they come from only beside their own words.
    inmost = next((each for each in inmost.args if isinstance(each, Exception)), inmost)
    if isinstance(inmost, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {inmost.verify_message}"
    said = (inmost.strerror if isinstance(inmost, OSError) else None) or str(inmost)
    return " ".join(said.split()) or type(inmost).__name__
