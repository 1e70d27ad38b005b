package main

import "encoding/json"

// object has the fields that podnet reads of nodes, pods, namespaces and network policies.
type object struct {
	Metadata metadata
	Spec     struct {
		PodCIDR         string
		HostNetwork     bool
		NodeName        string
		Containers      []container
		PodSelector     selector
		PolicyTypes     []string
		Ingress, Egress []rule
	}
	Status struct {
		Addresses []struct{ Type, Address string }
		PodIP     string
		Phase     string
	}
}

type metadata struct {
	Name, Namespace, ResourceVersion string
	Labels                           map[string]string
}

type container struct {
	Ports []struct {
		Name          string
		ContainerPort int
	}
}

type rule struct {
	From, To []peer
	Ports    []port
}

type peer struct {
	PodSelector, NamespaceSelector *selector
	IPBlock                        *struct {
		CIDR   string
		Except []string
	}
}

type port struct {
	Protocol string
	Port     json.RawMessage
	EndPort  int
}

type selector struct {
	MatchLabels      map[string]string
	MatchExpressions []struct {
		Key, Operator string
		Values        []string
	}
}

func (s *selector) matches(labels map[string]string) bool {
	for key, value := range s.MatchLabels {
		if found, ok := labels[key]; !ok || found != value {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		value, present := labels[e.Key]
		if !holds(e.Operator, present, present && contains(e.Values, value)) {
			return false
		}
	}
	return true
}

func holds(operator string, present, listed bool) bool {
	switch operator {
	case "In":
		return listed
	case "NotIn":
		return !listed
	case "Exists":
		return present
	case "DoesNotExist":
		return !present
	}
	return false
}

func contains(values []string, wanted string) bool {
	for _, value := range values {
		if value == wanted {
			return true
		}
	}
	return false
}
