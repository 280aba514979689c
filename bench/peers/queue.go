package peers

import (
	"runtime"
	"sync"

	"github.com/puzpuzpuz/xsync/v4"
	"github.com/topogen/topogen/runtime/queue"
)

// Lane is a queue as its two ends use it: Send puts n messages, Receive takes n.
// Each may run on a goroutine of its own.
type Lane struct{ Send, Receive func(n int) }

// backoff is what those do that would not block: look again a few times, then let
// others run.
type backoff int

func (b *backoff) wait() {
	if *b++; *b > 32 {
		runtime.Gosched()
	}
}

// attempts makes a lane of calls that may fail.
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

// XsyncMPMC and XsyncSPSC are xsync's queues.
func XsyncMPMC() Lane {
	q := xsync.NewMPMCQueue[uint64](capacity)
	return attempts(q.TryEnqueue, q.TryDequeue)
}

// XsyncSPSC is for one producer and one consumer.
func XsyncSPSC() Lane {
	q := xsync.NewSPSCQueue[uint64](capacity)
	return attempts(q.TryEnqueue, q.TryDequeue)
}

// RingLane is queue.Ring.
func RingLane() Lane {
	q := queue.NewRing[uint64](capacity)
	return attempts(q.TryPush, q.TryPop)
}

type deaf struct{}

func (deaf) Touched(*queue.Head)  {}
func (deaf) Filled(*queue.Head)   {}
func (deaf) Overfull(*queue.Head) {}

// EdgeLane is queue.Edge, published once for so many messages and at the end.
func EdgeLane(publish int) Lane {
	q := new(queue.Edge[uint64])
	q.Init(0, capacity, deaf{})
	return Lane{
		Send: func(n int) {
			for i := range n {
				q.Put(uint64(i))
				if i%publish != publish-1 {
					continue
				}
				q.Publish(false)
				for wait := backoff(0); !q.Room(); {
					wait.wait()
				}
			}
			q.Publish(false)
		},
		Receive: func(n int) {
			wait := backoff(0)
			for n > 0 {
				batch := q.Peek(n)
				if len(batch) == 0 {
					wait.wait()
					continue
				}
				wait = 0
				n -= len(batch)
				q.Release(len(batch))
			}
		},
	}
}

// LatestLane is queue.Latest, of which nothing may be lost here: what is sent is
// received before it is full.
func LatestLane() Lane {
	q := new(queue.Latest[uint64])
	q.Init(0, capacity, deaf{})
	return Lane{
		Send: func(n int) {
			for i := range n {
				q.Put(uint64(i), uint64(i))
			}
			q.Publish(false)
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

// TwoByTwo sends n messages from two goroutines to two through one queue.
func TwoByTwo(l Lane, n int) {
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { l.Send(n / 2) })
		all.Go(func() { l.Receive(n / 2) })
	}
	all.Wait()
}

// Alternate sends and takes on one goroutine, so many messages at a time.
func Alternate(l Lane, n, burst int) {
	for ; n > 0; n -= burst {
		l.Send(burst)
		l.Receive(burst)
	}
}
