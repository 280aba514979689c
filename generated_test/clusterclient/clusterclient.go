// Package clusterclient has clients outside a cluster. The instances write what they handle
// to files, so the test can compare the effects with the counters of the clients.
package clusterclient

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

type (
	// Add is message N of a client.
	Add struct {
		Client string
		N      int
		Name   string
	}
	// Query asks for the number of messages with a name.
	Query struct{ Name string }
	// Total is the reply to a query.
	Total struct {
		Name    string
		N, Node int
	}
	// Order is message N of a client. Its handler waits until a file exists.
	Order struct {
		Client string
		N      int
		Until  string
	}
	// Receipt is the reply to an order.
	Receipt struct{ N int }
	// Note has no reply.
	Note struct {
		Client string
		N      int
	}
)

// VariableDir names the folder for the files.
const VariableDir = "CLUSTERCLIENT_DIR"

// record is a file with a line for each handled message.
type record struct{ file *os.File }

func newRecord(in topo.Instance) (*record, error) {
	name := fmt.Sprintf("%s-%d-%s-%d", in.Processor, in.Index, os.Getenv("TOPOGEN_NODE"), os.Getpid())
	file, err := os.Create(filepath.Join(os.Getenv(VariableDir), name))
	if err != nil {
		return nil, err
	}
	return &record{file}, nil
}

func (r *record) add(client string, n int) error {
	_, err := fmt.Fprintln(r.file, client, n)
	return err
}

// Counter counts messages by name.
type Counter struct {
	adds  *record
	index int
	names map[string]int
}

// NewCounter makes an instance with its file.
func NewCounter(in topo.Instance) (*Counter, error) {
	adds, err := newRecord(in)
	return &Counter{adds, in.Index, map[string]int{}}, err
}

// ReceiveAdd counts a message.
func (c *Counter) ReceiveAdd(m Add) error {
	c.names[m.Name]++
	return c.adds.add(m.Client, m.N)
}

// ReceiveQuery returns a count.
func (c *Counter) ReceiveQuery(m Query) Total { return Total{m.Name, c.names[m.Name], c.index} }

// Desk handles orders and notes.
type Desk struct{ orders *record }

// NewDesk makes an instance with its file.
func NewDesk(in topo.Instance) (*Desk, error) {
	orders, err := newRecord(in)
	return &Desk{orders}, err
}

// ReceiveOrder waits for a file, and gives a receipt.
func (d *Desk) ReceiveOrder(m Order) (Receipt, error) {
	for m.Until != "" {
		if _, err := os.Stat(m.Until); err == nil {
			break
		}
		<-time.After(time.Millisecond)
	}
	return Receipt{m.N}, d.orders.add(m.Client, m.N)
}

// ReceiveNote records a note.
func (d *Desk) ReceiveNote(m Note) error { return d.orders.add(m.Client, m.N) }
