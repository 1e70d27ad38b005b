// podnet is the pod network of one node. It watches the API server with the kubelet's credentials,
// writes the CNI configuration for the node's range of addresses, keeps routes to the ranges of the
// other nodes, masquerades what leaves the cluster, and turns NetworkPolicies into nftables rules
// for the pods of its node. It calls `ip` and `nft`, and needs the standard library only.
package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// Many objects change at once; their changes are carried out together.
	settle = 50 * time.Millisecond
	// A command that failed is tried again, whether or not something changes.
	again = 15 * time.Second
)

func main() {
	log.SetFlags(0)
	self, err := os.Hostname()
	if err != nil {
		log.Fatal(err)
	}
	awaitCredentials()
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	nodes := watched("/api/v1/nodes", notify)
	pods := watched("/api/v1/pods", notify)
	namespaces := watched("/api/v1/namespaces", notify)
	policies := watched("/apis/networking.k8s.io/v1/networkpolicies", notify)
	var routes, rules applied
	for retry := time.NewTicker(again); ; {
		select {
		case <-changed:
			time.Sleep(settle)
		case <-retry.C:
		}
		if nodes.known() {
			wanted := layout(self, nodes.list())
			routes.update(fmt.Sprint(wanted), wanted.apply)
		}
		if pods.known() && namespaces.known() && policies.known() {
			text := policyRules(self, pods.list(), namespaces.list(), policies.list())
			rules.update(text, func() error { return run(text, "nft", "-f", "-") })
		}
	}
}

// applied remembers what was carried out last, so that only changes are.
type applied struct{ last string }

func (a *applied) update(wanted string, carryOut func() error) {
	if wanted == a.last {
		return
	}
	if err := carryOut(); err != nil {
		log.Print(err)
		return
	}
	a.last = wanted
}

func run(stdin, name string, arguments ...string) error {
	_, err := output(stdin, name, arguments...)
	return err
}

func output(stdin, name string, arguments ...string) (string, error) {
	command := exec.Command(name, arguments...)
	command.Stdin = strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, out)
	}
	return string(out), nil
}
