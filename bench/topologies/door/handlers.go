// Package door has a sink that receives messages of an external processor.
package door

//go:generate go tool topogen build

// Message is the message type.
type Message struct{ N int64 }

// Sink passes the message to a function, if there is one.
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
