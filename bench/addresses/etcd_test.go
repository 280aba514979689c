package addresses

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"

	"github.com/topogen/topogen/internal/test/tabletest"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/cluster/table/etcd"
)

// server is an embedded etcd.
type server struct {
	endpoint string
	*embed.Etcd
	config *embed.Config
}

// startServer starts an etcd with one member. The options are for its server.
func startServer(t testing.TB, options ...grpc.ServerOption) *server {
	t.Helper()
	c := embed.NewConfig()
	c.Name, c.Dir, c.LogLevel = "etcd", t.TempDir(), "fatal"
	peer, client := listenAddress(t), listenAddress(t)
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.InitialCluster = c.Name + "=" + peer.String()
	c.GRPCAdditionalServerOptions = append(c.GRPCAdditionalServerOptions, options...)
	s := &server{endpoint: client.String(), config: c}
	s.start(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func (s *server) start(t testing.TB) {
	t.Helper()
	var err error
	if s.Etcd, err = embed.StartEtcd(s.config); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Server.ReadyNotify():
	case <-time.After(time.Minute):
		t.Fatal("etcd did not start within a minute")
	}
}

// listenAddress returns a free address.
func listenAddress(t testing.TB) url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return url.URL{Scheme: "http", Host: l.Addr().String()}
}

// cluster is a table in an etcd.
type cluster struct {
	server *server
	prefix string
	change func(*etcd.Config) // changes the configuration of each node; nil: no change
}

func (c *cluster) Open(t *testing.T, _ string) table.Table { return c.open(t) }

func (c *cluster) open(t testing.TB) *etcd.Table {
	t.Helper()
	config := etcd.Config{Endpoints: []string{c.server.endpoint}, Prefix: c.prefix, Logger: slog.New(slog.DiscardHandler)}
	if c.change != nil {
		c.change(&config)
	}
	o, err := etcd.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (c *cluster) client(t testing.TB) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{c.server.endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestConformance(t *testing.T) {
	s := startServer(t)
	tabletest.Run(t, tabletest.Engine{
		New:      func(t *testing.T) tabletest.Cluster { return &cluster{server: s, prefix: "/" + t.Name()} },
		RealTime: true,
		Lacks: map[tabletest.Guarantee]string{
			tabletest.LeasesInReplica: "leases are leases of etcd, and are not in the log of the table",
		},
	})
}

var (
	placements = []table.Placement{{Processor: table.Processor{Name: "counter", Instances: 12}}}
	nodes      = []table.Node{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}}
)

func started(t testing.TB, c *cluster) (context.Context, *etcd.Table) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	o := c.open(t)
	t.Cleanup(func() { _ = o.Close() })
	if err := table.Bootstrap(ctx, o, table.Plan{Hash: "plan-1"}, placements, nodes); err != nil {
		t.Fatal(err)
	}
	return ctx, o
}

func move(ctx context.Context, t testing.TB, o table.Table, count int) {
	t.Helper()
	for i := range count {
		if _, err := o.Txn(ctx, nil, []table.Change{table.Assign{Processor: "counter", First: i % 12, Count: 1, Node: nodes[i%3].Name}}); err != nil {
			t.Fatal(err)
		}
	}
}

func sameTables(ctx context.Context, t testing.TB, a, b table.Table) {
	t.Helper()
	for _, o := range []table.Table{a, b} {
		if err := o.Sync(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if string(a.Replica().Append(nil)) != string(b.Replica().Append(nil)) {
		t.Errorf("the tables differ:\n%+v\n%+v", a.Replica().Snapshot(), b.Replica().Snapshot())
	}
}

// TestCompaction compacts etcd before a node reads the table.
func TestCompaction(t *testing.T) {
	c := &cluster{server: startServer(t), prefix: "/test", change: func(c *etcd.Config) { c.SnapshotEvery = 10 }}
	ctx, o := started(t, c)
	client := c.client(t)
	for range 3 {
		move(ctx, t, o, 35)
		r, err := client.Get(ctx, "/test/last")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Compact(ctx, r.Header.Revision); err != nil {
			t.Fatal(err)
		}
		late := c.open(t)
		sameTables(ctx, t, o, late)
		if err := late.Close(); err != nil {
			t.Error(err)
		}
	}
	log, err := client.Get(ctx, "/test/log/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || log.Count > 40 {
		t.Errorf("%d entries are in etcd after many snapshots (%v)", log.Count, err)
	}
	parts, err := client.Get(ctx, "/test/snap/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || parts.Count > 2 {
		t.Errorf("%d parts of snapshots are in etcd (%v)", parts.Count, err)
	}
}

// TestWatchIsCompacted restarts etcd with a compacted log while a node is connected.
func TestWatchIsCompacted(t *testing.T) {
	c := &cluster{server: startServer(t), prefix: "/test", change: func(c *etcd.Config) { c.SnapshotEvery = 10 }}
	ctx, o := started(t, c)
	idle := c.open(t)
	defer idle.Close()
	sameTables(ctx, t, o, idle)
	w := idle.Replica().Watch(idle.Replica().Revision())
	c.server.Close()
	c.server.start(t)
	move(ctx, t, o, 35)
	client := c.client(t)
	r, err := client.Get(ctx, "/test/last")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(ctx, r.Header.Revision); err != nil {
		t.Fatal(err)
	}
	c.server.Close()
	c.server.start(t)
	move(ctx, t, o, 5)
	sameTables(ctx, t, o, idle)
	if _, err := w.Next(ctx); err != nil {
		t.Error(err)
	}
}

// TestServerIsDown proposes while etcd is down.
func TestServerIsDown(t *testing.T) {
	c := &cluster{server: startServer(t), prefix: "/test"}
	ctx, o := started(t, c)
	c.server.Close()
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := o.Txn(short, nil, []table.Change{table.Forget{Name: "n9"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a transaction without etcd got %v, want the end of its context", err)
	}
	counter, _, _ := o.Replica().Processor("counter")
	if n, _ := o.Replica().Lookup(counter, 0); n == nil {
		t.Error("a lookup without etcd found nothing")
	}
	done := make(chan error, 1)
	go func() {
		_, err := o.Txn(ctx, []table.Guard{table.EpochIs{Processor: "counter", Instance: 3, Epoch: 1}}, []table.Change{table.Assign{Processor: "counter", First: 3, Count: 1, Node: "n3"}})
		done <- err
	}()
	c.server.start(t)
	if err := <-done; err != nil {
		t.Errorf("a transaction that waited for etcd got %v", err)
	}
	if n, epoch := o.Replica().Lookup(counter, 3); n.Name != "n3" || epoch != 2 {
		t.Errorf("counter/3 is on %s with epoch %d, want n3 and 2", n.Name, epoch)
	}
}

// TestInvalidKeys writes values that this package does not write.
func TestInvalidKeys(t *testing.T) {
	s := startServer(t)
	for name, kv := range map[string][2]string{
		"entry":          {"/log/0000000000000002", "x"},
		"key":            {"/log/2", "x"},
		"head":           {"/head", "0000000000000009 0"},
		"missing parts":  {"/head", "0000000000000009 1"},
		"too many parts": {"/head", "0000000000000009 1000000"},
		"last":           {"/last", "-1"},
		"rollback":       {"/last", "0000000000000000"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{server: s, prefix: "/" + t.Name()}
			ctx, o := started(t, c)
			if _, err := c.client(t).Put(ctx, c.prefix+kv[0], kv[1]); err != nil {
				t.Fatal(err)
			}
			late := c.open(t)
			defer late.Close()
			var err error
			for err == nil { // a table that is open already gets the value some time after Put
				err = errors.Join(late.Sync(ctx), o.Sync(ctx))
			}
			if ctx.Err() != nil {
				t.Errorf("Sync returned %v; the value must be an error", err)
			}
		})
	}
}

// TestMissingKeys deletes keys, or names entries that are not there. A node that joins neither
// waits forever nor overwrites an entry, and its error says what to do.
func TestMissingKeys(t *testing.T) {
	s := startServer(t)
	for name, change := range map[string]clientv3.Op{
		"last":            clientv3.OpDelete("/last"),
		"an entry":        clientv3.OpDelete("/log/0000000000000002"),
		"the last entry":  clientv3.OpDelete("/log/0000000000000006"),
		"all entries":     clientv3.OpDelete("/log/", clientv3.WithPrefix()),
		"last is too big": clientv3.OpPut("/last", "0000000000000007"),
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{server: s, prefix: "/" + t.Name()}
			ctx, o := started(t, c)
			move(ctx, t, o, 5)
			kv := clientv3.NewKV(c.client(t))
			entries := func() (list []string) {
				r, err := kv.Get(ctx, c.prefix+"/log/", clientv3.WithPrefix())
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range r.Kvs {
					list = append(list, string(e.Key)+string(e.Value))
				}
				return list
			}
			if n := len(entries()); n != 6 {
				t.Fatalf("%d entries, want 6", n)
			}
			if _, err := namespace.NewKV(kv, c.prefix).Do(ctx, change); err != nil {
				t.Fatal(err)
			}
			before := entries()
			late := c.open(t)
			defer late.Close()
			_, err := late.Txn(ctx, nil, []table.Change{table.Forget{Name: "n9"}})
			if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "remove all keys below "+c.prefix) {
				t.Errorf("a node that joins got %v", err)
			}
			if got := entries(); !slices.Equal(got, before) {
				t.Errorf("the log has changed:\n%q\n%q", before, got)
			}
		})
	}
}

// TestHostileCommand writes an entry whose command is damaged. All nodes refuse it.
func TestHostileCommand(t *testing.T) {
	c := &cluster{server: startServer(t), prefix: "/test"}
	ctx, o := started(t, c)
	value := "\x01" + "nonce   " + "\x00\x00\x00\x00\x00\x00\x00\x00" + "\xff\xff\xff"
	if _, err := c.client(t).Txn(ctx).Then(clientv3.OpPut("/test/last", "0000000000000002"), clientv3.OpPut("/test/log/0000000000000002", value)).Commit(); err != nil {
		t.Fatal(err)
	}
	move(ctx, t, o, 3)
	late := c.open(t)
	defer late.Close()
	sameTables(ctx, t, o, late)
}
