package peers

import "sync/atomic"

// nodes is the queue of rast.md 2.2, step for step: a list of nodes, the last of
// which waits for a message. What frees memory is the collector; and a pop leaves
// a mark in the node, so that no late producer finds it empty.
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

// consumed is what a pop leaves in a node.
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
