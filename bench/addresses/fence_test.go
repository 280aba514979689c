package addresses

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	fencing "github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/cluster/table/etcd"
	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
	"github.com/topogen/topogen/runtime/topo"
	"github.com/topogen/topogen/runtime/transport"
)

const (
	fencePrefix = "/fence"
	fenceLease  = fencePrefix + "/lease/node n1" // key of the lease of the only node

	pause = 5 * time.Millisecond // between two calls of an instance
	late  = 3 * time.Second      // of a node that connects with etcd again, on a busy computer
)

var localLease = member.Config{Profile: member.ProfileLocal}.Lease()

// link passes connections on to etcd until it is cut.
type link struct {
	listener net.Listener
	mu       sync.Mutex
	isCut    bool
	conns    []net.Conn
}

func newLink(t *testing.T, s *server) *link {
	t.Helper()
	to, err := url.Parse(s.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	l := &link{}
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.listener.Close()
		l.cut(true)
	})
	go func() {
		for {
			in, err := l.listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to.Host)
			if err != nil {
				_ = in.Close()
				continue
			}
			l.add(in, out)
			go pass(in, out)
			go pass(out, in)
		}
	}()
	return l
}

func (l *link) add(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, conns...)
	if l.isCut {
		closeAll(conns)
	}
}

// cut ends all connections, and refuses new ones until it is called with false.
func (l *link) cut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut = cut; cut {
		closeAll(l.conns)
		l.conns = nil
	}
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}

func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	closeAll([]net.Conn{to, from})
}

// process is a process of the node n1. Its only instance counts its calls.
type process struct {
	unit  piper.Unit
	out   piper.Out
	calls atomic.Int64
	last  atomic.Int64 // when the last call began, since began
	link  *link        // to etcd
	ended chan error
	stop  context.CancelFunc
}

var began = time.Now()

// startProcess starts a process with a folder of its own, which no other process can reach.
func startProcess(t *testing.T, s *server, retry time.Duration) *process {
	t.Helper()
	p := &process{link: newLink(t, s), ended: make(chan error, 1)}
	wire, err := transport.NewMemory(transport.MemoryOptions{}).Join("n1")
	if err != nil {
		t.Fatal(err)
	}
	config := fencing.Config{
		Topology: "fence", Plan: "plan", Nodes: map[string]string{"n1": "127.0.0.1:1"}, Dir: t.TempDir(),
		Processors: []fencing.Processor{{Name: "counter", Instances: 1}},
		Table:      etcd.Opener(etcd.Options{Endpoints: []string{"http://" + p.link.listener.Addr().String()}, Prefix: fencePrefix}),
		Detect:     func(s member.Settings) (member.Detector, error) { return member.New(s) },
		Membership: member.Config{Profile: member.ProfileLocal},
		Retry:      fencing.Retry{Timeout: retry},
	}
	pool, err := piper.New(piper.Spec{
		Name: "fence", Topology: p, Workers: 1, Batch: 16, DrainTimeout: time.Second,
		Processors: []piper.Processor{{Name: "counter", Ping: true, Instances: 1, Instance: func(topo.Instance, bool) (piper.Parts, error) {
			return piper.Parts{Cell: p, Unit: &p.unit, Out: &p.out}, nil
		}}},
		Cluster: func(s piper.NodeSettings) (piper.Border, error) {
			s.Transport = wire
			n, err := fencing.Open(config, s)
			if err != nil {
				return nil, err
			}
			return border.New(n), nil
		},
	}, piper.Node("n1"), piper.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	p.stop = stop
	go func() {
		p.ended <- pool.Run(ctx)
		_ = wire.Close()
	}()
	t.Cleanup(stop)
	return p
}

// Ping counts its calls.
func (p *process) Ping(budget int) (n int, err error) {
	for ; n < budget && !p.unit.MustYield(); n++ {
		p.last.Store(int64(time.Since(began)))
		p.calls.Add(1)
		<-time.After(pause)
	}
	return n, nil
}

// awaitCalls waits until the process makes calls, and fails the test if it takes too long.
func (p *process) awaitCalls(t *testing.T, limit time.Duration) {
	t.Helper()
	before := p.calls.Load()
	for end := time.Now().Add(limit); p.calls.Load() < before+3; <-time.After(pause) {
		select {
		case err := <-p.ended:
			t.Fatalf("the process has ended: %v", err)
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("the process has made no calls for %v", limit)
		}
	}
}

// end waits for the end of a process.
func (p *process) end(t *testing.T, limit time.Duration) error {
	t.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(limit):
		t.Fatalf("the process has not ended within %v", limit)
		return nil
	}
}

// TestLeaseOfANode cuts off a process from etcd, while a second process waits for the name of its node. The calls of the
// first process stop before etcd ends its lease, and the calls of the second process begin afterwards. The
// requests for leases have durations, and no time of day: the clocks of etcd and of the nodes may differ by hours.
func TestLeaseOfANode(t *testing.T) {
	t.Parallel() // it waits until leases end
	s, faults := startFaulty(t)
	type grant struct{ id, seconds int64 }
	var grants []grant
	var mu sync.Mutex
	around := unary(func(_ context.Context, _ string, request any, handle func() (any, error)) (any, error) {
		if r, ok := request.(*etcdserverpb.LeaseGrantRequest); ok {
			mu.Lock()
			grants = append(grants, grant{r.ID, r.TTL})
			mu.Unlock()
		}
		return handle()
	})
	faults.unary.Store(&around)
	client := (&cluster{server: s}).client(t)
	first := startProcess(t, s, time.Minute)
	first.awaitCalls(t, time.Minute)
	key, err := client.Get(t.Context(), fenceLease)
	if err != nil || len(key.Kvs) != 1 || key.Kvs[0].Lease == 0 {
		t.Fatalf("the lease in etcd is %v, %v", key, err)
	}
	lease, err := client.TimeToLive(t.Context(), clientv3.LeaseID(key.Kvs[0].Lease))
	if err != nil || time.Duration(lease.GrantedTTL)*time.Second != localLease {
		t.Fatalf("the lease of etcd is %+v, %v; want %v", lease, err, localLease)
	}
	second := startProcess(t, s, time.Minute)
	first.awaitCalls(t, time.Minute)
	<-time.After(localLease + time.Second) // the first process renews its lease
	first.awaitCalls(t, late)
	if n := second.calls.Load(); n > 0 {
		t.Fatalf("the second process has made %d calls while the first one has the lease", n)
	}
	deleted := client.Watch(t.Context(), fenceLease, clientv3.WithFilterPut(), clientv3.WithRev(key.Header.Revision+1))
	first.link.cut(true)
	cutAt := time.Since(began)
	select {
	case r := <-deleted:
		if r.Err() != nil || len(r.Events) == 0 {
			t.Fatalf("the watch has got %+v, %v", r, r.Err())
		}
	case <-time.After(time.Minute):
		t.Fatal("etcd has not ended the lease")
	}
	deletedAt, stopped := time.Since(began), first.calls.Load()
	lastCall := time.Duration(first.last.Load())
	t.Logf("after the cut the calls went on for %v, and etcd had the lease for %v", lastCall-cutAt, deletedAt-cutAt)
	if lastCall < cutAt || lastCall >= deletedAt-pause {
		t.Errorf("the last call of the first process began %v after the cut, and etcd has ended the lease after %v", lastCall-cutAt, deletedAt-cutAt)
	}
	second.awaitCalls(t, time.Minute)
	if n := first.calls.Load() - stopped; n > 0 {
		t.Errorf("the first process has made %d calls after the end of its lease", n)
	}
	first.link.cut(false)
	if err := first.end(t, time.Minute); !errors.Is(err, table.ErrSuperseded) {
		t.Errorf("the first process has ended with %v", err)
	}
	second.awaitCalls(t, late)
	second.stop()
	if err := second.end(t, time.Minute); err != nil {
		t.Errorf("the second process has ended with %v", err)
	}
	if key, err = client.Get(t.Context(), fenceLease); err != nil || len(key.Kvs) > 0 {
		t.Errorf("a process that has ended in order has left the lease %v, %v", key, err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, g := range grants {
		if g.id != 0 || time.Duration(g.seconds)*time.Second != localLease {
			t.Errorf("a process has requested the lease %+v", g)
		}
	}
}

// TestShortLossOfEtcd cuts off a process for less than retry.timeout. Its calls pause. They go on soon after the
// cut: the pauses between attempts to connect are short, also after a longer cut.
func TestShortLossOfEtcd(t *testing.T) {
	t.Parallel() // it waits until leases end
	p := startProcess(t, startServer(t), time.Minute)
	p.awaitCalls(t, time.Minute)
	for _, loss := range []time.Duration{localLease + 2*time.Second, 12 * time.Second} {
		p.link.cut(true)
		<-time.After(localLease + 100*time.Millisecond)
		before := p.calls.Load()
		<-time.After(loss - localLease)
		if n := p.calls.Load() - before; n > 0 {
			t.Errorf("the process has made %d calls without its lease", n)
		}
		p.link.cut(false)
		p.awaitCalls(t, late)
	}
	p.stop()
	if err := p.end(t, time.Minute); err != nil {
		t.Errorf("the process has ended with %v", err)
	}
}

// TestLongLossOfEtcd cuts off a process for longer than retry.timeout. It ends, and the next process of the node goes on.
func TestLongLossOfEtcd(t *testing.T) {
	t.Parallel() // it waits until leases end
	const retry = 2 * time.Second
	s := startServer(t)
	p := startProcess(t, s, retry)
	p.awaitCalls(t, time.Minute)
	p.link.cut(true)
	began := time.Now()
	err := p.end(t, time.Minute)
	if took := time.Since(began); !errors.Is(err, fencing.ErrFenced) || !strings.Contains(err.Error(), "node n1") || took < localLease*3/4+retry-pause || took > localLease+retry+2*late {
		t.Errorf("after %v the process has ended with %v", took, err)
	}
	startProcess(t, s, retry).awaitCalls(t, time.Minute)
}
