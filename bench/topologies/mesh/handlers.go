// Package mesh joins a thousand instances to a thousand by one edge: a million
// pairs.
package mesh

//go:generate go tool topogen build

// Note is what travels.
type Note struct{ From, To int }

// Left sends to each Right.
type (
	Left  struct{}
	Right struct{}
)

func (*Left) ReceiveNote(m *Note, out *LeftSender) { out.SendNote(*m) }

func (*Right) ReceiveNote(*Note) {}
