package peers

import (
	"runtime"
	"sync"

	"github.com/puzpuzpuz/xsync/v4"
	"github.com/topogen/topogen/runtime/queue"
)

// Lane is a queue with its two ends: Send puts n messages, Receive takes n. The two may
// run on different goroutines.
type Lane struct{ Send, Receive func(n int) }

// backoff replaces blocking: try again a few times, then yield to other goroutines.
type backoff int

func (b *backoff) wait() {
	if *b++; *b > 32 {
		runtime.Gosched()
	}
}

// attempts makes a lane of operations that may fail.
func attempts(push func(uint64) bool, pop func() (uint64, bool)) Lane {
	return Lane{
		Send: func(n int) {
			for i := range n {
				for wait := backoff(0); !push(uint64(i)); {
					wait.wait()
				}
			}
		},
		Receive: func(n int) {
			for range n {
				for wait := backoff(0); ; wait.wait() {
					if _, ok := pop(); ok {
						break
					}
				}
			}
		},
	}
}

// ChannelLane is a buffered channel.
func ChannelLane() Lane {
	c := make(chan uint64, capacity)
	return Lane{
		Send: func(n int) {
			for i := range n {
				c <- uint64(i)
			}
		},
		Receive: func(n int) {
			for range n {
				<-c
			}
		},
	}
}

// XsyncMPMC is xsync's queue for many producers and many consumers.
func XsyncMPMC() Lane {
	q := xsync.NewMPMCQueue[uint64](capacity)
	return attempts(q.TryEnqueue, q.TryDequeue)
}

// XsyncSPSC is xsync's queue for one producer and one consumer.
func XsyncSPSC() Lane {
	q := xsync.NewSPSCQueue[uint64](capacity)
	return attempts(q.TryEnqueue, q.TryDequeue)
}

// RingLane is queue.Ring.
func RingLane() Lane {
	q := queue.NewRing[uint64](capacity)
	return attempts(q.TryPush, q.TryPop)
}

// pushes makes a lane of a queue that is never full.
func pushes(push func(uint64), pop func() (uint64, bool)) Lane {
	return attempts(func(v uint64) bool { push(v); return true }, pop)
}

// LockFreeLane is queue.LockFree.
func LockFreeLane() Lane {
	q := new(queue.LockFree[uint64])
	return pushes(q.Push, q.Pop)
}

// MutexLane is a slice behind a mutex.
func MutexLane() Lane {
	q := new(locked)
	return pushes(q.push, q.pop)
}

// NodeListLane is the linked list from which LockFree was developed, with its error
// corrected.
func NodeListLane() Lane {
	q := newNodes()
	return pushes(q.push, q.pop)
}

type deaf struct{}

func (deaf) Touched(*queue.Head) bool { return true }
func (deaf) Filled(*queue.Head)       {}
func (deaf) Overfull(*queue.Head)     {}

// EdgeLane is queue.Edge, published every publish messages and at the end.
func EdgeLane(publish int) Lane {
	q := new(queue.Edge[uint64])
	queue.Init(q, 0, capacity, deaf{})
	return Lane{
		Send: func(n int) {
			for i := range n {
				queue.Put(q, uint64(i))
				if i%publish != publish-1 {
					continue
				}
				q.Head.Publish(false)
				for wait := backoff(0); !q.Head.Room(); {
					wait.wait()
				}
			}
			q.Head.Publish(false)
		},
		Receive: func(n int) {
			wait := backoff(0)
			for n > 0 {
				batch := queue.Peek(q, n)
				if len(batch) == 0 {
					wait.wait()
					continue
				}
				wait = 0
				n -= len(batch)
				q.Head.Release(len(batch))
			}
		},
	}
}

// LatestLane is queue.Latest. No message may be lost here, so Receive runs before the
// queue is full.
func LatestLane() Lane {
	q := new(queue.Latest[uint64])
	queue.Init(q, 0, capacity, deaf{})
	return Lane{
		Send: func(n int) {
			for i := range n {
				q.Put(uint64(i), uint64(i))
			}
			q.Head.Publish(false)
		},
		Receive: func(n int) {
			for range n {
				q.Pop()
			}
		},
	}
}

// Across sends n messages through a lane from one goroutine to another.
func Across(l Lane, n int) {
	var both sync.WaitGroup
	both.Go(func() { l.Send(n) })
	both.Go(func() { l.Receive(n) })
	both.Wait()
}

// Crowd sends n messages through one queue, from several goroutines to as many others.
func Crowd(l Lane, sides, n int) {
	var all sync.WaitGroup
	for range sides {
		all.Go(func() { l.Send(n / sides) })
		all.Go(func() { l.Receive(n / sides) })
	}
	all.Wait()
}

// EdgesTwoByTwo sends n messages from two goroutines to two, with an edge for each pair,
// as in a topology.
func EdgesTwoByTwo(publish, n int) {
	var edges [2][2]*queue.Edge[uint64]
	for from := range edges {
		for to := range edges[from] {
			edges[from][to] = new(queue.Edge[uint64])
			queue.Init(edges[from][to], 0, capacity, deaf{})
		}
	}
	each := n / 4
	var all sync.WaitGroup
	for side := range edges {
		all.Go(func() { edgeSends(edges[side][:], publish, each) })
		all.Go(func() { edgeReceives([]*queue.Edge[uint64]{edges[0][side], edges[1][side]}, 2*each) })
	}
	all.Wait()
}

// edgeSends sends each messages to each of the edges in turn.
func edgeSends(edges []*queue.Edge[uint64], publish, each int) {
	for i := range each {
		for _, q := range edges {
			queue.Put(q, uint64(i))
		}
		if i%publish != publish-1 && i != each-1 {
			continue
		}
		for _, q := range edges {
			q.Head.Publish(false)
		}
		for _, q := range edges {
			for wait := backoff(0); !q.Head.Room(); {
				wait.wait()
			}
		}
	}
}

// edgeReceives takes n messages from any of the edges.
func edgeReceives(edges []*queue.Edge[uint64], n int) {
	for wait := backoff(0); n > 0; {
		took := 0
		for _, q := range edges {
			batch := queue.Peek(q, n)
			q.Head.Release(len(batch))
			took += len(batch)
			n -= len(batch)
		}
		if took > 0 {
			wait = 0
		} else {
			wait.wait()
		}
	}
}

// Alternate sends and takes on one goroutine, burst messages at a time.
func Alternate(l Lane, n, burst int) {
	for ; n > 0; n -= burst {
		l.Send(burst)
		l.Receive(burst)
	}
}
