package clusterprocesses

import (
	"bufio"
	"fmt"
	"net"
	"os"

	"github.com/topogen/topogen/runtime/topo"
)

// VariableStore is the address of a store outside of the cluster, in which workers count their items by key.
const VariableStore = "CLUSTERPROCESSES_STORE"

// storeEvery is how many items a worker handles for each one that it counts in the store.
const storeEvery = 64

// counters are the counters of a worker. The worker keeps them in memory, and the store has a copy. So a
// process that was replaced has old numbers.
type counters struct {
	in    topo.Instance
	conn  net.Conn
	reply *bufio.Reader
	byKey map[string]int
	items int
}

// newCounters connects a worker with the store. It returns nil if there is none.
func newCounters(in topo.Instance) (*counters, error) {
	address := os.Getenv(VariableStore)
	if address == "" {
		return nil, nil
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &counters{in: in, conn: conn, reply: bufio.NewReader(conn), byKey: map[string]int{}}, nil
}

// add counts an item. Each request has the fencing token, also the first one, which reads the counter: from then on
// the store refuses what a former process writes.
func (c *counters) add(key string) (err error) {
	if c.items++; c.items%storeEvery != 0 {
		return nil
	}
	n, known := c.byKey[key]
	if !known {
		if n, err = c.call("read", key, 0); err != nil {
			return err
		}
	}
	_, err = c.call("write", key, n+1)
	c.byKey[key] = n + 1
	return err
}

// call sends a request, and returns the counter in the reply. A worker whose request is refused is that of a
// process that was replaced. It goes on, and must not change the store.
func (c *counters) call(what, key string, n int) (value int, err error) {
	if _, err = fmt.Fprintln(c.conn, what, os.Getpid(), c.in.Index, c.in.FencingToken(), key, n); err != nil {
		return 0, err
	}
	_, err = fmt.Fscanln(c.reply, &value)
	return value, err
}
