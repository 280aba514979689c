package edges

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// errEnded is the error of operations after the end of Run.
var errEnded = fmt.Errorf("durable: the topology has ended: %w", durable.ErrStopping)

// source is the backend of the worker. It opens the store at the first operation, and ends
// for good when Run returns.
type source struct {
	open  func() (opened, error)
	stays bool // the store is in memory, under a Stepper

	mu    sync.Mutex
	now   *opened // nil before it was opened
	ended bool
}

// opened is a store that is open: in this process, or in the process of a server.
type opened struct {
	protocol.Backend
	close  func(context.Context) error
	failed func() error // waits until the backend ends, and returns the reason if it is a failure; nil: it never does
}

// get opens the store if it is not open.
func (s *source) get() (*opened, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return nil, errEnded
	case s.now != nil:
		return s.now, nil
	}
	o, err := s.open()
	if err != nil {
		return nil, errors.Join(err, durable.ErrStopping) // the worker must not try again
	}
	s.now = &o
	return s.now, nil
}

// end refuses further operations, and returns the backend if it was opened.
func (s *source) end() *opened {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return s.now
}

func (s *source) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// results returns the backend for reads after the end: a store in memory under a Stepper stays,
// so that a test can read the results of executions.
func (s *source) results(op protocol.Operation) (*opened, error) {
	if _, ok := op.(protocol.PromiseGet); ok && s.stays {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.now, nil
	}
	return s.get()
}

// Do carries out an operation.
func (s *source) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	b, err := s.results(op)
	if err != nil {
		return protocol.Result{}, err
	}
	r, err := b.Do(ctx, op)
	if s.isEnded() && (err != nil || r.Status == protocol.Unavailable) {
		return protocol.Result{}, errEnded
	}
	return r, err
}

// DoAll carries out several operations with one write.
func (s *source) DoAll(ctx context.Context, ops []protocol.Operation) ([]protocol.Result, error) {
	b, err := s.get()
	if err != nil {
		return nil, err
	}
	results, err := doAll(ctx, b.Backend, ops)
	if s.isEnded() && (err != nil || len(results) > 0 && results[0].Status == protocol.Unavailable) {
		return nil, errEnded
	}
	return results, err
}

func doAll(ctx context.Context, b protocol.Backend, ops []protocol.Operation) ([]protocol.Result, error) {
	if batcher, ok := b.(durable.Batcher); ok {
		return batcher.DoAll(ctx, ops)
	}
	results := make([]protocol.Result, len(ops))
	for i, op := range ops {
		var err error
		if results[i], err = b.Do(ctx, op); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// Connect connects the worker.
func (s *source) Connect(group, pid string) (protocol.Connection, error) {
	b, err := s.get()
	if err != nil {
		return nil, err
	}
	return b.Connect(group, pid)
}

// openStore opens the store in the folder, in memory, on several nodes, or of the server with
// the URL.
func (e *Carrier) openStore() (opened, error) {
	m := e.settings.memory()
	switch {
	case e.replays():
		return opened{waiting{e.over}, func(context.Context) error { return nil }, nil}, nil
	case m == nil && isURL(e.config.Store):
		return e.openClient(e.config.Store)
	case e.storeless():
		return opened{}, errStoreless
	case e.replicated():
		return e.openReplica()
	}
	var kept store.Store
	if m != nil {
		kept = m.running()
	} else {
		disk, err := store.Open(e.config.Store, store.Options{})
		if errors.Is(err, store.ErrInUse) {
			err = fmt.Errorf("%w; stop that process, or set %s to the URL at which it serves the store", err, storeVariable)
		}
		if err != nil {
			return opened{}, fmt.Errorf("durable: opening the store of the topology: %w", err)
		}
		kept = disk
	}
	b, err := engine.Open(engine.Config{Store: kept, Logger: e.log})
	if err != nil {
		return opened{}, fmt.Errorf("durable: opening the store of the topology: %w", errors.Join(err, kept.Close()))
	}
	return opened{b, b.Close, func() error {
		<-b.Stopped()
		return b.Err()
	}}, nil
}

// errStoreless is the error of a send of a client that has no store.
var errStoreless = fmt.Errorf("durable: a client of a cluster has no store: set %s to the URL of a server, such as a node with listen", storeVariable)

// storeless reports whether the process is a client without the URL of a store.
func (e *Carrier) storeless() bool {
	return e.settings.Client && e.settings.Memory == nil && !isURL(e.config.Store)
}

// replicated reports whether several nodes keep the store.
func (e *Carrier) replicated() bool {
	return e.config.Replicate != nil && e.settings.Memory == nil && e.stepped == nil
}

// openReplica opens this node's part of a store on several nodes.
func (e *Carrier) openReplica() (opened, error) {
	r, err := e.config.Replicate(e.log)
	if err != nil {
		return opened{}, fmt.Errorf("durable: opening the store of the topology: %w", err)
	}
	return opened{r, r.Close, func() error {
		<-r.Stopped()
		return r.Err()
	}}, nil
}

// isURL reports whether the store is in the process of a server.
func isURL(store string) bool {
	return strings.HasPrefix(store, "http://") || strings.HasPrefix(store, "https://")
}

// openClient makes a client of the server with the URL.
func (e *Carrier) openClient(url string) (opened, error) {
	options := client.Options{Token: os.Getenv(tokenVariable), Events: e.reportConnection}
	if c := &e.config; c.TLSCert != "" {
		var err error
		if options.Certificates, err = certs.Client(c.Files(), tls.VersionTLS13, e.log); err != nil {
			return opened{}, fmt.Errorf("the certificate of the section durable: %w", err)
		}
	}
	c, err := client.New(url, options)
	if err != nil {
		return opened{}, fmt.Errorf("durable: the server of the store: %w", err)
	}
	return opened{c, func(context.Context) error { return c.Close() }, nil}, nil
}

// reportConnection logs why the process gets no executions from its server. Otherwise a wrong
// URL or token would look like a server without work.
func (e *Carrier) reportConnection(event client.Event) {
	switch {
	case !event.Connected:
		e.log.Warn("topogen: the server of durable promises is not connected", "url", e.config.Store, "attempt", event.Attempt, "error", event.Err)
	case event.Attempt > 1:
		e.log.Info("topogen: the server of durable promises is connected again", "url", e.config.Store)
	}
}

// Files are those of the certificate of the section, for a client as well as for a server.
func (c *Config) Files() certs.Files { return certs.Files{Cert: c.TLSCert, Key: c.TLSKey, CA: c.TLSCA} }
