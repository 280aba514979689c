package oracle

import (
	"encoding/json"
	"maps"
	"slices"
)

// Config has the settings of a [Server].
type Config struct {
	// RetryTimeout is the time in milliseconds after which an execute message is repeated.
	RetryTimeout int64
	// UnblocksMax is how many undelivered unblock messages an address may have. 0 is no
	// limit.
	UnblocksMax int
	// MissedMax is how many missed occurrences of a schedule create promises. 0: there is no limit.
	MissedMax int
	// Strict refuses promises with both a timer and a target.
	Strict bool
}

// A Server is the state of a promise server.
type Server struct {
	config    Config
	promises  map[string]promise
	tasks     map[string]task
	schedules map[string]schedule
	outbox    []unblock // undelivered, oldest first

	wall, run int64 // of the request
	sent      []Sent
	skipped   int // occurrences of schedules
}

// A Sent is a message that a step has sent.
type Sent struct {
	Address string
	Message json.RawMessage
	// Dropped says that the message was deleted because its address had too many of them.
	Dropped bool
}

// unblock is the key of an undelivered message: a promise has at most one for each address.
type unblock struct{ promise, address string }

// New returns a server without promises.
func New(config Config) *Server {
	s := &Server{config: config}
	s.reset()
	return s
}

func (s *Server) reset() {
	s.promises = map[string]promise{}
	s.tasks = map[string]task{}
	s.schedules = map[string]schedule{}
	s.outbox = nil
}

// Clone returns a server with the same state.
func (s *Server) Clone() *Server {
	c := *s
	c.promises, c.tasks, c.schedules = maps.Clone(s.promises), maps.Clone(s.tasks), maps.Clone(s.schedules)
	c.outbox = slices.Clone(s.outbox)
	return &c
}

// Tick processes everything that is due, and returns the messages.
func (s *Server) Tick(wall, run int64) []Sent {
	s.begin(wall, run)
	s.tick()
	return s.sent
}

// Delivered deletes the unblock message of a promise for an address.
func (s *Server) Delivered(promise, address string) {
	s.outbox = slices.DeleteFunc(s.outbox, func(u unblock) bool { return u == unblock{promise, address} })
}

func (s *Server) begin(wall, run int64) { s.wall, s.run, s.sent, s.skipped = wall, run, nil, 0 }

// execute dispatches a pending task, and sets the time of the next attempt.
func (s *Server) execute(t task) {
	retry := s.run + s.config.RetryTimeout
	t.retry, t.delay = &retry, nil
	s.tasks[t.ID] = t
	s.send(s.promises[t.ID].Tags["resonate:target"], "execute", object{"task": object{"id": t.ID, "version": t.Version}})
}

// notify sends the unblock message of a settled promise, and keeps it until it is
// delivered. If its address has too many already, the oldest of them is dropped.
func (s *Server) notify(p promise, address string) {
	var kept []string
	for _, u := range s.outbox {
		if u.address == address {
			kept = append(kept, u.promise)
		}
	}
	if s.config.UnblocksMax > 0 && len(kept) >= s.config.UnblocksMax {
		oldest := kept[0]
		s.Delivered(oldest, address)
		s.send(address, "unblock", object{"promise": s.promises[oldest]})
		s.sent[len(s.sent)-1].Dropped = true
	}
	s.outbox = append(s.outbox, unblock{p.ID, address})
	s.send(address, "unblock", object{"promise": p})
}

func (s *Server) send(address, kind string, data object) {
	s.sent = append(s.sent, Sent{Address: address, Message: encode(object{"kind": kind, "head": object{}, "data": data})})
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // no value of this package can fail to be encoded
	}
	return b
}
