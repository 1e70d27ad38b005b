"""What is read from nodes, and what is written to them."""

import json

from cluster.trial.nodes import cut_rules, dropped_packets, process_ids


def test_container_process_ids_are_parsed() -> None:
    listed = "PID      INFO\n1234     -\n1250     -\n"
    assert process_ids(listed) == ["1234", "1250"]
    assert process_ids("") == []


def test_cut_rules_drop_packets_in_both_directions() -> None:
    rules = cut_rules(["10.0.0.1"], ["10.0.1.1", "10.0.1.2"])
    drops = [line.strip() for line in rules.splitlines() if line.endswith(" counter drop")]
    assert sorted(drops) == [
        "ip saddr 10.0.0.1 ip daddr 10.0.1.1 counter drop",
        "ip saddr 10.0.0.1 ip daddr 10.0.1.2 counter drop",
        "ip saddr 10.0.1.1 ip daddr 10.0.0.1 counter drop",
        "ip saddr 10.0.1.2 ip daddr 10.0.0.1 counter drop",
    ]
    assert "hook forward" in rules
    assert rules.count("{") == rules.count("}") == 2


def test_dropped_packets_are_summed_over_rules() -> None:
    def rule(packets: int) -> dict[str, object]:
        counter = {"counter": {"packets": packets, "bytes": 60 * packets}}
        return {"rule": {"expr": [{"match": {}}, counter, {"drop": None}]}}

    listed = {"nftables": [{"metainfo": {}}, {"chain": {}}, rule(3), rule(0), rule(4)]}
    assert dropped_packets(json.dumps(listed)) == 7
