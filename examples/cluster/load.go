package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/topogen/topogen/runtime/topo"
)

const (
	nameCount = 1000 // different names
	perPing   = 64   // messages for each call of Ping
)

// Load is a source. It sends messages with random names as fast as the counters take them.
type Load struct {
	index  int
	left   int // messages that it will still send
	random *rand.Rand
	names  []string
	counts []int // sent, by number of the name
}

// newLoad makes a source that sends its share of all messages.
func newLoad(in topo.Instance, adds int) *Load {
	l := &Load{
		index: in.Index, left: adds / in.Number, random: rand.New(rand.NewPCG(uint64(in.Index), 0)),
		names: make([]string, nameCount), counts: make([]int, nameCount),
	}
	if in.Index < adds%in.Number {
		l.left++
	}
	for i := range l.names {
		l.names[i] = fmt.Sprint("name-", i)
	}
	return l
}

// Ping sends some messages. It is called again while the queues have room.
func (l *Load) Ping(out *LoadSender) error {
	for range min(perPing, l.left) {
		i := l.random.IntN(nameCount)
		l.counts[i]++
		l.left--
		if err := out.SendAdd(Add{Name: l.names[i], By: l.index, N: l.counts[i]}); err != nil {
			return err
		}
	}
	if l.left == 0 {
		return topo.Done
	}
	return nil
}

// Finish reports what was sent. It is called after the last Ping, also after an interrupt.
func (l *Load) Finish(out *LoadSender) error {
	counts := make(map[string]int)
	for i, n := range l.counts {
		if n > 0 {
			counts[l.names[i]] = n
		}
	}
	return out.SendSent(Sent{By: l.index, Counts: counts})
}
