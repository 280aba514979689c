package server

// BodyBytes is the size of the buffers of requests that are being read or carried out.
func (s *Server) BodyBytes() int64 { return s.clients.bytes.Load() + s.strangers.bytes.Load() }

// StrangerBytes is the part of BodyBytes whose requests have shown no token yet.
func (s *Server) StrangerBytes() int64 { return s.strangers.bytes.Load() }
