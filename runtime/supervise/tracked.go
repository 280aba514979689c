package supervise

// Tracked holds what a handler may read about one input: its state, and the last message
// that arrived. It is a field of a generated tracker, which has one for each input of a
// processor, and is used only in turns of its instance. The zero value is Waiting.
//
// Generated code calls Set before the handler of a message, and Became before it calls
// the handler of a change.
type Tracked[M any] struct {
	last  M
	has   bool
	state State
}

// Last returns the last message, if one has arrived. It is kept when the input becomes
// Broken or Closed. If it is a pointer, its handler may have changed the value.
func (t *Tracked[M]) Last() (M, bool) { return t.last, t.has }

// State returns the state of the input. While the handler of a message runs, its input is
// Open.
func (t *Tracked[M]) State() State { return t.state }

// Closed reports whether no messages arrive at present: the input is Broken or Closed.
func (t *Tracked[M]) Closed() bool { return t.state >= Broken }

// Set stores a message and opens the input.
func (t *Tracked[M]) Set(m M) {
	t.last, t.has = m, true
	if t.state != Closed {
		t.state = Open
	}
}

// Became sets the state, which comes from [Inputs.State].
func (t *Tracked[M]) Became(s State) { t.state = s }
