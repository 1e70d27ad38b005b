package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	cniFile     = "/etc/cni/net.d/10-podnet.conflist"
	kubeadmFile = "/kind/kubeadm.conf"
	// Marks our routes among those of the node.
	protocol = "77"
)

const cniConfiguration = `{"cniVersion": "0.4.0", "name": "podnet", "plugins": [
 {"type": "ptp", "mtu": 1500, "ipMasq": false, "ipam": {
  "type": "host-local", "dataDir": "/run/cni-ipam", "ranges": [[{"subnet": "%s"}]],
  "routes": [{"dst": "0.0.0.0/0"}]}},
 {"type": "portmap", "capabilities": {"portMappings": true}}]}
`

const masquerade = `table ip podnet
delete table ip podnet
table ip podnet {
 chain leaving { type nat hook postrouting priority srcnat; policy accept;
  ip saddr %s ip daddr != %s ip daddr != 224.0.0.0/4 masquerade
 }
}
`

// network is what a node has to know of the others: its own range of addresses, and theirs.
type network struct {
	own    string
	others map[string]string // range of addresses to address of the node
}

func layout(self string, nodes []*object) network {
	found := network{others: map[string]string{}}
	for _, node := range nodes {
		switch address := internalAddress(node); {
		case node.Metadata.Name == self:
			found.own = node.Spec.PodCIDR
		case node.Spec.PodCIDR != "" && address != "":
			found.others[node.Spec.PodCIDR] = address
		}
	}
	return found
}

func internalAddress(node *object) string {
	for _, address := range node.Status.Addresses {
		if address.Type == "InternalIP" && !strings.Contains(address.Address, ":") {
			return address.Address
		}
	}
	return ""
}

func (n network) apply() error {
	if err := n.setRoutes(); err != nil || n.own == "" {
		return err
	}
	if err := run(fmt.Sprintf(masquerade, n.own, clusterRange()), "nft", "-f", "-"); err != nil {
		return err
	}
	// The kubelet counts a node as ready once the file is there, so it comes last.
	return writeWhole(cniFile, fmt.Sprintf(cniConfiguration, n.own))
}

func (n network) setRoutes() error {
	present, err := output("", "ip", "-4", "route", "show", "proto", protocol)
	if err != nil {
		return err
	}
	for _, line := range strings.Split(present, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || n.others[words[0]] != "" {
			continue
		}
		if err := run("", "ip", "route", "del", words[0], "proto", protocol); err != nil {
			return err
		}
	}
	for addresses, node := range n.others {
		err := run("", "ip", "route", "replace", addresses, "via", node, "proto", protocol)
		if err != nil {
			return err
		}
	}
	return nil
}

// clusterRange reads the range of all pods from what kind gave kubeadm.
func clusterRange() string {
	text, _ := os.ReadFile(kubeadmFile)
	line := regexp.MustCompile(`(?m)^\s*podSubnet:\s*"?([0-9./]+)`)
	if found := line.FindSubmatch(text); found != nil {
		return string(found[1])
	}
	return "10.244.0.0/16"
}

func writeWhole(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
