package core

import "github.com/topogen/topogen/runtime/durable/protocol"

// Retries lets a driver leave out the retries whose execute messages it cannot send, for
// example because no worker is connected. Such a retry writes nothing: it stays due in the
// store, and the driver remembers to process it again when it could send the message.
// Without this, a million tasks that no worker wants would be written every 30 seconds.
//
// A step only adds timeouts after its own time, so a timeout that is due later than now is
// never below a key that a Tick has passed. This needs an Instant.Run that does not go back.
type Retries struct {
	// From is the key of TaskTimeouts at which the Tick begins. Lease ends that are below it
	// must have been processed. The Tick sets it to the key at which the next one continues.
	From []byte
	// Wanted reports whether the driver can send the execute message of a task.
	Wanted func(address string, t protocol.TaskRef) bool
	// Left is set to the number of retries that the Tick left out, and Passed to the number
	// of timeouts that it has looked at.
	Left, Passed int
}

func (r *Retries) from() []byte {
	if r == nil {
		return nil
	}
	return r.From
}

// leaves reports whether the driver leaves out the retry of a task. The end of a lease is
// not a retry.
func (r *Retries) leaves(t *task) bool {
	if r == nil || t.state != taskPending || r.Wanted(t.address, protocol.TaskRef{ID: t.id, Version: t.version}) {
		return false
	}
	r.Left++
	return true
}

// passed moves From behind the timeouts that were looked at.
func (r *Retries) passed(list []entry) {
	if r == nil || len(list) == 0 {
		return
	}
	last := list[len(list)-1]
	r.From = append(timeKey(nil, last.at, last.id), end) // ids do not contain this byte, so it is the next key
	r.Passed += len(list)
}
