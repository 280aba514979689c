// Package shelf has a processor for the topology above it.
package shelf

// Record is a message.
type Record struct{ Name string }

// Store keeps what it must not.
type Store struct{ last *Record }

// ReceiveRecord is a handler.
func (s *Store) ReceiveRecord(m *Record) { s.remember(m) }

func (s *Store) remember(m *Record) { s.last = m }
