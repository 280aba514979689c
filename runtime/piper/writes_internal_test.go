package piper

import (
	"bytes"
	"reflect"
	"testing"
	"unsafe"

	"github.com/topogen/topogen/runtime/queue"
)

// TestSharedLinesOfAMessage passes messages from one worker to another and counts the cache lines of the link, of its
// queue and of the receiver's worker that each side changes. The number must not depend on the number of messages, so
// a batch of any size changes the same lines as one message. The lines of the messages are not counted.
func TestSharedLinesOfAMessage(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the layout is for 64-bit platforms")
	}
	type cell struct {
		unit Unit
		out  Out
	}
	p, err := New(Spec{
		Name: "test", Batch: 256, Processors: []Processor{{Name: "a"}, {Name: "b", Group: 1}},
		Edges: []Edge{{From: 0, To: 1, Message: "Message", Capacity: 1 << 14}},
	}, Workers(2))
	if err != nil {
		t.Fatal(err)
	}
	var a, b cell
	p.Adopt(0, &a, &a.unit, &a.out)
	p.Adopt(1, &b, &b.unit, &b.out)
	from, to := p.workers[0], p.workers[1]
	a.unit.worker.Store(from)
	b.unit.worker.Store(to)
	l := new(LinkOf[queue.Edge[int64]])
	received := 0
	a.out.Join(&b.unit, l, 0, 1<<14, func(budget int) (int, error) {
		n := len(queue.Peek(&l.Queue, budget))
		received += n
		return l.Queue.Head.Release(n), nil
	})
	r := &runner{w: to}
	to.runner = r
	send := func(n int) {
		a.out.calling = true
		for range n {
			queue.Put(&l.Queue, 1)
		}
		a.out.calling = false
		a.out.publish(from)
	}
	receive := func() {
		to.readNotes()
		for u := to.runq.pop(); u != nil; u = to.runq.pop() {
			u.queued = false
			r.act(u, 0)
			to.schedule(u)
		}
	}
	for range 10 { // until the segments have their full length
		send(256)
		receive()
	}
	shared := []reflect.Value{reflect.ValueOf(l), reflect.ValueOf(&to.inbox)}
	for _, n := range []int{1, 256} {
		// The lengths of the segments are 8, 16 … 256, and then 512. The messages begin at the second place of one.
		for more := true; more; more = l.Queue.Head.Written()%512 != 505 {
			send(1)
			receive()
		}
		before := received
		bySender := changed(shared, func() { send(n) })
		byReceiver := changed(shared, receive)
		if received != before+n {
			t.Fatalf("%d messages are received, want %d", received-before, n)
		}
		if bySender != 4 || byReceiver != 3 {
			t.Errorf("with %d messages, the sender changes %d lines, want 4, and the receiver %d, want 3", n, bySender, byReceiver)
		}
	}
}

// changed counts the cache lines of the values behind the pointers that f changes.
func changed(values []reflect.Value, f func()) (lines int) {
	memory := make([][]byte, len(values))
	old := make([][]byte, len(values))
	for i, v := range values {
		memory[i] = unsafe.Slice((*byte)(v.UnsafePointer()), v.Type().Elem().Size())
		old[i] = bytes.Clone(memory[i])
	}
	f()
	for i := range memory {
		for at := 0; at < len(old[i]); at += lineBytes {
			end := min(at+lineBytes, len(old[i]))
			if !bytes.Equal(old[i][at:end], memory[i][at:end]) {
				lines++
			}
		}
	}
	return lines
}
