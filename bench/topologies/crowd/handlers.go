// Package crowd has a hundred thousand instances that nobody sends to.
package crowd

//go:generate go tool topogen build

// Instances is how many there are.
const Instances = 100_000

// Note is what could be sent.
type Note struct{ N int }

// Hub could send to each Idle.
type (
	Hub  struct{}
	Idle struct{}
)

func (*Hub) ReceiveNote(m *Note, out *HubSender) { out.SendNote(*m) }

func (*Idle) ReceiveNote(*Note) {}
