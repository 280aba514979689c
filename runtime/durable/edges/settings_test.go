package edges

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/effects"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/local"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/piper"
)

// TestSettingsReachTheWorker sets each setting of durable edges, and observes what the worker, the
// store or the server does.
func TestSettingsReachTheWorker(t *testing.T) {
	effects.Check(t, effects.Table{
		"Config.Topology": targetIsTheGroup,
		"Config.Lease":    leaseIsAcquired,
		"Config.Store": func(t *testing.T) {
			dir := memdir.Quick(t)
			storeOpens(t, Config{Store: dir}, piper.DurableSettings{}, dir)
		},
		"Config.Replicate": replicaOpens,
		"Config.Listen":    func(t *testing.T) { listens(t, Config{Listen: "h:1"}, piper.DurableSettings{}, "h:1", "") },
		"Config.Serve":     func(t *testing.T) { listens(t, Config{Listen: "h:1"}, piper.DurableSettings{}, "h:1", "") },
		"Config.TLSCert":   serverIsSecured,
		"Config.TLSKey":    serverIsSecured,
		"Config.TLSCA":     serverIsSecured,
		"Config.Insecure":  serverIsSecured,
		"Config.Edges":     func(t *testing.T) { attempts(t, durable.Retry{}, 0) },

		"Edge.Index":    timeoutIsOnDisk,
		"Edge.Receiver": effects.By("generated_test/durabletests TestDurableRunsOnADisk"),
		"Edge.Function": func(t *testing.T) { attempts(t, durable.Retry{}, 0) },
		"Edge.Timeout":  timeoutIsOnDisk,
		"Edge.Retry":    func(t *testing.T) { attempts(t, durable.Retry{Attempts: 2}, 0, 0) },
		"Edge.Limit":    func(t *testing.T) { begin(t, durable.Limit{Concurrency: 1}, 1, 1) },
		"Edge.Handler":  effects.By("generated_test/durabletests TestDurableFinishes"),

		"Retry.Attempts": func(t *testing.T) { attempts(t, durable.Retry{Attempts: 3}, 0, 0, 0) },
		"Retry.Delay":    func(t *testing.T) { attempts(t, durable.Retry{Attempts: 3, Delay: 10 * time.Second}, 0, 10, 30) },
		"Retry.MaxDelay": func(t *testing.T) {
			attempts(t, durable.Retry{Attempts: 3, Delay: 10 * time.Second, MaxDelay: 15 * time.Second}, 0, 10, 25)
		},
		"Retry.Jitter": func(t *testing.T) {
			attempts(t, durable.Retry{Attempts: 3, Delay: 10 * time.Second, Jitter: 0.4}, 0, 8, 24)
		},

		"Limit.Concurrency": func(t *testing.T) { begin(t, durable.Limit{Concurrency: 2}, 2, 2) },
		"Limit.Rate":        func(t *testing.T) { begin(t, durable.Limit{Rate: 2}, 2, 4) },
		"Limit.Period":      func(t *testing.T) { begin(t, durable.Limit{Rate: 2, Period: time.Minute}, 2, 2) },
		"Limit.Key": func(t *testing.T) {
			begin(t, LimitBy(durable.Limit{Concurrency: 1}, func(m *string) string { return *m }), 2, 2)
		},

		"DurableSettings.Store": func(t *testing.T) {
			dir := memdir.Quick(t)
			storeOpens(t, Config{Store: "missing/file"}, piper.DurableSettings{Store: dir}, dir)
		},
		"DurableSettings.Memory":       effects.By("generated_test/durabletests TestDurableCrashes"),
		"DurableSettings.Listen":       func(t *testing.T) { listens(t, Config{Listen: "h:1"}, piper.DurableSettings{Listen: "h:2"}, "h:2", "") },
		"DurableSettings.Logger":       effects.By("generated_test/durabletests TestDurableFaultsStepIgnoresContext"),
		"DurableSettings.Node":         effects.By("generated_test/durabletests TestClusterDurableFolder"),
		"DurableSettings.Client":       effects.By("generated_test/durabletests TestClusterDurableClient"),
		"DurableSettings.DrainTimeout": effects.By("generated_test/durabletests TestDurableFaultsStepIgnoresContext"),

		storeVariable: func(t *testing.T) {
			dir := memdir.Quick(t)
			t.Setenv(storeVariable, dir)
			storeOpens(t, Config{Store: "missing/file"}, piper.DurableSettings{}, dir)
		},
		listenVariable: func(t *testing.T) {
			t.Setenv(listenVariable, "h:3")
			listens(t, Config{Listen: "h:1"}, piper.DurableSettings{}, "h:3", "")
		},
		tokenVariable: func(t *testing.T) {
			t.Setenv(tokenVariable, "secret")
			listens(t, Config{Listen: "h:1"}, piper.DurableSettings{}, "h:1", "secret")
			tokenIsSent(t)
		},
		replayVariable: effects.By("generated_test/durabletests TestDurableReplays"),
	}, Config{}, Edge{}, durable.Retry{}, durable.Limit{}, piper.DurableSettings{})
}

// bench runs one durable edge in virtual time, with the configuration of the carrier's worker.
type bench struct {
	carrier  *Carrier
	server   *local.Server
	worker   *durable.Worker
	now      time.Time
	acquired []protocol.TaskAcquire
	began    []*durable.Activation // without run
}

// Do observes the operations of the worker.
func (b *bench) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	if acquire, ok := op.(protocol.TaskAcquire); ok {
		b.acquired = append(b.acquired, acquire)
	}
	return b.server.Do(ctx, op)
}

func (b *bench) Connect(group, pid string) (protocol.Connection, error) {
	return b.server.Connect(group, pid)
}

// newBench makes the worker. If run is nil, executions begin and do not end.
func newBench(t *testing.T, edge Edge, run durable.Handler) *bench {
	t.Helper()
	edge.Index, edge.Function = 3, "f"
	d, err := Open(Config{Topology: "shop", Store: "unused", Lease: 7 * time.Second, Edges: []Edge{edge}}, piper.DurableSettings{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{carrier: d.(*Carrier), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return b.now }
	if b.server, err = local.New(core.Config{}, clock); err != nil {
		t.Fatal(err)
	}
	b.carrier.source.open = func() (opened, error) { return opened{Backend: b}, nil }
	c := b.carrier.workerConfig("w")
	c.Manual, c.Now, c.Random, c.Chance = true, clock, func() uint64 { return uint64(b.now.UnixNano()) }, func() float64 { return 0.5 }
	if c.Functions[0].Dispatch = func(a *durable.Activation) { b.began = append(b.began, a) }; run != nil {
		c.Functions[0].Dispatch, c.Functions[0].Run = nil, run
	}
	if b.worker, err = durable.NewWorker(c); err != nil {
		t.Fatal(err)
	}
	b.carrier.worker = b.worker
	return b
}

// send starts executions.
func (b *bench) send(t *testing.T, messages ...string) {
	t.Helper()
	for i, m := range messages {
		edge := b.carrier.byIndex[3]
		if _, err := start[any](t.Context(), b.carrier, edge, m, edge.call("shop", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	b.step()
}

// step does what is due.
func (b *bench) step() {
	for b.worker.Step() || b.server.Step() {
	}
}

// finish lets the time pass until nothing is due.
func (b *bench) finish() {
	for range 100 {
		at, ok := b.server.Next()
		if next, due := b.worker.Next(); due && (!ok || next.Before(at)) {
			at, ok = next, true
		}
		if !ok {
			return
		}
		b.now = at
		b.step()
	}
}

// attempts wants the calls of a handler that fails at these seconds.
func attempts(t *testing.T, r durable.Retry, want ...int) {
	t.Helper()
	var b *bench
	var began time.Time
	var got []int
	b = newBench(t, Edge{Retry: r, Timeout: time.Hour}, func(durable.Context, json.RawMessage) (any, error) {
		got = append(got, int(b.now.Sub(began)/time.Second))
		return nil, errors.New("failed")
	})
	began = b.now
	b.send(t, "a")
	b.finish()
	if !slices.Equal(got, want) {
		t.Errorf("the attempts are after %v seconds, want %v", got, want)
	}
}

// begin sends five messages, and wants so many executions to begin at once and after two seconds.
func begin(t *testing.T, l durable.Limit, atOnce, later int) {
	t.Helper()
	b := newBench(t, Edge{Limit: l, Timeout: time.Hour}, nil)
	b.send(t, "a", "b", "a", "b", "a")
	if len(b.began) != atOnce {
		t.Errorf("%d executions begin at once, want %d", len(b.began), atOnce)
	}
	for range 2 {
		b.now = b.now.Add(500 * time.Millisecond)
		b.step()
	}
	if len(b.began) != later {
		t.Errorf("%d executions begin within a second, want %d", len(b.began), later)
	}
}

func leaseIsAcquired(t *testing.T) {
	b := newBench(t, Edge{Timeout: time.Hour}, nil)
	b.send(t, "a")
	if len(b.acquired) != 1 || b.acquired[0].TTL != 7000 {
		t.Errorf("the worker acquires %+v, want a lease of 7s", b.acquired)
	}
}

// promise is the promise of the first message.
func (b *bench) promise(t *testing.T) *protocol.Promise {
	t.Helper()
	r, err := b.server.Do(t.Context(), protocol.PromiseGet{ID: "shop:f:0"})
	if err != nil || r.Promise == nil {
		t.Fatal(r, err)
	}
	return r.Promise
}

func timeoutIsOnDisk(t *testing.T) {
	b := newBench(t, Edge{Timeout: time.Minute}, nil)
	b.send(t, "a")
	if p := b.promise(t); p.TimeoutAt != b.now.Add(time.Minute).UnixMilli() {
		t.Errorf("the timeout is at %d, sent at %d", p.TimeoutAt, b.now.UnixMilli())
	}
}

func targetIsTheGroup(t *testing.T) {
	b := newBench(t, Edge{Timeout: time.Hour}, nil)
	b.send(t, "a")
	if p := b.promise(t); p.Tags[protocol.TagTarget] != "poll://any@shop" {
		t.Errorf("the tags are %v", p.Tags)
	}
}

// storeOpens wants the store in the folder of the settings.
func storeOpens(t *testing.T, c Config, s piper.DurableSettings, dir string) {
	t.Helper()
	s.Logger = slog.New(slog.DiscardHandler)
	d, err := Open(c, s)
	if err != nil {
		t.Fatal(err)
	}
	o, err := d.(*Carrier).source.open()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.close(t.Context()); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) == 0 {
		t.Errorf("the folder has no store: %v, %v", files, err)
	}
}

// errOpened ends what a test needs to observe no further.
var errOpened = errors.New("opened")

func replicaOpens(t *testing.T) {
	d, err := Open(Config{Replicate: func(*slog.Logger) (Replica, error) { return nil, errOpened }}, piper.DurableSettings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.(*Carrier).source.open(); !errors.Is(err, errOpened) {
		t.Errorf("the store opens with %v", err)
	}
}

// listens wants the server to get the address, the token, and the settings for TLS.
func listens(t *testing.T, c Config, s piper.DurableSettings, address, token string) {
	t.Helper()
	var got string
	files, insecure := c.Files(), c.Insecure
	c.Serve = func(_ protocol.Backend, c *Config, token string, _ *slog.Logger) (Listener, error) {
		got = c.Listen + " " + token
		if c.Files() != files || c.Insecure != insecure {
			t.Errorf("the server gets %+v and insecure: %v, want %+v and %v", c.Files(), c.Insecure, files, insecure)
		}
		return nil, errOpened
	}
	d, err := Open(c, s)
	if err != nil {
		t.Fatal(err)
	}
	e := d.(*Carrier)
	e.source.open = func() (opened, error) { return opened{}, nil }
	if err := e.begin(nil); !errors.Is(err, errOpened) || got != address+" "+token {
		t.Errorf("the server gets %q, want %q (%v)", got, address+" "+token, err)
	}
}

// serverIsSecured passes the settings of connections to the server, whose tests observe the rest.
func serverIsSecured(t *testing.T) {
	listens(t, Config{Listen: "h:1", TLSCert: "x", TLSKey: "y", TLSCA: "z", Insecure: true}, piper.DurableSettings{}, "h:1", "")
	effects.By("runtime/durable/edges/serve TestSettingsReachTheServer")(t)
}

// tokenIsSent wants a client of the server of another process to show the token of the environment.
func tokenIsSent(t *testing.T) {
	shown := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	d, err := Open(Config{Store: server.URL}, piper.DurableSettings{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	o, err := d.(*Carrier).source.open()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = o.Do(t.Context(), protocol.PromiseGet{ID: "a"}) // is refused
	if got := <-shown; got != "Bearer secret" {
		t.Errorf("the server gets %q", got)
	}
	if err := o.close(t.Context()); err != nil {
		t.Error(err)
	}
}
