package engine

import "github.com/topogen/topogen/runtime/durable/protocol"

// SetHeldMax sets how many messages wait in memory for a worker of a group, and for all of them.
func (e *Engine) SetHeldMax(group, total int) {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	e.hub.held.lineMax, e.hub.held.totalMax = group, total
}

// SetPushMax sets how many execute messages wait for receivers, and how many bytes of unblock
// messages for receivers are in memory.
func (e *Engine) SetPushMax(waiting, bytes int) {
	e.pusher.mu.Lock()
	defer e.pusher.mu.Unlock()
	e.pusher.waitingMax, e.pusher.bytesMax = waiting, bytes
}

// HeldTasks returns the tasks of the messages that wait for a worker with an address, in order.
func (e *Engine) HeldTasks(address string) (list []protocol.TaskRef) {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	if l := e.hub.held.lines[key(parse(address))]; l != nil {
		for place := l.Front(); place != nil; place = place.Next() {
			list = append(list, place.Value.(*heldTask).task)
		}
	}
	return list
}

// Messages counts what the engine has in memory for execute messages: messages that are held or
// wait for a receiver, and their lines and hosts.
func (e *Engine) Messages() (messages, places int) {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	p := e.pusher
	p.mu.Lock()
	defer p.mu.Unlock()
	messages = len(e.hub.held.tasks) + len(e.hub.returned) + len(p.tasks)
	return messages, len(e.hub.held.lines) + len(p.hosts) + p.line.Len()
}
