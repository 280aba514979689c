package raft_test

import (
	"bytes"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// record collects the log lines of a node, from any goroutine.
type record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(b)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

func (r *record) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// hasLogged fails the test unless one line contains all parts.
func (r *record) hasLogged(t *testing.T, parts ...string) {
	t.Helper()
	for line := range strings.Lines(r.String()) {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
			return
		}
	}
	t.Errorf("a line of the log must contain %q:\n%s", parts, r)
}

// inVirtualTime starts nodes on a network in memory, in the virtual time of synctest.
type inVirtualTime struct {
	t       *testing.T
	network *transport.Memory
	links   map[string]transport.Transport
	disks   map[string]*memoryDisk
	logs    map[string]*record
	ends    map[string]func() // stop the running nodes
}

func virtually(t *testing.T, test func(t *testing.T, v *inVirtualTime)) {
	synctest.Test(t, func(t *testing.T) {
		test(t, &inVirtualTime{
			t, transport.NewMemory(transport.MemoryOptions{}), map[string]transport.Transport{}, map[string]*memoryDisk{}, map[string]*record{}, map[string]func(){},
		})
	})
}

// connect returns the configuration of a node that is connected to the network. Its disk is in memory,
// too, unless the configuration names a folder. The network carries no more messages of an earlier start
// of the node.
func (v *inVirtualTime) connect(c raft.Config) raft.Config {
	v.t.Helper()
	if earlier := v.links[c.Node]; earlier != nil {
		_ = earlier.Close()
	}
	link, err := v.network.Join(c.Node)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = link.Close() })
	v.links[c.Node], c.Transport = link, link
	if c.Dir == "" {
		if v.disks[c.Node] == nil {
			v.disks[c.Node] = newMemoryDisk(1)
		}
		c.Disk = v.disks[c.Node]
	}
	return c
}

// start starts a node, which logs to v.logs.
func (v *inVirtualTime) start(c raft.Config) *machine {
	v.t.Helper()
	c = v.connect(c)
	v.logs[c.Node] = new(record)
	c.Logger, c.Forward = v.logs[c.Node].logger(), true
	m, err := tryOpen(c)
	if err != nil {
		v.t.Fatal(err)
	}
	link := v.links[c.Node]
	end := sync.OnceFunc(func() { _ = m.Close(); _ = link.Close() })
	v.ends[c.Node] = end
	v.t.Cleanup(end)
	return m
}

// group starts the nodes n1, n2 and n3.
func (v *inVirtualTime) group() (ms []*machine, configs []raft.Config) {
	v.t.Helper()
	return v.groupIn("")
}

// groupIn starts three nodes with folders in dir.
func (v *inVirtualTime) groupIn(dir string) (ms []*machine, configs []raft.Config) {
	v.t.Helper()
	peers := named("n1", "n2", "n3")
	for _, name := range slices.Sorted(maps.Keys(peers)) {
		c := raft.Config{Node: name, Peers: peers, Dir: dir}
		configs = append(configs, c)
		ms = append(ms, v.start(c))
	}
	return ms, configs
}

// pause lets some virtual time pass, between two checks of a condition.
func pause() { time.Sleep(10 * time.Millisecond) }

func named(names ...string) map[string]string {
	m := map[string]string{}
	for _, name := range names {
		m[name] = "host-" + name + ":1"
	}
	return m
}
