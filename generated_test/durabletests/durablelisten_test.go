package durabletests_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/durablelisten"
	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

const token = "secret"

// listenStart runs a topology until the test or stop ends it.
func listenStart(t *testing.T, w *durablelisten.Worker, opts ...pool.Option) (topology *durablelisten.Topology, stop func()) {
	t.Helper()
	topology, err := durablelisten.New(durablelisten.Processors{Worker: func(topo.Instance) (*durablelisten.Worker, error) { return w, nil }}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- topology.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return topology, stop
}

// served waits until a server listens: messages can be sent before Run has opened it.
func served(t *testing.T, address string) {
	t.Helper()
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(err)
		}
	}
}

// TestDurableListenOtherProcessWorks lets a topology in another process, which has no store of its own, do the
// jobs: the topology with the store has handed a job over when it stopped.
func TestDurableListenOtherProcessWorks(t *testing.T) {
	t.Setenv("TOPOGEN_DURABLE_TOKEN", token)
	address := loopback.Addresses(t, 1)[0]
	held := make(chan bool)
	defer close(held) // so that the first topology need not wait for the drain timeout
	first, _ := listenStart(t, &durablelisten.Worker{Name: "first", Held: held}, pool.DurableStore(t.TempDir()), pool.DurableListen(address))
	if err := first.Api().SendJob(t.Context(), durablelisten.Job{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	served(t, address)
	second, _ := listenStart(t, &durablelisten.Worker{Name: "second"}, pool.DurableStore("http://"+address))
	// The jobs go to the connected workers in turns. The first worker holds its jobs.
	by := make(chan string, 1000)
	for i := range cap(by) {
		h, err := second.Api().StartJob(t.Context(), durablelisten.Job{Name: fmt.Sprint("job", i)})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			done, _ := h.Wait(t.Context())
			by <- done.By
		}()
		select {
		case name := <-by:
			if name != "second" {
				t.Errorf("a job was done by %q", name)
			}
			return
		case <-time.After(20 * time.Millisecond): // the second worker may not be connected yet
		}
	}
	t.Error("the second process has done no job")
}

// TestDurableListenForeignProgram starts a job as a program in another language does.
func TestDurableListenForeignProgram(t *testing.T) {
	t.Setenv("TOPOGEN_DURABLE_TOKEN", token)
	address := loopback.Addresses(t, 1)[0]
	topology, _ := listenStart(t, &durablelisten.Worker{Name: "go"}, pool.DurableStore(t.TempDir()), pool.DurableListen(address))
	if _, err := topology.Api().AskJob(t.Context(), durablelisten.Job{Name: "first"}); err != nil { // the server runs when the job is done
		t.Fatal(err)
	}
	served(t, address)
	stranger, err := client.New("http://"+address, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if r, err := stranger.Do(t.Context(), protocol.PromiseGet{ID: "desk:api.worker.Job:first"}); err != nil || r.Status != protocol.Unauthorized {
		t.Errorf("without a token: %v, %v", r, err)
	}
	c, err := client.New("http://"+address, client.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	topology.Api().Close() // a store that programs outside use stays open
	data := base64.StdEncoding.EncodeToString([]byte(`{"func":"api.worker.Job","args":[{"Name":"x"}],"version":1}`))
	id := "desk:api.worker.Job:x"
	create := protocol.PromiseCreate{ID: id, TimeoutAt: time.Now().Add(time.Hour).UnixMilli(), Param: protocol.Value{Data: &data}, Tags: map[string]string{protocol.TagTarget: "poll://any@desk"}}
	if r, err := c.Do(t.Context(), create); err != nil || r.Status != protocol.OK {
		t.Fatalf("promise.create: %v, %v", r, err)
	}
	h, err := topology.Api().FindJob(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := h.Wait(t.Context()); err != nil || done.By != "go" {
		t.Errorf("the result is %v, %v", done, err)
	}
	r, err := c.Do(t.Context(), protocol.PromiseGet{ID: id})
	if err != nil || r.Promise == nil || r.Promise.Value.Data == nil {
		t.Fatalf("promise.get: %v, %v", r, err)
	}
	if value, _ := base64.StdEncoding.DecodeString(*r.Promise.Value.Data); string(value) != `{"By":"go"}` {
		t.Errorf("the value is %s", value)
	}
}

// TestDurableListenWrongSettings checks that settings which contradict each other are refused.
func TestDurableListenWrongSettings(t *testing.T) {
	if _, err := durablelisten.New(durablelisten.Processors{}, pool.DurableStore("http://127.0.0.1:1"), pool.DurableListen("127.0.0.1:2")); err == nil || !strings.Contains(err.Error(), "listen must not be set") {
		t.Errorf("listen with the store of another process: %v", err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	topology, err := durablelisten.New(durablelisten.Processors{}, pool.DurableStore(t.TempDir()), pool.DurableListen(taken.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	if err := topology.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "listening on") {
		t.Errorf("an address that is in use: %v", err)
	}
}

// TestDurableListenReportsItsServer lets a server refuse a topology. The log says so, because sends only
// wait.
func TestDurableListenReportsItsServer(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refusing.Close()
	r, w := io.Pipe()
	defer r.Close()
	listenStart(t, &durablelisten.Worker{}, pool.DurableStore(refusing.URL), pool.Logger(slog.New(slog.NewTextHandler(w, nil))))
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if text := lines.Text(); strings.Contains(text, "not connected") && strings.Contains(text, refusing.URL) && strings.Contains(text, "401") {
			go func() { _, _ = io.Copy(io.Discard, r) }()
			return
		}
	}
	t.Error("the log has ended")
}
