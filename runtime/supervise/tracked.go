package supervise

// Tracked is what a handler may ask about one input: its state, and the last
// message that came. It is a field of a generated tracker, which has one for each
// input of a processor, and is used in the turns of its instance alone. The zero
// value is Waiting.
//
// The generated code calls Set before the handler of a message, and Became before
// it tells of a change.
type Tracked[M any] struct {
	last  M
	has   bool
	state State
}

// Last returns the last message that came, if one did. It stays when the input is
// Broken or Closed. What it points to is what its handler has made of it.
func (t *Tracked[M]) Last() (M, bool) { return t.last, t.has }

// State returns the state of the input. To the handler of a message its input is
// Open.
func (t *Tracked[M]) State() State { return t.state }

// Closed reports whether nothing comes at present: the input is Broken or Closed.
func (t *Tracked[M]) Closed() bool { return t.state >= Broken }

// Set keeps a message, which opens the input.
func (t *Tracked[M]) Set(m M) {
	t.last, t.has = m, true
	if t.state != Closed {
		t.state = Open
	}
}

// Became sets the state, as [Inputs.State] has it.
func (t *Tracked[M]) Became(s State) { t.state = s }
