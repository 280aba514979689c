package cluster

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkStep measures a step in which nothing has happened, on a node with many others.
func BenchmarkStep(b *testing.B) {
	for _, peers := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(peers), func(b *testing.B) {
			names := []string{"n0"}
			for i := range peers {
				names = append(names, fmt.Sprintf("n%d", i+1))
			}
			n := newPhaseNodes(nil, names...)
			n.start("n0")
			c := n.cores["n0"]
			c.emit = func(string, []byte) {}
			c.membersChanged()
			now := time.Second
			for b.Loop() {
				now += time.Microsecond
				c.step(now, &happened{})
				c.next()
			}
		})
	}
}
