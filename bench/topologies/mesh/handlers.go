// Package mesh connects a thousand instances to a thousand others by one edge, which
// makes a million links.
package mesh

//go:generate go tool topogen build

// Note is the message type.
type Note struct{ From, To int }

// Left has a link to each Right.
type (
	Left  struct{}
	Right struct{}
)

func (*Left) ReceiveNote(m *Note, out *LeftSender) { out.SendNote(*m) }

func (*Right) ReceiveNote(*Note) {}
