"""What is read from nodes, and what is written to them."""

import json

from cluster.trial.nodes import cut_rules, dropped_packets, process_ids


def test_processes_of_a_container_are_read() -> None:
    listed = "PID      INFO\n1234     -\n1250     -\n"
    assert process_ids(listed) == ["1234", "1250"]
    assert process_ids("") == []


def test_every_packet_between_two_groups_is_dropped_both_ways() -> None:
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


def test_dropped_packets_are_counted_over_all_rules() -> None:
    def rule(packets: int) -> dict[str, object]:
        counter = {"counter": {"packets": packets, "bytes": 60 * packets}}
        return {"rule": {"expr": [{"match": {}}, counter, {"drop": None}]}}

    listed = {"nftables": [{"metainfo": {}}, {"chain": {}}, rule(3), rule(0), rule(4)]}
    assert dropped_packets(json.dumps(listed)) == 7
