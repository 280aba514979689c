package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

// TestDepositIsWrittenThenBooked tests one handler without a topology: a recorder
// collects its messages.
func TestDepositIsWrittenThenBooked(t *testing.T) {
	disk := &memory{}
	accounts := Accounts{balances: map[string]int64{"ann": 1}, journal: disk}
	r := RecordAccounts()
	balance, err := accounts.ReceiveDeposit(Deposit{"ann", 4}, r.Sender())
	if want := (Balance{"ann", 5, true}); err != nil || balance != want {
		t.Errorf("replied %v, %v, want %v", balance, err, want)
	}
	if want := []Deposit{{"ann", 4}}; !slices.Equal(disk.deposits, want) {
		t.Errorf("wrote %v, want %v", disk.deposits, want)
	}
	if want := []Booked{{4}}; !slices.Equal(r.Booked, want) {
		t.Errorf("sent %v, want %v", r.Booked, want)
	}
}

func TestDepositThatCannotBeWrittenIsNotBooked(t *testing.T) {
	broken := errors.New("broken")
	accounts := Accounts{balances: map[string]int64{}, journal: &memory{err: broken}}
	r := RecordAccounts()
	if _, err := accounts.ReceiveDeposit(Deposit{"ann", 4}, r.Sender()); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if len(r.Booked) > 0 || accounts.ReceiveLookup(Lookup{"ann"}).Known {
		t.Error("the deposit was booked")
	}
}

// TestRequests runs the topology in one goroutine. An Ask steps it until there is a
// reply.
func TestRequests(t *testing.T) {
	topology := newTopology(t, &memory{})
	stepper := topology.Stepper(1)
	handler := newHandler(topology.Api())
	for _, c := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/accounts/ann", 404, "no such account"},
		{"POST", "/accounts/ann?amount=5", 200, `{"account":"ann","amount":5}`},
		{"POST", "/accounts/bob?amount=1", 200, `{"account":"bob","amount":1}`},
		{"POST", "/accounts/ann?amount=2", 200, `{"account":"ann","amount":7}`},
		{"GET", "/accounts/ann", 200, `{"account":"ann","amount":7}`},
		{"POST", "/accounts/ann", 400, "the name must"},
		{"POST", "/accounts/ann?amount=-5", 400, "the name must"},
		{"POST", "/accounts/" + strings.Repeat("a", 65) + "?amount=5", 400, "the name must"},
		{"DELETE", "/accounts/ann", 405, ""},
	} {
		w := request(t.Context(), handler, c.method, c.path)
		if w.Code != c.status || !strings.HasPrefix(w.Body.String(), c.body) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, w.Code, w.Body, c.status, c.body)
		}
	}
	topology.Api().Close()
	if err := stepper.Run(); err != nil {
		t.Fatal(err)
	}
	if got, want := *topology.Ledger(0), (Ledger{Deposits: 3, Sum: 8}); got != want {
		t.Errorf("the ledger has %+v, want %+v", got, want)
	}
	if w := request(t.Context(), handler, "GET", "/accounts/ann"); w.Code != 503 {
		t.Errorf("after the end: %d, want 503", w.Code)
	}
}

// TestTimeoutIs504AndFullIs503 uses a disk that hangs. Waiting requests are answered
// after two seconds. A request whose queue is full is answered at once. In a bubble of
// synctest the two seconds take no time.
func TestTimeoutIs504AndFullIs503(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &memory{hang: make(chan struct{})}
		topology := newTopology(t, disk)
		handler := newHandler(topology.Api())
		ran := make(chan error, 1)
		go func() { ran <- topology.Run(context.Background()) }()

		var waiting sync.WaitGroup
		late := make(chan int, 9)
		ask := func(method, path string) {
			waiting.Go(func() { late <- request(context.Background(), handler, method, path).Code })
		}
		ask("POST", "/accounts/ann?amount=5")
		synctest.Wait() // the deposit hangs in the handler
		for range 8 {
			ask("GET", "/accounts/ann")
		}
		synctest.Wait() // the queue of lookups is full
		start := time.Now()
		if w := request(t.Context(), handler, "GET", "/accounts/ann"); w.Code != 503 || time.Since(start) > 0 {
			t.Errorf("a ninth lookup: %d after %v, want 503 at once", w.Code, time.Since(start))
		}
		waiting.Wait()
		close(late)
		for status := range late {
			if status != 504 {
				t.Errorf("a waiting request got %d, want 504", status)
			}
		}

		close(disk.hang) // the deposit was accepted, so it is booked although its answer was too late
		topology.Api().Close()
		if err := <-ran; err != nil {
			t.Fatal(err)
		}
		if n := topology.Ledger(0).Deposits; n != 1 {
			t.Errorf("%d deposits booked, want 1", n)
		}
	})
}

// TestInterruptLosesNothing uses real workers and a real listener: an interrupt during a
// load loses no accepted request.
func TestInterruptLosesNothing(t *testing.T) {
	topology := newTopology(t, &memory{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()

	var clients sync.WaitGroup
	var answered, sum atomic.Int64
	for i := range 8 {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for n := 0; ; n++ {
				url := fmt.Sprintf("http://%v/accounts/%d?amount=%d", listener.Addr(), n%20, i+1)
				response, err := client.Post(url, "", nil)
				if err != nil {
					return // the server accepts no more requests
				}
				response.Body.Close()
				if response.StatusCode != http.StatusOK {
					t.Errorf("status %d", response.StatusCode)
					return
				}
				sum.Add(int64(i + 1))
				if answered.Add(1) == 400 {
					interrupt()
				}
			}
		})
	}
	if err := serve(ctx, listener, topology, untilInterrupted); err != nil {
		t.Fatal(err)
	}
	clients.Wait()
	want := Ledger{Deposits: int(answered.Load()), Sum: sum.Load()}
	if got := *topology.Ledger(0); got != want || want.Deposits < 400 {
		t.Errorf("the ledger has %+v, but %+v was answered", got, want)
	}
}

func TestJournalIsReplayed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	for range 2 {
		accounts, err := OpenAccounts(path, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"ann", "a b\n\"ü"} {
			if _, err := accounts.ReceiveDeposit(Deposit{name, 2}, RecordAccounts().Sender()); err != nil {
				t.Fatal(err)
			}
		}
		if err := accounts.Close(); err != nil {
			t.Fatal(err)
		}
	}
	appendText(t, path, `"ann" 10`) // the program died before the end of the line
	accounts, err := OpenAccounts(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer accounts.Close()
	for _, name := range []string{"ann", "a b\n\"ü"} {
		if got := accounts.ReceiveLookup(Lookup{name}); got.Amount != 4 {
			t.Errorf("%q has %d, want 4", name, got.Amount)
		}
	}

	appendText(t, path, "not a deposit\n")
	if _, err := OpenAccounts(path, false); err == nil || !strings.Contains(err.Error(), "byte") {
		t.Errorf("got %v, want the position of the error", err)
	}
}

func TestLoadReport(t *testing.T) {
	r := loadReport{took: time.Second, statuses: map[int]int{200: 99, 503: 1}}
	for i := range 100 {
		r.latencies = append(r.latencies, time.Duration(i+1)*time.Millisecond)
	}
	want := "100 requests in 1s: 100 requests/s\nstatus 200: 99\nstatus 503: 1\n" +
		"latency: half within 50ms, 90 % within 90ms, 99 % within 99ms, all within 100ms\n"
	if got := r.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// memory is a journal for tests. All instances share it.
type memory struct {
	mu       sync.Mutex
	deposits []Deposit
	err      error
	hang     chan struct{} // if not nil, Append waits until it is closed
}

func (m *memory) Append(d Deposit) error {
	if m.hang != nil {
		<-m.hang
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.deposits = append(m.deposits, d)
	}
	return m.err
}

func (m *memory) Close() error { return nil }

func newTopology(t *testing.T, disk journal) *Topology {
	t.Helper()
	topology, err := New(Processors{
		Accounts: func(topo.Instance) (*Accounts, error) {
			return &Accounts{balances: make(map[string]int64), journal: disk}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

func request(ctx context.Context, handler http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, path, nil))
	return w
}

func appendText(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := io.WriteString(file, text); err != nil {
		t.Fatal(err)
	}
}
