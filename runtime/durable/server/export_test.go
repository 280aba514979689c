package server

// BodyBytes is the size of the buffers of requests that are being read or carried out.
func (s *Server) BodyBytes() int64 { return s.bodies.Load() }
