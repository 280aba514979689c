package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/cluster/table/broadcast"
	tableraft "github.com/topogen/topogen/runtime/cluster/table/raft"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
)

// TestChangedProgram founds a cluster, and starts it again in the same folder with other settings, and with
// another number of instances.
func TestChangedProgram(t *testing.T) {
	founded := func(c *Config) {
		c.Plan, c.Identity = "a", []string{"topology program =", "processor sink = number 2, 3 instances"}
	}
	settings := func(c *Config) {
		founded(c)
		c.Retry, c.Neighborhood, c.Rebalance, c.Together = Retry{Timeout: 7 * time.Second, Min: time.Second, Max: time.Second}, 1, true, "fence off"
	}
	instances := func(c *Config) {
		c.Plan, c.Identity = "b", []string{"topology program =", "processor sink = number 2, 4 instances"}
	}
	earlier := func(c *Config) { c.Plan = "a" }
	for name, engine := range map[string]table.Opener{"raft": tableraft.Opener(), "broadcast": broadcast.Opener()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run := func(dir string, change func(*Config)) error {
					p := newProgram()
					p.messages = 10
					wire := join(t, transport.NewMemory(transport.MemoryOptions{}), "n1")
					top, err := p.newTop(func(s piper.NodeSettings) (*Node, error) {
						s.Transport = wire
						c := p.config(1, dir, nil)
						c.Table = engine
						change(&c)
						return Open(c, s)
					}, piper.Node("n1"), piper.Logger(slog.New(slog.DiscardHandler)))
					if err != nil {
						t.Fatal(err)
					}
					return top.pool.Run(t.Context())
				}
				dir := t.TempDir()
				for _, change := range []func(*Config){founded, settings} {
					if err := run(dir, change); err != nil {
						t.Fatal(err)
					}
				}
				want := "the address table: table: the node was built from another topology: the processor sink has 3 instances in the cluster and 4 instances here. Use"
				if err := run(dir, instances); !errors.Is(err, table.ErrPlan) || !strings.Contains(err.Error(), want) {
					t.Errorf("a program with other instances got the error %v, want %s", err, want)
				}
				if err := run(dir, founded); err != nil {
					t.Errorf("after the refusal the program of the cluster cannot start: %v", err)
				}
				old := t.TempDir()
				if err := run(old, earlier); err != nil {
					t.Fatal(err)
				}
				want = `the cluster has the plan "a", without a description: it was founded by another version of topogen`
				if err := run(old, instances); !errors.Is(err, table.ErrPlan) || !strings.Contains(err.Error(), want) {
					t.Errorf("with a folder of an earlier version the program got the error %v, want %s", err, want)
				}
			})
		})
	}
}

// TestInCommon: the hello of a node has the settings that all running nodes must have in common. Clients are asked
// for the identity alone.
func TestInCommon(t *testing.T) {
	plan := strings.Repeat("f", planBytesMax)
	text := "addresses raft, detector swim, fence majority, tie_breaker n1"
	hello := func(together string, client bool, peer string) string {
		config, random, log := &Config{Topology: "t", Plan: plan, Together: together}, rand.New(rand.NewPCG(1, 2)), slog.New(slog.DiscardHandler)
		c := newNodeCore(config, "n1", 1, random, log).core
		if client {
			c = newClientCore(config, "n1", 1, random, log).core
		}
		p, err := c.newPeer(peer)
		if err != nil {
			t.Fatal(err)
		}
		p.session.Connected(0, true)
		return string(p.session.Frame(0))
	}
	if got := hello(text, false, "n2"); !strings.Contains(got, plan+" "+text) {
		t.Errorf("the hello is %q, without %s", got, text)
	}
	if got := hello(text, true, "n2"); !strings.Contains(got, plan) || strings.Contains(got, "swim") {
		t.Errorf("the hello of a client is %q", got)
	}
	c := newNodeCore(&Config{Topology: "t", Plan: plan, Together: text}, "n1", 1, rand.New(rand.NewPCG(1, 2)), slog.New(slog.DiscardHandler))
	p, err := c.clients.newPeer(clientPrefix + "X")
	if err != nil {
		t.Fatal(err)
	}
	p.session.Connected(0, true)
	if got := string(p.session.Frame(0)); !strings.Contains(got, plan) || strings.Contains(got, "swim") {
		t.Errorf("the hello to a client is %q", got)
	}
	a, b := hello(strings.Repeat("a", 1000), false, "n2"), hello(strings.Repeat("b", 1000), false, "n2")
	if a == b || !strings.Contains(a, plan+" settings ") {
		t.Errorf("with long settings the hellos are %q and %q", a, b)
	}
}

// TestRefusalIsExplained: the table knows only the hash of a node that joins.
func TestRefusalIsExplained(t *testing.T) {
	s := &settings{Config: Config{Plan: "b", Identity: []string{"processor sink = 4 instances"}}}
	err := s.explain(fmt.Errorf("join: %w", &table.PlanError{Node: table.Plan{Hash: "b"}, Cluster: table.NewPlan("a", []string{"processor sink = 3 instances"})}))
	if want := "the processor sink has 3 instances in the cluster and 4 instances here"; !errors.Is(err, table.ErrPlan) || !strings.Contains(err.Error(), want) {
		t.Errorf("got the error %v, want %s", err, want)
	}
	if err := s.explain(table.ErrClosed); err != table.ErrClosed {
		t.Errorf("another error became %v", err)
	}
}
