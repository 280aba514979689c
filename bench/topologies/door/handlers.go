// Package door has a sink that messages reach from outside.
package door

//go:generate go tool topogen build

// Message is what travels.
type Message struct{ N int64 }

// Sink hands the message on, where somebody wants it.
type Sink struct {
	handled int
	tell    func(Message)
}

//go:noinline
func (s *Sink) ReceiveMessage(m *Message) {
	s.handled++
	if s.tell != nil {
		s.tell(*m)
	}
}
