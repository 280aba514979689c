package member

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/transport"
)

// cluster runs the cores of runtime/member in virtual time.
type cluster struct {
	rng    *rand.Rand
	now    time.Duration
	net    *transport.Network[[]byte]
	nodes  []*node
	record *record
}

type node struct {
	core   *member.Core // nil: stopped
	paused bool
	queue  []packet
}

type packet struct {
	from    string
	payload []byte
}

func nameOf(node int) string { return "n" + strconv.Itoa(node) }

func numberOf(name string) int {
	n, err := strconv.Atoi(name[1:])
	if err != nil {
		panic(err) // names are from nameOf
	}
	return n
}

// Topogen runs runtime/member with a config under a load.
func Topogen(l Load, config member.Config) (Result, error) {
	c := &cluster{rng: rand.New(rand.NewPCG(l.Seed, 1)), record: newRecord(l)}
	c.net = transport.NewNetwork[[]byte](rand.New(rand.NewPCG(l.Seed, 2)), transport.Faults{
		Loss: l.Loss, DelayMin: int64(delayMin), DelayMax: int64(delayMax),
	})
	first := map[string]string{nameOf(0): "", nameOf(1): "", nameOf(2): ""}
	for i := range l.Nodes {
		core, err := member.NewCore(member.Node{Name: nameOf(i), Boot: 1}, first, config, rand.New(rand.NewPCG(l.Seed, uint64(10+i))))
		if err != nil {
			return Result{}, fmt.Errorf("node %d: %w", i, err)
		}
		c.nodes = append(c.nodes, &node{core: core})
	}
	acts := l.acts()
	for end := l.Settle + l.Run; c.now < end; {
		next := end
		if len(acts) > 0 {
			next = min(next, acts[0].at)
		}
		for i := range c.nodes {
			if n := c.nodes[i]; n.core != nil && !n.paused {
				next = min(next, n.core.Next())
			}
		}
		if at, ok := c.net.Next(); ok {
			next = min(next, time.Duration(at))
		}
		c.now = max(c.now, next)
		c.deliver()
		for i := range c.nodes {
			c.run(i, false)
		}
		for len(acts) > 0 && acts[0].at <= c.now {
			c.act(acts[0])
			acts = acts[1:]
		}
	}
	return c.record.end(), nil
}

func (c *cluster) act(a act) {
	n := c.nodes[a.node]
	switch a.kind {
	case pause:
		n.paused = true
		c.record.pause(a.node)
	case resume:
		n.paused = false
		c.run(a.node, true)
	case stop:
		n.core = nil
		c.record.stop(c.now, a.node)
	}
}

func (c *cluster) deliver() {
	for {
		from, to, payload, ok := c.net.Deliver(int64(c.now))
		if !ok {
			return
		}
		c.nodes[to].queue = append(c.nodes[to].queue, packet{nameOf(from), payload})
		c.run(to, false)
	}
}

// run lets a node handle its messages and its clock. After a pause, the order of the two is
// random.
func (c *cluster) run(i int, afterPause bool) {
	n := c.nodes[i]
	if n.core == nil || n.paused {
		return
	}
	if afterPause && c.rng.IntN(2) == 0 {
		n.core.Tick(c.now)
	}
	for _, p := range n.queue {
		if err := n.core.Step(c.now, p.from, p.payload); err != nil {
			panic(err) // a core cannot read the message of another one
		}
	}
	n.queue = nil
	if c.now >= n.core.Next() {
		n.core.Tick(c.now)
	}
	messages, events := n.core.Take()
	for _, e := range events {
		if e.Kind == member.EventDead && e.Member.Boot > 0 {
			c.record.dead(c.now, i, numberOf(e.Member.Name))
		}
	}
	for _, m := range messages {
		if c.now >= c.record.load.Settle {
			c.record.packets++
		}
		c.net.Send(int64(c.now), i, numberOf(m.To), m.Payload)
	}
}
