"""Stands for the check of a query: refuses what says `rand`, warns about what says `first`."""

import json
import sys
from pathlib import Path

pipeline = json.loads((Path(sys.argv[1]) / "pipeline.json").read_text())
query = json.dumps(pipeline["manifest"]["spec"]["query"])
if "python" in pipeline["manifest"]["spec"]["query"]:
    query = Path(pipeline["manifest"]["spec"]["query"]["python"]["file"]).read_text()
if "crash" in query:
    sys.exit("no Java was found")
refused = [{"reason": "Random", "message": "rand()", "hint": "do without"}] * ("rand" in query)
warned = [{"reason": "Order", "message": "first()", "hint": "use min"}] * ("first" in query)
plan = "".join(line for line in query.splitlines() if not line.startswith("#"))
json.dump({"refused": refused, "warnings": warned, "fingerprint": plan}, sys.stdout)
sys.exit(3 if refused else 0)
