package transport

// Class defines which messages a message may overtake on its way to a peer.
type Class uint8

const (
	// Ordered messages of one group arrive in the order in which they were sent,
	// whatever their sizes.
	Ordered Class = iota
	// Urgent messages overtake all others, and keep their order among themselves. They
	// are for small messages that are useless when they come late, such as heartbeats
	// and votes.
	Urgent
	// Bulk messages of one group keep their order among themselves, and all others
	// overtake them. They are for parts of large data that can wait, such as a
	// snapshot.
	Bulk
)

// Classes is the number of classes. A higher class counts as Ordered.
const Classes = 3

const (
	urgentInRow = 8  // frames of urgent messages in a row while ordered messages wait
	bulkEvery   = 16 // one frame in bulkEvery is for bulk messages, so that a snapshot makes progress on a link that is always busy
)

// Turns decides which class sends next. Urgent messages go first, and no class waits
// forever. It is for implementations of [Transport]. Its zero value is ready.
type Turns struct {
	urgent int // frames of urgent messages since ordered messages began to wait
	others int // frames since bulk messages began to wait
}

// Next returns the class of the next frame. The arguments say which classes have
// messages. At least one must be true.
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

// waited returns the number of frames for which a class has waited, after one more frame.
// waits says that the class has messages, sent that the frame is of this class, and counts
// that frames of the other class count.
func waited(n int, waits, sent, counts bool) int {
	switch {
	case !waits || sent:
		return 0
	case counts:
		return n + 1
	}
	return n
}
