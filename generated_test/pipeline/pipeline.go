// Package pipeline is a short chain of processors, for benchmarks.
package pipeline

import "github.com/topogen/topogen/runtime/topo"

type First int64

type Second int64

type A struct{ Left int64 }

func (a *A) Ping(out *ASender) error {
	if a.Left == 0 {
		return topo.Done
	}
	a.Left--
	return out.SendFirst(First(a.Left))
}

type B struct{}

func (b *B) ReceiveFirst(m First, out *BSender) error {
	out.SendSecond(Second(m))
	return nil
}

type C struct{ Sum, Count int64 }

func (c *C) ReceiveSecond(m Second) error {
	c.Sum += int64(m)
	c.Count++
	return nil
}
