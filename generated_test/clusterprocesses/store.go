package clusterprocesses

import (
	"bufio"
	"fmt"
	"net"
	"os"

	"github.com/topogen/topogen/runtime/topo"
)

// VariableStore names the variable with the address of a store outside of the cluster. Workers count items by key in it.
const VariableStore = "CLUSTERPROCESSES_STORE"

// storeEvery is a number of items. A worker counts the last of so many items in the store.
const storeEvery = 64

// counters are the counters of a worker in memory. The store has a copy of them. A process that was replaced does not
// read the store again, so its counters are old.
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
