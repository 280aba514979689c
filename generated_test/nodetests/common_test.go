package nodetests_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/runtime/transport"
)

const (
	domain   = "example.org"
	awaitMax = 2 * time.Minute // far more than anything takes on a busy computer
)

// nodeName is the name of node i.
func nodeName(i int) string { return fmt.Sprint("n", i+1) }

// output collects what a process prints.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// newPeers are three nodes with loopback addresses whose ports were free.
func newPeers(t *testing.T) map[string]string {
	t.Helper()
	peers := map[string]string{}
	for i, address := range loopback.Addresses(t, 3) {
		peers[nodeName(i)] = address
	}
	return peers
}

// joined returns a transport in memory, which ends with the test.
func joined(t *testing.T, memory *transport.Memory, name string) transport.Transport {
	t.Helper()
	own, err := memory.Join(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	return own
}

// eventually waits until a condition holds, or the test has failed.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(awaitMax); !holds(); <-look.C {
		if t.Failed() {
			t.FailNow()
		}
		if time.Now().After(end) {
			t.Fatal("the condition does not become true")
		}
	}
}
