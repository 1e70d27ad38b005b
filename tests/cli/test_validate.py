import io
import json
from pathlib import Path

import pytest

from tandem_cli import main
from tandem_cli.validate import check_text

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("**/*.yaml"))

GENERATOR = "{generator: {rowsPerSecond: 1, keys: 1}}"
PIPELINE = """\
apiVersion: tandem.dev/v1alpha1
kind: StreamPipeline
metadata: {name: NAME}
spec:
  streams:
  - name: payments
    schema: user STRING
    key: [user]
    source: {generator: {rowsPerSecond: 1, keys: 1}}
  query: {python: {file: query.py, function: build}}
  sinks:
  - {name: out, console: {}}
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "query.py").write_text("def build(streams):\n    return streams['payments']\n")
    return tmp_path


def write(directory: Path, text: str) -> str:
    file = directory / "pipeline.yaml"
    file.write_text(text)
    return str(file)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_examples_are_valid(example: Path) -> None:
    assert main(["validate", str(example)]) == 0


def test_seven_examples_are_validated() -> None:
    assert len(EXAMPLES) == 8


def test_all_documents_of_a_file_are_checked(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"---\n{PIPELINE.replace('NAME', 'one')}---\n---\n{PIPELINE.replace('NAME', 'two')}"
    assert main(["validate", write(directory, text)]) == 0
    assert "2 pipelines" in capsys.readouterr().out


def test_unsupported_source_is_a_problem(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(directory, PIPELINE.replace("NAME", "one").replace(GENERATOR, "{http: {}}"))
    assert main(["validate", file, "-o", "json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["fault"], found["path"], found["value"]) == (
        "Unsupported",
        "spec.streams[0].source",
        "http",
    )
    assert found["line"] == 9


def test_dropped_state_is_a_problem(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(directory, PIPELINE.replace("NAME", "one") + "  change: {state: drop}\n")
    assert main(["validate", file, "-o", "json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["fault"], found["path"]) == ("Unsupported", "spec.change.state")


def test_problem_is_printed_with_line_field_value_and_remedy(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(directory, PIPELINE.replace("NAME", "one") + "  pairs:\n    cuont: 3\n")
    assert main(["validate", file]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(f"{file}:14: spec.pairs.cuont: 3 → ")
    assert "count" in first


def test_json_output_is_a_list_of_problems(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(directory, PIPELINE)
    assert main(["validate", file, "-o", "json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)
    assert {key: problem[key] for key in ("file", "line", "column", "path", "value", "fault")} == {
        "file": file,
        "line": 3,
        "column": 18,
        "path": "metadata.name",
        "value": "NAME",
        "fault": "BadFormat",
    }
    assert problem["expected"]


def test_json_output_of_valid_file_is_empty_list(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", write(directory, PIPELINE.replace("NAME", "one")), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_unreadable_file_exits_with_usage_error(
    directory: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    file = directory / "other.yaml"
    if content is not None:
        file.write_bytes(content)
    assert main(["validate", str(file)]) == 2
    assert str(file) in capsys.readouterr().err


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 2, 0]], ids=["first", "last"])
@pytest.mark.parametrize("output", ["text", "json"])
def test_unreadable_file_does_not_hide_other_problems(
    directory: Path, order: list[int], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = directory / "wrong.yaml"
    wrong.write_text(PIPELINE)
    right = write(directory, PIPELINE.replace("NAME", "one"))
    files = [str(directory / "missing.yaml"), str(wrong), right]
    assert main(["validate", *(files[each] for each in order), "-o", output]) == 2
    said = capsys.readouterr()
    if output == "text":
        assert files[0] in said.err
        assert "metadata.name" in said.out
        return
    found = {each["file"]: each for each in json.loads(said.out)}
    assert list(found) == [files[each] for each in order if each < 2]
    assert (found[files[0]]["fault"], found[files[0]]["line"]) == ("Unreadable", None)
    assert found[files[1]]["path"] == "metadata.name"
    assert found[files[0]].keys() == found[files[1]].keys()


def test_unreadable_file_prints_no_success(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(directory / "missing.yaml")]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("text", "code"),
    [(PIPELINE.replace("NAME", "one").encode(), 0), (PIPELINE.encode(), 1), (b"\xff\xfe", 2)],
)
def test_dash_reads_standard_input(
    directory: Path, text: bytes, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert main(["validate", "-"]) == code


def test_duplicate_pipeline_name_in_file_is_reported(directory: Path) -> None:
    one = PIPELINE.replace("NAME", "one")
    findings, _ = check_text(str(directory / "x.yaml"), f"{one}---\n{one}")
    assert [(f.position.line, f.problem.fault.value) for f in findings] == [(16, "Duplicate")]


@pytest.mark.parametrize(
    ("content", "field", "words"),
    [
        (None, "file", "readable"),
        ("def build(:\n", "file", "line 1"),
        ("def biuld(streams): ...\n", "function", "biuld"),
    ],
)
def test_python_query_path_is_relative_to_manifest(
    directory: Path, content: str | None, field: str, words: str
) -> None:
    query = directory / "query.py"
    query.unlink()
    if content is not None:
        query.write_text(content)
    findings, _ = check_text(str(directory / "x.yaml"), PIPELINE.replace("NAME", "one"))
    (finding,) = findings
    assert finding.problem.path == ("spec", "query", "python", field)
    assert words in finding.problem.expected


def test_missing_command_prints_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2
    assert "COMMAND" in capsys.readouterr().err


def test_version_flag_prints_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("tandem ")
