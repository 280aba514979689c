package transport

// Class says which messages a message may overtake on its way to a peer.
type Class uint8

const (
	// Ordered messages of one group arrive in the order in which they were sent,
	// whatever their sizes.
	Ordered Class = iota
	// Urgent messages overtake all others, and keep their order among themselves: for
	// small ones that are useless when they come late, such as heartbeats and votes.
	Urgent
	// Bulk messages of one group keep their order among themselves, and let all others
	// pass: for the parts of something large that can wait, such as a snapshot.
	Bulk
)

// Classes is the number of classes. A class beyond them counts as Ordered.
const Classes = 3

const (
	urgentInRow = 8  // frames of urgent messages, after which one of ordered messages goes
	bulkEvery   = 16 // frames, of which one is for bulk messages: a snapshot makes progress on a link that is always busy
)

// Turns decides whose turn it is to send, so that urgent messages go first and no
// class waits for ever: for whoever writes a [Transport]. Its zero value is ready.
type Turns struct {
	urgent int // frames of urgent messages that ordered ones have waited for
	others int // frames that bulk messages have waited for
}

// Next is the class of the next frame, by which classes have something to send;
// one of them must have.
func (t *Turns) Next(urgent, ordered, bulk bool) Class {
	c := Ordered
	switch {
	case bulk && (t.others >= bulkEvery-1 || !urgent && !ordered):
		c = Bulk
	case urgent && (t.urgent < urgentInRow || !ordered):
		c = Urgent
	}
	t.urgent = waited(t.urgent, ordered, c == Ordered, c == Urgent)
	t.others = waited(t.others, bulk, c == Bulk, true)
	return c
}

// waited counts a frame for a class that has something to send.
func waited(n int, waits, its, counts bool) int {
	switch {
	case !waits || its:
		return 0
	case counts:
		return n + 1
	}
	return n
}
