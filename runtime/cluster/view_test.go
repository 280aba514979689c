package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport/certs"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// pki is a folder with certificates.
type pki struct {
	t      *testing.T
	dir    string
	ca     *certs.Authority
	issued int // certificates
}

func newPKI(t *testing.T, domain string) *pki {
	t.Helper()
	ca, err := certs.NewAuthority(domain, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	k := &pki{t: t, dir: t.TempDir(), ca: ca}
	k.write("ca.crt", ca.Cert)
	return k
}

func (k *pki) write(name string, b []byte) string {
	k.t.Helper()
	path := filepath.Join(k.dir, name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		k.t.Fatal(err)
	}
	return path
}

// issue writes a certificate and returns its files, which are new: a node that is starting may
// not have read its own yet.
func (k *pki) issue(id certs.ID) *grpc.TLS {
	k.t.Helper()
	pair, err := k.ca.Issue(id, time.Now(), time.Hour)
	if err != nil {
		k.t.Fatal(err)
	}
	k.issued++
	name := fmt.Sprint(k.issued)
	return &grpc.TLS{Cert: k.write(name+".crt", pair.Cert), Key: k.write(name+".key", pair.Key), CA: filepath.Join(k.dir, "ca.crt")}
}

// running is a program on three nodes with TLS.
type running struct {
	t         *testing.T
	program   *program
	tops      []*top
	addresses []string
	pki       *pki
	stop      context.CancelFunc
	done      sync.WaitGroup
}

func runProgram(t *testing.T, p *program) *running {
	const nodes = 3
	r := &running{t: t, program: p, addresses: loopback.Addresses(t, nodes), pki: newPKI(t, "program")}
	tables, dir := table.NewMemory(), t.TempDir()
	for i := range nodes {
		top, err := p.newTop(func(s piper.NodeSettings) (*Node, error) {
			c := p.config(nodes, dir, tables)
			for j, address := range r.addresses {
				c.Nodes[fmt.Sprintf("n%d", j+1)] = address
			}
			for k := range p.edges {
				c.Edges = append(c.Edges, fmt.Sprintf("edge %d", k))
			}
			files := r.pki.issue(certs.ID{TrustDomain: "program", Topology: "program", Node: s.Name})
			c.TLSCert, c.TLSKey, c.TLSCA = files.Cert, files.Key, files.CA
			return Open(c, s)
		}, piper.Node(fmt.Sprintf("n%d", i+1)), piper.DrainTimeout(30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		r.tops = append(r.tops, top)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	for i, top := range r.tops {
		r.done.Go(func() {
			if err := top.pool.Run(ctx); err != nil {
				t.Errorf("node %d: %v", i+1, err)
			}
		})
	}
	return r
}

// await waits until the view of the first node meets a condition.
func (r *running) await(what string, condition func(v *View) bool) *View {
	r.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		v := r.tops[0].node.View()
		if condition(v) {
			return v
		}
		if time.Now().After(end) {
			b, _ := json.Marshal(v)
			r.t.Fatalf("timeout while waiting for %s; the last view is %s", what, b)
		}
		<-time.After(time.Millisecond)
	}
}

// endless returns a program that sends messages until it is stopped. A burst is larger than
// the queues.
func endless() *program {
	return &program{
		processors: []part{{name: "source", instances: 2, source: true}, {name: "sink", instances: 700}},
		edges:      [][2]int{{0, 1}},
		groups:     []int{0, 1},
		capacity:   64, messages: math.MaxInt32, burst: 100,
		counts: map[string]int{}, runs: map[string]int{},
	}
}

func TestView(t *testing.T) {
	t.Parallel() // it waits for other nodes
	if (*Node)(nil).View() != nil {
		t.Error("a process without a node has a view")
	}
	for c := range (*View)(nil).Containers() {
		t.Error("a process without a node has the container", c)
	}
	r := runProgram(t, endless())
	v := r.await("messages between the nodes", func(v *View) bool {
		if v.State != stateRunning || len(v.Nodes) != 3 {
			return false
		}
		for _, n := range v.Nodes {
			if n.State != "member" || n.Detector != "alive" || !n.Reachable || !n.Found || n.Boot == "" {
				return false
			}
			if n.Name != "n1" && (n.Traffic.MessagesSent == 0 || n.Traffic.BytesReceived == 0) {
				return false
			}
		}
		return v.Edges[0].Handled > 0
	})
	if v.Node != "n1" || v.Coordinator != "n1" || v.Fenced || v.Address != r.addresses[0] || v.Edges[0].Name != "edge 0" {
		t.Errorf("%+v", v)
	}
	checkPlaces(t, v)
	if e := v.Edges[0]; e.Sent != e.Handled+e.Dropped+e.Pending {
		t.Errorf("the figures of an edge do not add up: %+v", e)
	}
	r.stop()
	r.done.Wait()
	for _, top := range r.tops {
		v := top.node.View()
		if v.State != stateEnded {
			t.Errorf("node %s is %s after its end", v.Node, v.State)
		}
		for _, n := range v.Nodes {
			if n.Traffic.Kept != 0 || n.Traffic.Dropped != 0 {
				t.Errorf("node %s: node %s has %+v at the end", v.Node, n.Name, n.Traffic)
			}
		}
		if e := v.Edges[0]; e.Pending != 0 || e.Sent != e.Handled || e.Sent == 0 && top.cell(0, 0).p != nil {
			t.Errorf("node %s: %+v", v.Node, e)
		}
	}
}

// checkPlaces compares the lists of a view.
func checkPlaces(t *testing.T, v *View) {
	t.Helper()
	nodes, seen := map[string]int{}, map[string]bool{}
	for c := range v.Containers() {
		name := fmt.Sprintf("%s/%d", c.Processor, c.Instance)
		if c.Node == "" || seen[name] {
			t.Errorf("container %+v", c)
		}
		seen[name] = true
		nodes[c.Node]++
	}
	want := 0
	for _, p := range v.Processors {
		want += p.Instances
		if p.Placement != "spread" || p.Here == 0 && p.Instances > 3 {
			t.Errorf("%+v", p)
		}
	}
	if len(seen) != want {
		t.Errorf("%d containers, want %d", len(seen), want)
	}
	for _, n := range v.Nodes {
		if n.Instances != nodes[n.Name] {
			t.Errorf("node %s has %d instances, but %d containers", n.Name, n.Instances, nodes[n.Name])
		}
	}
}

func TestOperators(t *testing.T) {
	t.Parallel() // it waits for other nodes
	r := runProgram(t, endless())
	defer r.done.Wait()
	defer r.stop()
	ann := r.pki.issue(certs.ID{TrustDomain: "program", Topology: "program", Operator: "ann"})
	v := r.await("the nodes", func(v *View) bool { return v.State == stateRunning && len(v.Nodes) == 3 })
	operate := func(files *grpc.TLS, c Command) (Report, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		return Operate(ctx, r.addresses[0], files, c)
	}
	ask := func(c Command) Report {
		t.Helper()
		report, err := operate(ann, c)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	if got := ask(Command{Show: ShowStatus}); got.Node != "n1" || got.State != stateRunning || len(got.Processors) != 2 || len(got.Edges) != 1 || len(got.Nodes) != 3 || got.Containers != nil {
		t.Errorf("status: %+v", got)
	}
	if got := ask(Command{Show: ShowNodes}); len(got.Nodes) != 3 || got.Nodes[2].Name != "n3" || got.Edges != nil || got.Processors != nil {
		t.Errorf("nodes: %+v", got)
	}
	var all, some []Container
	for c := range v.Containers() {
		all = append(all, c)
		if c.Processor == "sink" && c.Node == "n2" {
			some = append(some, c)
		}
	}
	if got := ask(Command{Show: ShowTable}); !reflect.DeepEqual(got.Containers, all) || len(all) <= partRecords {
		t.Errorf("table: %d containers, want %d", len(got.Containers), len(all))
	}
	if got := ask(Command{Show: ShowTable, Processor: "sink", Node: "n2"}); !reflect.DeepEqual(got.Containers, some) || len(some) == 0 {
		t.Errorf("table: %d containers, want %d", len(got.Containers), len(some))
	}

	// Other identities may not ask.
	n2 := r.pki.issue(certs.ID{TrustDomain: "program", Topology: "program", Node: "n2"})
	if _, err := operate(n2, Command{Show: ShowStatus}); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "is not an operator") {
		t.Errorf("a node may ask: %v", err)
	}
	bob := r.pki.issue(certs.ID{TrustDomain: "program", Topology: "other", Operator: "bob"})
	if _, err := operate(bob, Command{Show: ShowStatus}); err == nil {
		t.Error("the operator of another topology may ask")
	}
	if _, err := operate(nil, Command{Show: ShowStatus}); err == nil {
		t.Error("a caller without a certificate may ask")
	}

	for _, c := range []struct {
		command Command
		want    string
	}{
		{Command{Show: "drain"}, `no command "drain"`},
		{Command{Show: ShowTable, Processor: "snk"}, `topology program has no processor "snk"`},
		{Command{Show: ShowTable, Node: "n9"}, `node n1 knows no node "n9"`},
		{Command{Show: ShowTable, Node: strings.Repeat("n", requestBytesMax)}, "at most 4096 are allowed"},
	} {
		if _, err := operate(ann, c.command); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80v: %v, want %s", c.command, err, c.want)
		}
	}
}

// TestReportIsBounded checks what a client accepts.
func TestReportIsBounded(t *testing.T) {
	for _, text := range []string{`[]`, `{"view": 1}`, `{"containers": [{"instance": -1e99}]}`, `{`} {
		if err := new(Report).add(text); err == nil {
			t.Errorf("accepted %s", text)
		}
	}
	if err := new(Report).complete("here"); err == nil {
		t.Error("accepted an empty answer")
	}
}

// TestReachableAfterTheNextProcess: when the process of a node has left, the node is reachable
// only after its next process has joined, and not as soon as failure detection sees it.
func TestReachableAfterTheNextProcess(t *testing.T) {
	c := newNodeCore(&Config{Topology: "test", Plan: "plan"}, "n1", 1, rand.New(rand.NewPCG(1, 1)), slog.New(slog.DiscardHandler))
	c.places, c.pool = noPlaces{}, &phases{}
	p, err := c.newPeer("n2")
	if err != nil {
		t.Fatal(err)
	}
	p.found = true
	for _, kind := range []byte{controlDraining, controlLeft} {
		if err := p.message(laneControl, []byte{kind}); err != nil {
			t.Fatal(err)
		}
	}
	p.setReachable(1, false)
	p.setReachable(2, true)
	if v := c.view().peers["n2"]; v.reachable || v.draining {
		t.Errorf("a node whose process has left is reachable: %v, drains: %v", v.reachable, v.draining)
	}
}
