package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/effects"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// TestSettingsReachTheNode sets each setting of a node, and observes what the node passes to its
// transport, its failure detector, its address table and its sessions.
func TestSettingsReachTheNode(t *testing.T) {
	two := map[string]string{"n1": "127.0.0.1:0", "n2": "127.0.0.1:2"}
	cert, key, ca := issue(t)
	n1 := piper.NodeSettings{Name: "n1"}
	joins := func(c Config, s piper.NodeSettings, get func(j *entered) any, want any) func(*testing.T) {
		return func(t *testing.T) {
			if got := get(enters(t, c, s)); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		}
	}
	listens := func(c Config, want string) func(*testing.T) {
		return func(t *testing.T) { listen(t, c, n1, want) }
	}
	waits := func(c Config, s piper.NodeSettings, want time.Duration) func(*testing.T) {
		return func(t *testing.T) { patience(t, c, s, want) }
	}
	with := func(variable, text string, effect func(*testing.T)) func(*testing.T) {
		return func(t *testing.T) { t.Setenv(variable, text); effect(t) }
	}
	secure := Config{TLSCert: cert, TLSKey: key, TLSCA: ca, TrustDomain: "test"}
	without := func(change func(*Config)) Config { c := secure; change(&c); return c }
	client := func(c *ClientConfig) piper.NodeSettings { return piper.NodeSettings{Client: c} }

	own := slog.New(slog.NewTextHandler(io.Discard, nil))
	logs := func(t *testing.T, s piper.NodeSettings) {
		if open(t, Config{}, s).log != own {
			t.Error("the node has another logger")
		}
	}

	effects.Check(t, effects.Table{
		"Config.Topology":    joins(Config{}, n1, func(j *entered) any { return j.setup.Topology }, "shop"),
		"Config.Plan":        joins(Config{}, n1, func(j *entered) any { return j.setup.Plan }, "plan"),
		"Config.Identity":    effects.By("TestChangedProgram"),
		"Config.Together":    effects.By("TestInCommon"),
		"Config.Processors":  joins(Config{}, n1, placesOf, "a on n1 n2, b on n2 n2, c on n1, d on n1 n2"),
		"Config.Edges":       effects.By("TestView"),
		"Config.Nodes":       joins(Config{Nodes: two}, n1, func(j *entered) any { return j.setup.First }, two),
		"Config.Dir":         joins(Config{Dir: "x"}, n1, func(j *entered) any { return j.setup.Dir }, filepath.Join("x", "n1")),
		"Config.TLSCert":     listens(without(func(c *Config) { c.TLSCert = "missing" }), "missing"),
		"Config.TLSKey":      listens(without(func(c *Config) { c.TLSKey = "missing" }), "missing"),
		"Config.TLSCA":       listens(without(func(c *Config) { c.TLSCA = "missing" }), "missing"),
		"Config.TrustDomain": listens(without(func(c *Config) { c.TrustDomain = "other" }), "other"),
		"Config.Insecure":    listens(Config{Nodes: map[string]string{"n1": "0.0.0.0:0"}, Insecure: true}, ""),
		"Config.Table":       joins(Config{}, n1, func(j *entered) any { return j.setup.Node }, "n1"),
		"Config.Detect":      joins(Config{}, n1, func(j *entered) any { return j.member.Node.Name }, "n1"),
		"Config.Membership":  joins(Config{Membership: member.Config{Helpers: 7}}, n1, func(j *entered) any { return j.member.Config.Helpers }, 7),
		"Config.Retry":       waits(Config{Retry: Retry{Timeout: 7 * time.Second}}, n1, 7*time.Second),
		"Config.Rebalance":   func(*testing.T) {}, // reserved for a later version
		"Config.Neighborhood": func(t *testing.T) {
			if got := open(t, Config{Neighborhood: 5}, n1).core.config.Neighborhood; got != 5 { // TestNeighborhood sets it there
				t.Errorf("got %d", got)
			}
		},

		"Processor.Name":      joins(Config{}, n1, placesOf, "a on n1 n2, b on n2 n2, c on n1, d on n1 n2"),
		"Processor.Instances": joins(Config{}, n1, placesOf, "a on n1 n2, b on n2 n2, c on n1, d on n1 n2"),
		"Processor.Placement": joins(Config{}, n1, placesOf, "a on n1 n2, b on n2 n2, c on n1, d on n1 n2"),
		"Processor.Node":      joins(Config{}, n1, placesOf, "a on n1 n2, b on n2 n2, c on n1, d on n1 n2"),
		"Processor.With":      joins(Config{}, n1, placesOf, "a on n1 n2, b on n2 n2, c on n1, d on n1 n2"),

		"Retry.Timeout": waits(Config{Retry: Retry{Timeout: 7 * time.Second}}, n1, 7*time.Second),
		"Retry.Min": func(t *testing.T) {
			repeats(t, Retry{Min: 5 * time.Second, Max: time.Minute}, 5*time.Second, 10*time.Second)
		},
		"Retry.Max": func(t *testing.T) {
			repeats(t, Retry{Min: 10 * time.Millisecond, Max: 15 * time.Millisecond}, 10*time.Millisecond, 15*time.Millisecond)
		},

		"NodeSettings.Name":      joins(Config{}, n1, func(j *entered) any { return j.setup.Node }, "n1"),
		"NodeSettings.Address":   joins(Config{}, piper.NodeSettings{Name: "n1", Address: "h:7"}, func(j *entered) any { return j.setup.Address }, "h:7"),
		"NodeSettings.Dir":       joins(Config{}, piper.NodeSettings{Name: "n1", Dir: "y"}, func(j *entered) any { return j.setup.Dir }, filepath.Join("y", "n1")),
		"NodeSettings.Roles":     joins(Config{}, piper.NodeSettings{Name: "n1", Roles: []string{"disks"}}, rolesOf, []string{"disks"}),
		"NodeSettings.Transport": effects.By("TestJoinedNodeLeaves"),
		"NodeSettings.Client":    waits(Config{}, client(&ClientConfig{}), clientRetry),
		"NodeSettings.Logger":    func(t *testing.T) { logs(t, piper.NodeSettings{Name: "n1", Logger: own}) },

		"ClientConfig.Addresses": clientHas(Config{}, &ClientConfig{Addresses: []string{"h:1"}}, func(n *Node) any { return n.client.addresses }, []string{"h:1"}),
		"ClientConfig.TLSCert":   clientHas(secure, &ClientConfig{TLSCert: "x"}, func(n *Node) any { return n.client.transport.tls.Cert }, "x"),
		"ClientConfig.TLSKey":    clientHas(secure, &ClientConfig{TLSKey: "x"}, func(n *Node) any { return n.client.transport.tls.Key }, "x"),
		"ClientConfig.TLSCA":     clientHas(secure, &ClientConfig{TLSCA: "x"}, func(n *Node) any { return n.client.transport.tls.CA }, "x"),
		"ClientConfig.Wait":      effects.By("generated_test/nodetests TestClusterClientSettingsOfClients"),
		"ClientConfig.Retry":     waits(Config{}, client(&ClientConfig{Retry: 7 * time.Second}), 7*time.Second),
		"ClientConfig.Dial":      clientDials,
		"ClientConfig.Logger":    func(t *testing.T) { logs(t, client(&ClientConfig{Logger: own})) },

		VariableNode:     with(VariableNode, "n1", joins(Config{}, piper.NodeSettings{}, func(j *entered) any { return j.setup.Node }, "n1")),
		VariableAddress:  with(VariableAddress, "h:7", joins(Config{}, n1, func(j *entered) any { return j.setup.Address }, "h:7")),
		VariableDir:      with(VariableDir, "y", joins(Config{}, n1, func(j *entered) any { return j.setup.Dir }, filepath.Join("y", "n1"))),
		VariableRoles:    with(VariableRoles, "a,b", joins(Config{}, n1, rolesOf, []string{"a", "b"})),
		VariableNodes:    with(VariableNodes, "n1=h:1,n2=h:3", joins(Config{}, n1, func(j *entered) any { return j.setup.First }, map[string]string{"n1": "h:1", "n2": "h:3"})),
		VariableCert:     with(VariableCert, "missing", listens(secure, "missing")),
		VariableKey:      with(VariableKey, "missing", listens(secure, "missing")),
		VariableCA:       with(VariableCA, "missing", listens(secure, "missing")),
		VariableTrust:    with(VariableTrust, "other", listens(secure, "other")),
		VariableInsecure: with(VariableInsecure, "true", listens(Config{Nodes: map[string]string{"n1": "0.0.0.0:0"}}, "")),

		VariableClientWait:  effects.By("generated_test/nodetests TestClusterClientSettingsOfClients"),
		VariableClientRetry: with(VariableClientRetry, "7s", waits(Config{}, client(&ClientConfig{}), 7*time.Second)),
	}, Config{}, Processor{}, Retry{}, piper.NodeSettings{}, ClientConfig{})

	t.Run("correct files", listens(secure, ""))
	t.Run("without TLS", listens(Config{Nodes: map[string]string{"n1": "0.0.0.0:0"}}, "set "+tlsNames))
	for variable, get := range map[string]func(n *Node) any{
		VariableCert:  func(n *Node) any { return n.client.transport.tls.Cert },
		VariableKey:   func(n *Node) any { return n.client.transport.tls.Key },
		VariableCA:    func(n *Node) any { return n.client.transport.tls.CA },
		VariableNodes: func(n *Node) any { return n.client.addresses },
	} {
		t.Run("client "+variable, func(t *testing.T) {
			text, want := "x", any("x")
			if variable == VariableNodes {
				text, want = "n3=h:3", []string{"h:3"}
			}
			with(variable, text, clientHas(secure, &ClientConfig{}, get, want))(t)
		})
	}
}

// complete adds what each node needs.
func complete(c Config) Config {
	c.Topology, c.Plan = "shop", "plan"
	if c.Nodes == nil {
		c.Nodes = map[string]string{"n1": "127.0.0.1:0", "n2": "127.0.0.1:1"}
	}
	c.Membership.Fence = member.FenceOff
	if c.Dir == "" {
		c.Dir = "unused"
	}
	c.Processors = []Processor{
		{Name: "a", Instances: 2},
		{Name: "b", Instances: 2, Placement: OnNode, Node: "n2", With: 1},
		{Name: "c", Instances: 1, Placement: EveryNode, With: 2},
		{Name: "d", Instances: 2},
	}
	return c
}

func open(t *testing.T, c Config, s piper.NodeSettings) *Node {
	t.Helper()
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	n, err := Open(complete(c), s)
	if err != nil || n == nil {
		t.Fatal(n, err)
	}
	return n
}

// entered is what a node gives to its failure detector and its address table.
type entered struct {
	member  member.Settings
	setup   table.Setup
	replica *table.Replica
	lookup  *lookup
}

// silent is a failure detector that knows no node.
type silent struct{ member.Detector }

func (silent) Start() error             { return nil }
func (silent) Members() []member.Member { return nil }

// enters joins a cluster whose table is in memory.
func enters(t *testing.T, c Config, s piper.NodeSettings) *entered {
	t.Helper()
	t.Chdir(memdir.Quick(t))
	j, tables := new(entered), table.NewMemory()
	c.Detect = func(s member.Settings) (member.Detector, error) { j.member = s; return silent{}, nil }
	c.Table = func(s table.Setup) (table.Table, error) { j.setup = s; return tables.Open(), nil }
	s.Transport = join(t, transport.NewMemory(transport.MemoryOptions{}), "n1")
	n := open(t, c, s)
	if err := n.connect(); err != nil {
		t.Fatal(err)
	}
	if err := n.join(t.Context(), &lastRun{}); err != nil {
		t.Fatal(err)
	}
	j.replica = n.table.Replica()
	var err error
	if j.lookup, err = newLookup(&n.settings, j.replica); err != nil {
		t.Fatal(err)
	}
	return j
}

func rolesOf(j *entered) any { return j.replica.Node("n1").Roles }

// placesOf says on which nodes the instances are.
func placesOf(j *entered) any {
	var list []string
	for i, p := range j.lookup.settings.Processors {
		text := p.Name + " on"
		for k := range p.Instances {
			name, _ := j.lookup.Node(i, k)
			text += " " + name
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// listen wants the node to listen, or an error that contains the text.
func listen(t *testing.T, c Config, s piper.NodeSettings, want string) {
	t.Helper()
	n := open(t, c, s)
	err := n.connect()
	if err == nil {
		defer n.close()
	}
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("the node listens with %v, want %q", err, want)
	}
}

// patience wants how long messages wait for a node that cannot be reached.
func patience(t *testing.T, c Config, s piper.NodeSettings, want time.Duration) {
	t.Helper()
	p, err := open(t, c, s).core.newPeer("n2")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.patience(); got != want {
		t.Errorf("messages wait for %v, want %v", got, want)
	}
}

// repeats sends a message to a node that does not answer, and wants the first two pauses, each
// with up to a quarter more.
func repeats(t *testing.T, r Retry, want ...time.Duration) {
	t.Helper()
	for name, s := range map[string]piper.NodeSettings{"node": {Name: "n1"}, "client": {Client: &ClientConfig{}}} {
		p, err := open(t, Config{Retry: r}, s).core.newPeer("n2")
		if err != nil {
			t.Fatal(err)
		}
		now := time.Duration(0)
		p.session.Connected(now, true)
		if err := p.session.Send(laneControl, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		for p.session.Frame(now) != nil {
		}
		for i, want := range want {
			at, ok := p.session.Next()
			if pause := at - now; !ok || pause < want || pause > want*5/4 {
				t.Errorf("%s: pause %d is %v, want %v", name, i+1, pause, want)
			}
			now = at
			for p.session.Frame(now) != nil {
			}
		}
	}
}

// clientHas wants a setting of a client where its transport reads it.
func clientHas(c Config, client *ClientConfig, get func(n *Node) any, want any) func(*testing.T) {
	return func(t *testing.T) {
		if got := get(open(t, c, piper.NodeSettings{Client: client})); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// clientDials wants a client to ask a node through Dial. The connections that send messages use it too.
func clientDials(t *testing.T) {
	n := open(t, Config{}, piper.NodeSettings{Client: &ClientConfig{Dial: func(_ context.Context, address string) (net.Conn, error) {
		return nil, errors.New("no way to " + address)
	}}})
	if _, err := n.client.ask(t.Context(), "127.0.0.1:1", "plan"); err == nil || !strings.Contains(err.Error(), "no way to 127.0.0.1:1") {
		t.Errorf("the client gets %v", err)
	}
	effects.By("generated_test/nodetests TestClusterClientWaysAreCut")(t)
}

// issue makes the files of the certificate of n1.
func issue(t *testing.T) (cert, key, ca string) {
	t.Helper()
	dir := memdir.Quick(t)
	authority, err := certs.NewAuthority("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(certs.ID{TrustDomain: "test", Topology: "shop", Node: "n1"}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for i, text := range [][]byte{pair.Cert, pair.Key, authority.Cert} {
		file := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files[0], files[1], files[2]
}

// TestNamesWithCapitals: a trust domain has no capitals, and the name of a topology, its default, may have some.
func TestNamesWithCapitals(t *testing.T) {
	s, _, err := resolve(Config{Topology: "Shop", Plan: "plan", Nodes: map[string]string{"n1": "127.0.0.1:0"}, Dir: "d"}, piper.NodeSettings{Name: "n1"})
	id := certs.ID{TrustDomain: s.TrustDomain, Topology: s.Topology, Node: s.node}
	if err := errors.Join(err, id.Check()); err != nil {
		t.Error(err)
	}
}
