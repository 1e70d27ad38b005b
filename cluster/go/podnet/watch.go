package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"regexp"
	"sort"
	"strings"
	"sync"
	"time"
)

const (
	credentials  = "/etc/kubernetes/kubelet.conf"
	listPatience = 30 * time.Second
	watchSeconds = 600
)

// store holds all objects below one path of the API server, as far as podnet has heard.
type store struct {
	path   string
	notify func()

	lock  sync.Mutex
	items map[string]*object
}

func watched(path string, notify func()) *store {
	s := &store{path: path, notify: notify}
	go s.follow()
	return s
}

// known tells whether the objects were listed at least once.
func (s *store) known() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.items != nil
}

func (s *store) list() []*object {
	s.lock.Lock()
	defer s.lock.Unlock()
	all := make([]*object, 0, len(s.items))
	for _, item := range s.items {
		all = append(all, item)
	}
	sort.Slice(all, func(i, j int) bool { return key(all[i]) < key(all[j]) })
	return all
}

func (s *store) change(edit func(items map[string]*object)) {
	s.lock.Lock()
	edit(s.items)
	s.lock.Unlock()
	s.notify()
}

// follow lists and watches for ever. A trouble is told once, however long it lasts.
func (s *store) follow() {
	last := ""
	for {
		if err := s.once(); err != nil {
			if err.Error() != last {
				log.Printf("%s: %v", s.path, err)
				last = err.Error()
			}
			time.Sleep(time.Second)
		}
	}
}

func (s *store) once() error {
	server, err := connect()
	if err != nil {
		return err
	}
	defer server.client.CloseIdleConnections()
	version, err := s.fill(server)
	if err != nil {
		return err
	}
	return s.hear(server, version)
}

func (s *store) fill(server *connection) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), listPatience)
	defer cancel()
	body, err := server.get(ctx, s.path)
	if err != nil {
		return "", err
	}
	defer body.Close()
	var answer struct {
		Metadata metadata
		Items    []*object
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return "", err
	}
	fresh := make(map[string]*object, len(answer.Items))
	for _, item := range answer.Items {
		fresh[key(item)] = item
	}
	s.lock.Lock()
	s.items = fresh
	s.lock.Unlock()
	s.notify()
	return answer.Metadata.ResourceVersion, nil
}

func (s *store) hear(server *connection, version string) error {
	ctx, cancel := context.WithTimeout(context.Background(), (watchSeconds+60)*time.Second)
	defer cancel()
	query := "?watch=1&timeoutSeconds=%d&resourceVersion=%s"
	body, err := server.get(ctx, s.path+fmt.Sprintf(query, watchSeconds, version))
	if err != nil {
		return err
	}
	defer body.Close()
	for events := json.NewDecoder(body); ; {
		var event struct {
			Type   string
			Object *object
		}
		if err := events.Decode(&event); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		switch event.Type {
		case "ADDED", "MODIFIED":
			s.change(func(items map[string]*object) { items[key(event.Object)] = event.Object })
		case "DELETED":
			s.change(func(items map[string]*object) { delete(items, key(event.Object)) })
		case "ERROR":
			return errors.New("the watch has expired")
		}
	}
}

func key(o *object) string { return o.Metadata.Namespace + "/" + o.Metadata.Name }

// connection is a client with the kubelet's credentials, which are renewed while podnet runs.
type connection struct {
	client *http.Client
	server string
}

func awaitCredentials() {
	for {
		if _, err := os.Stat(credentials); err == nil {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func connect() (*connection, error) {
	config, err := os.ReadFile(credentials)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(secret(config, "client-certificate"), secret(config, "client-key"))
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(secret(config, "certificate-authority"))
	transport := &http.Transport{
		TLSClientConfig:       &tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{pair}},
		ResponseHeaderTimeout: 20 * time.Second,
	}
	return &connection{&http.Client{Transport: transport}, field(config, "server")}, nil
}

func (c *connection) get(ctx context.Context, path string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 300))
		return nil, fmt.Errorf("%s %s", response.Status, strings.TrimSpace(string(text)))
	}
	return response.Body, nil
}

// field finds a field of a kubeconfig of one cluster and one user.
func field(config []byte, name string) string {
	line := regexp.MustCompile(`(?m)^\s*` + name + `:\s*"?([^"\s]+)`)
	if found := line.FindSubmatch(config); found != nil {
		return string(found[1])
	}
	return ""
}

// secret reads what a kubeconfig holds itself or names a file for; empty if it does neither.
func secret(config []byte, name string) []byte {
	if inline := field(config, name+"-data"); inline != "" {
		decoded, _ := base64.StdEncoding.DecodeString(inline)
		return decoded
	}
	text, _ := os.ReadFile(field(config, name))
	return text
}
