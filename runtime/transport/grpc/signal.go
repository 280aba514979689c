package grpc

// signal wakes up one receiver. Several notifications before the receiver reads count
// as one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}
