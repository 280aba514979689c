// Package crowd has a hundred thousand instances that receive no messages.
package crowd

//go:generate go tool topogen build

// Instances is the number of instances.
const Instances = 100_000

// Note is the message type, which is never sent.
type Note struct{ N int }

// Hub has an edge to each Idle.
type (
	Hub  struct{}
	Idle struct{}
)

func (*Hub) ReceiveNote(m *Note, out *HubSender) { out.SendNote(*m) }

func (*Idle) ReceiveNote(*Note) {}
