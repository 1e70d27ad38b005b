package main

import (
	"fmt"
	"strings"
)

// direction is one of the two that a policy may restrict, seen from the pod it selects.
type direction struct {
	name   string
	rules  func(policy *object) []rule
	peers  func(r rule) []peer
	remote string // nftables' word for the address of the other side
	local  string // and for that of the selected pod
}

var directions = []direction{
	{
		"Ingress",
		func(policy *object) []rule { return policy.Spec.Ingress },
		func(r rule) []peer { return r.From },
		"saddr", "daddr",
	},
	{
		"Egress",
		func(policy *object) []rule { return policy.Spec.Egress },
		func(r rule) []peer { return r.To },
		"daddr", "saddr",
	},
}

const emptyTable = `table inet podnet_policy
delete table inet podnet_policy
`

const fullTable = emptyTable + `table inet podnet_policy {
%s chain forward { type filter hook forward priority filter; policy accept;
  ct state established,related accept
%s }
}
`

// policyRules writes the rules of a node: a chain for each pod and direction that some policy
// restricts. It returns where a packet is allowed and drops what is left.
func policyRules(self string, pods, namespaces, policies []*object) string {
	surroundings := newSurroundings(pods, namespaces)
	var chains, jumps strings.Builder
	count := 0
	for _, pod := range pods {
		if pod.Spec.NodeName != self || !hasAddress(pod) {
			continue
		}
		for _, d := range directions {
			selecting := selected(d, pod, policies)
			if len(selecting) == 0 {
				continue
			}
			count++
			allowed := strings.Join(surroundings.allowed(d, pod, selecting), "\n  ")
			fmt.Fprintf(&chains, " chain pod%d {\n  %s\n  drop\n }\n", count, allowed)
			fmt.Fprintf(&jumps, "  ip %s %s jump pod%d\n", d.local, pod.Status.PodIP, count)
		}
	}
	if count == 0 {
		return emptyTable
	}
	return fmt.Sprintf(fullTable, chains.String(), jumps.String())
}

func selected(d direction, pod *object, policies []*object) []*object {
	var found []*object
	for _, policy := range policies {
		if policy.Metadata.Namespace == pod.Metadata.Namespace &&
			contains(policy.Spec.PolicyTypes, d.name) &&
			policy.Spec.PodSelector.matches(pod.Metadata.Labels) {
			found = append(found, policy)
		}
	}
	return found
}

// hasAddress tells whether a pod has an address of its own; other pods' traffic is their node's.
func hasAddress(pod *object) bool {
	address, phase := pod.Status.PodIP, pod.Status.Phase
	return address != "" && !strings.Contains(address, ":") && !pod.Spec.HostNetwork &&
		phase != "Succeeded" && phase != "Failed"
}

// surroundings are the pods among which peers are looked for.
type surroundings struct {
	pods   []*object
	labels map[string]map[string]string // of namespaces
}

func newSurroundings(pods, namespaces []*object) surroundings {
	labels := map[string]map[string]string{}
	for _, namespace := range namespaces {
		labels[namespace.Metadata.Name] = namespace.Metadata.Labels
	}
	return surroundings{pods, labels}
}

func (s surroundings) allowed(d direction, pod *object, policies []*object) []string {
	var lines []string
	for _, policy := range policies {
		for _, r := range d.rules(policy) {
			sides, owners := s.resolve(d, d.peers(r), policy.Metadata.Namespace)
			if d.name == "Ingress" {
				owners = []*object{pod}
			}
			for _, side := range sides {
				for _, ports := range portMatches(r.Ports, owners) {
					words := strings.Fields(side + " " + ports + " return")
					lines = append(lines, strings.Join(words, " "))
				}
			}
		}
	}
	return lines
}

// resolve gives matches for the other side, and the pods that it may be. No peers mean anybody.
func (s surroundings) resolve(d direction, peers []peer, namespace string) ([]string, []*object) {
	if len(peers) == 0 {
		return []string{""}, nil
	}
	var matches, addresses []string
	var owners []*object
	for _, p := range peers {
		if p.IPBlock != nil {
			match := "ip " + d.remote + " " + p.IPBlock.CIDR
			if len(p.IPBlock.Except) > 0 {
				match += " ip " + d.remote + " != { " + strings.Join(p.IPBlock.Except, ", ") + " }"
			}
			matches = append(matches, match)
			continue
		}
		for _, pod := range s.pods {
			if hasAddress(pod) && s.isPeer(pod, p, namespace) {
				addresses = append(addresses, pod.Status.PodIP)
				owners = append(owners, pod)
			}
		}
	}
	if len(addresses) > 0 {
		matches = append(matches, "ip "+d.remote+" { "+strings.Join(addresses, ", ")+" }")
	}
	return matches, owners
}

func (s surroundings) isPeer(pod *object, p peer, namespace string) bool {
	if p.NamespaceSelector == nil && pod.Metadata.Namespace != namespace {
		return false
	}
	if p.NamespaceSelector != nil && !p.NamespaceSelector.matches(s.labels[pod.Metadata.Namespace]) {
		return false
	}
	return p.PodSelector == nil || p.PodSelector.matches(pod.Metadata.Labels)
}

// portMatches gives a match for each allowed port; the owners say what named ports are.
func portMatches(ports []port, owners []*object) []string {
	if len(ports) == 0 {
		return []string{""}
	}
	var matches []string
	for _, p := range ports {
		protocol := strings.ToLower(p.Protocol)
		if protocol == "" {
			protocol = "tcp"
		}
		number := strings.TrimSpace(string(p.Port))
		switch {
		case number == "" || number == "null":
			matches = append(matches, "meta l4proto "+protocol)
		case number[0] == '"':
			for _, found := range namedPorts(strings.Trim(number, `"`), owners) {
				matches = append(matches, fmt.Sprintf("%s dport %d", protocol, found))
			}
		case p.EndPort > 0:
			matches = append(matches, fmt.Sprintf("%s dport %s-%d", protocol, number, p.EndPort))
		default:
			matches = append(matches, protocol+" dport "+number)
		}
	}
	return matches
}

func namedPorts(name string, owners []*object) []int {
	seen := map[int]bool{}
	var numbers []int
	for _, owner := range owners {
		for _, c := range owner.Spec.Containers {
			for _, p := range c.Ports {
				if p.Name == name && !seen[p.ContainerPort] {
					seen[p.ContainerPort] = true
					numbers = append(numbers, p.ContainerPort)
				}
			}
		}
	}
	return numbers
}
