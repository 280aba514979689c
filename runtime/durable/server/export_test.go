package server

import "time"

// Limits that the table of budgets in SECURITY.md names.
const (
	StrangerMax        = strangerMax
	StrangersMax       = strangersMax
	HeaderBytesMax     = headerBytesMax
	ScrapesMax         = scrapesMax
	SlowBody           = slowBody
	SlowResponse       = slowResponse
	StrangerConnMemory = 32 << 10 // of a connection whose header does not end; measured
)

// BodyBytes is the size of the buffers of requests that are being read or carried out.
func (s *Server) BodyBytes() int64 { return s.clients.bytes.Load() + s.strangers.bytes.Load() }

// StrangerBytes is the part of BodyBytes whose requests have shown no token yet.
func (s *Server) StrangerBytes() int64 { return s.strangers.bytes.Load() }

// KeepSlow makes the server wait for clients that read slowly, however long they take.
func (s *Server) KeepSlow() { s.slow.after = time.Hour }
