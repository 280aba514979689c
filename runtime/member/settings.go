package member

import (
	"errors"
	"log/slog"

	"github.com/topogen/topogen/runtime/transport"
)

// Settings are what a [Detector] needs.
type Settings struct {
	Node   Node              // this node; a Boot of 0 means the current time in nanoseconds
	First  map[string]string // addresses of the first members by name; may include this node
	Config Config

	// Transport connects the node to the others. The detector uses one group of it, and
	// calls SetPeer for each member that it learns of. It does not close it.
	Transport transport.Transport
	Group     uint64 // transport.GroupID(topology, "member")

	// Owner reports whether another authority says that this process has its
	// name. Then it does not end when it hears of a process with a higher boot id, but takes a boot id
	// above it. It must not wait. nil: the process with the highest boot id has the name.
	Owner func() bool

	// Observe is called for each event, in order, by one goroutine. While it takes
	// long, events wait; after 16,384 all of them are replaced by one EventLost.
	// It may be nil.
	Observe func(Event)

	// Logger gets a line about malformed messages, at most once a minute. The default is
	// slog.Default().
	Logger *slog.Logger
}

// Complete fills in the defaults and checks that nothing is missing, for implementations
// of [Detector].
func (s *Settings) Complete() error {
	if s.Transport == nil {
		return errors.Join(ErrConfig, errors.New("the transport is missing"))
	}
	if s.Observe == nil {
		s.Observe = func(Event) {}
	}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	return nil
}
