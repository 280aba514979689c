package main

import "github.com/topogen/topogen/runtime/topo"

// Counter counts the names whose hash selects it. All messages with one name come to the
// same counter, from all nodes, so the counts need no lock and are nowhere else.
type Counter struct {
	index   int
	names   map[string]*count
	counted int
	wrong   int
}

// count is the count of a name.
type count struct {
	total int
	last  map[int]int // by source: N of its last message
}

func newCounter(in topo.Instance) *Counter {
	return &Counter{index: in.Index, names: make(map[string]*count)}
}

// ReceiveAdd counts a message. The messages of one source must come in order: each N is
// that of the last message plus one.
func (c *Counter) ReceiveAdd(m *Add) {
	n := c.names[m.Name]
	if n == nil {
		n = &count{last: make(map[int]int)}
		c.names[m.Name] = n
	}
	n.total++
	c.counted++
	if m.N != n.last[m.By]+1 {
		c.wrong++
	}
	n.last[m.By] = m.N
}

// ReceiveTick reports the progress.
func (c *Counter) ReceiveTick(_ topo.Tick, out *CounterSender) {
	out.SendProgress(Progress{c.index, c.counted})
}

// Finish reports all counts. It is called after the last message of all sources on all nodes.
func (c *Counter) Finish(out *CounterSender) {
	t := Total{Counter: c.index, Counts: make(map[string]int, len(c.names)), Wrong: c.wrong}
	for name, n := range c.names {
		t.Counts[name] = n.total
	}
	out.SendTotal(t)
}
