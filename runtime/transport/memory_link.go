package transport

import "sync"

// batchMessages is how many messages are delivered before urgent messages that arrived
// in the meantime overtake the rest: as many as the network's transport puts into a
// frame.
const batchMessages = 512

// memoryLink carries messages from one node of a Memory to another, with its own
// goroutine.
type memoryLink struct {
	node  *memoryNode
	to    string
	count *Counters
	wake  chan struct{}

	mu     sync.Mutex
	queues [Classes]fifo
	turns  Turns
	quota  Quota // includes the messages that are being received
	closed bool
}

func newMemoryLink(n *memoryNode, to string, c *Counters) *memoryLink {
	o := n.memory.options
	l := &memoryLink{node: n, to: to, count: c, wake: make(chan struct{}, 1), quota: NewQuota(o.QueueMessages, o.QueueBytes)}
	n.running.Go(l.run)
	return l
}

// add queues messages as long as there is room, and drops the rest.
func (l *memoryLink) add(messages []Message) {
	l.mu.Lock()
	taken := 0
	for _, m := range messages {
		if m.Class >= Classes {
			m.Class = Ordered
		}
		if l.closed || !l.quota.Take(&m) {
			continue
		}
		l.queues[m.Class].put(m)
		taken++
	}
	l.mu.Unlock()
	l.count.Dropped.Add(uint64(len(messages) - taken))
	if taken > 0 {
		l.notify()
	}
}

func (l *memoryLink) notify() {
	select {
	case l.wake <- struct{}{}:
	default: // already notified
	}
}

func (l *memoryLink) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.quota.Waiting()
}

// end drops the queued messages and ends the goroutine.
func (l *memoryLink) end() {
	l.mu.Lock()
	l.closed = true
	for class := range l.queues {
		l.count.Dropped.Add(uint64(l.queues[class].len()))
		l.quota.Give(l.queues[class].rest()...)
		l.queues[class] = fifo{}
	}
	l.mu.Unlock()
	l.notify()
}

// run delivers queued messages in batches.
func (l *memoryLink) run() {
	batch := make([]Message, 0, batchMessages)
	for range l.wake {
		for {
			l.mu.Lock()
			batch = l.nextBatch(batch[:0])
			closed := l.closed
			l.mu.Unlock()
			if closed {
				return
			}
			if len(batch) == 0 {
				break
			}
			l.deliver(batch)
			l.mu.Lock()
			l.quota.Give(batch...)
			l.mu.Unlock()
			clear(batch) // the payloads belong to their receivers
		}
	}
}

// nextBatch takes the next batch out of the queues. The lock must be held. Bulk
// messages go one by one, because they may be large.
func (l *memoryLink) nextBatch(batch []Message) []Message {
	urgent, ordered, bulk := l.queues[Urgent].len() > 0, l.queues[Ordered].len() > 0, l.queues[Bulk].len() > 0
	if !urgent && !ordered && !bulk {
		return batch
	}
	class, limit := l.turns.Next(urgent, ordered, bulk), batchMessages
	if class == Bulk {
		limit = 1
	}
	return l.queues[class].take(limit, batch)
}

// deliver calls the handlers of the other node, once for each sequence of messages of
// one group.
func (l *memoryLink) deliver(batch []Message) {
	to := l.node.memory.enter(l.node.name, l.to)
	if to == nil {
		l.count.Dropped.Add(uint64(len(batch)))
		return
	}
	defer to.receiving.Done()
	to.mu.Lock()
	c := to.counters(l.node.name)
	to.mu.Unlock()
	for len(batch) > 0 {
		n, size := 1, 0
		for n < len(batch) && batch[n].Group == batch[0].Group {
			n++
		}
		payloads := make([][]byte, n)
		for i := range payloads {
			payloads[i] = batch[i].Payload
			size += len(batch[i].Payload)
		}
		l.count.Sent.Add(uint64(n))
		l.count.SentBytes.Add(uint64(size))
		to.handlers.Receive(l.node.name, batch[0].Group, payloads, c)
		batch = batch[n:]
	}
}

// fifo is a queue of messages.
type fifo struct {
	list []Message
	next int
}

func (f *fifo) put(m Message) {
	if len(f.list) == cap(f.list) && f.next > len(f.list)/2 { // reuse the room in front instead of growing
		n := copy(f.list, f.list[f.next:])
		clear(f.list[n:])
		f.list, f.next = f.list[:n], 0
	}
	f.list = append(f.list, m)
}

func (f *fifo) len() int        { return len(f.list) - f.next }
func (f *fifo) rest() []Message { return f.list[f.next:] }

// take moves up to n messages to a batch.
func (f *fifo) take(n int, batch []Message) []Message {
	taken := f.list[f.next : f.next+min(n, f.len())]
	batch = append(batch, taken...)
	clear(taken)
	if f.next += len(taken); f.next == len(f.list) {
		f.list, f.next = f.list[:0], 0
	}
	return batch
}
