package peers

import "sync/atomic"

// nodes is a lock-free queue: a linked list whose last node waits for a message. The
// garbage collector frees the nodes. A pop leaves a mark in its node, so that a delayed
// producer does not find the node empty.
type nodes struct {
	head atomic.Pointer[node]
	_    [56]byte
	tail atomic.Pointer[node]
	_    [56]byte
}

type node struct {
	data atomic.Pointer[uint64]
	next atomic.Pointer[node]
}

func newNodes() *nodes {
	q, n := new(nodes), new(node)
	q.head.Store(n)
	q.tail.Store(n)
	return q
}

func (q *nodes) push(v uint64) {
	data, fresh := &v, new(node)
	for {
		tail := q.tail.Load()
		put := tail.data.CompareAndSwap(nil, data)
		linked := tail.next.CompareAndSwap(nil, fresh)
		q.tail.CompareAndSwap(tail, tail.next.Load())
		if put {
			return
		}
		if linked {
			fresh = new(node)
		}
	}
}

// consumed is the mark that a pop leaves in a node.
var consumed = new(uint64)

func (q *nodes) pop() (v uint64, ok bool) {
	for {
		head := q.head.Load()
		if head == q.tail.Load() {
			return 0, false
		}
		if q.head.CompareAndSwap(head, head.next.Load()) {
			return *head.data.Swap(consumed), true
		}
	}
}
