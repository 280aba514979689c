package edges

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/piper"
)

// Carrier carries the messages of the durable edges of a topology.
type Carrier struct {
	config   Config
	settings settings
	log      *slog.Logger
	byIndex  map[int]*Edge
	figures  *figures
	source   source
	finish   finish
	replay   string // a store to replay; "": none

	mu      sync.Mutex
	worker  *durable.Worker // nil before its first use
	stepped *stepped        // under a Stepper
	pool    *piper.Pool     // set by Begin and BeginStepped
	server  Listener
	works   map[*durable.Activation]*work // that run
	ending  bool

	begun      chan struct{} // closed by Begin
	over       chan struct{} // closed by End
	background sync.WaitGroup
}

var _ piper.DurableEdges = (*Carrier)(nil)

// settings are the options of New.
type settings struct{ piper.DurableSettings }

// memory is the store in memory that an option has set, or nil.
func (s settings) memory() *Memory {
	m, _ := s.Memory.(*Memory)
	return m
}

// Open makes the carrier of the durable edges of a topology. The store is opened by Run, or by
// the first send.
func Open(c Config, s piper.DurableSettings) (piper.DurableEdges, error) {
	if err := c.apply(s); err != nil {
		return nil, err
	}
	if m, ok := s.Memory.(*Memory); s.Memory != nil && (!ok || m == nil) {
		return nil, fmt.Errorf("durable: pool.DurableMemory must get a *edges.Memory, got %T", s.Memory)
	}
	e := &Carrier{
		config: c, settings: settings{s}, log: s.Logger,
		byIndex: make(map[int]*Edge, len(c.Edges)), figures: newFigures(c.Edges), works: make(map[*durable.Activation]*work),
		replay: os.Getenv(replayVariable), begun: make(chan struct{}), over: make(chan struct{}),
	}
	if e.log == nil {
		e.log = slog.Default()
	}
	for i := range c.Edges {
		edge := &e.config.Edges[i]
		if edge.Timeout <= 0 {
			edge.Timeout = forever
		}
		e.byIndex[edge.Index] = edge
	}
	e.source.open = e.openStore
	e.finish.edges = e
	return e, nil
}

// functions are the functions that the worker offers, one for each edge. A client has none.
func (e *Carrier) functions() []durable.Function {
	var list []durable.Function
	if e.settings.Client {
		return nil
	}
	for i := range e.config.Edges {
		edge := &e.config.Edges[i]
		list = append(list, durable.Function{
			Name: edge.Function, Retry: edge.Retry, Limit: edge.Limit,
			Dispatch:  func(a *durable.Activation) { e.dispatch(edge, a) },
			Rejecting: e.rejecting,
		})
	}
	return list
}

// clientSuffix makes the group of clients, which must not get the tasks of the topology.
const clientSuffix = "-clients"

// workerConfig is the configuration of the worker.
func (e *Carrier) workerConfig(pid string) durable.Config {
	group := e.config.Topology
	if e.settings.Client {
		group += clientSuffix
	}
	return durable.Config{
		Backend: &e.source, Group: group, Functions: e.functions(), Lease: e.config.Lease,
		PID: pid, Running: ActivationsMax, Logger: e.log,
	}
}

// use returns the worker. The first call makes it.
func (e *Carrier) use() (*durable.Worker, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.worker == nil {
		pid, err := e.pid()
		if err != nil {
			return nil, err
		}
		w, err := durable.NewWorker(e.workerConfig(pid))
		if err != nil {
			return nil, err
		}
		e.worker = w
	}
	return e.worker, nil
}

// useIn is use for a send. On a node of a cluster it waits until the node has joined: only then the
// node has the processor whose nodes keep the store.
func (e *Carrier) useIn(ctx context.Context) (*durable.Worker, error) {
	if e.settings.Node && e.replicated() {
		select {
		case <-e.begun:
		case <-e.over:
			return nil, errEnded
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return e.use()
}

// dispatch passes an activation to its instance.
func (e *Carrier) dispatch(edge *Edge, a *durable.Activation) {
	e.figures.add(edge.Index, a.ID())
	if e.stepped != nil {
		delete(e.stepped.orphans, a.ID())
	}
	d, err := edge.Handler.open(a.Arg())
	if err == nil {
		d.inbox.put(&work{delivery: d, edges: e, edge: edge, activation: a})
		return
	}
	e.log.Error("topogen: a message of a durable edge is rejected", "function", edge.Function, "id", a.ID(), "error", err)
	reject := func() {
		a.Run(context.Background(), func(durable.Context, json.RawMessage) (any, error) { return nil, err })
		e.figures.end(a.ID(), false)
		e.finish.check()
	}
	if e.stepped != nil {
		reject()
		return
	}
	e.background.Go(reject)
}

// begins and ended enclose the call of a handler.
func (e *Carrier) begins(w *work) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.works[w.activation] = w
}

func (e *Carrier) ended(w *work, o durable.Outcome) {
	e.mu.Lock()
	delete(e.works, w.activation)
	e.mu.Unlock()
	e.figures.outcome(w.activation.ID(), o)
	e.finish.check()
}

// isEnd reports whether an activation has lost its task because its promise has ended.
func isEnd(err error) bool {
	return errors.Is(err, durable.ErrCanceled) || errors.Is(err, durable.ErrTimedOut)
}

// rejecting sends the dead letter of a message whose last attempt has failed. It runs while the
// instance waits for its handler.
func (e *Carrier) rejecting(a *durable.Activation, err error) {
	e.mu.Lock()
	w := e.works[a]
	e.mu.Unlock()
	if w != nil {
		w.unit.SendDeadLetter(w.edge.Index, w.message(), a.Attempt(), err)
	}
}

// Begin implements piper.DurableEdges.
func (e *Carrier) Begin(ctx context.Context, p *piper.Pool) (over bool, err error) {
	e.setPool(p)
	close(e.begun)
	if e.storeless() {
		return false, nil
	}
	if e.replays() {
		return true, e.replayAll(ctx, p, os.Stdout)
	}
	return false, e.begin(p)
}

// begin opens the store, and lets programs outside use it.
func (e *Carrier) begin(p *piper.Pool) error {
	b, err := e.source.get()
	if err != nil {
		return err
	}
	if e.config.Listen != "" {
		server, err := e.config.Serve(b.Backend, &e.config, os.Getenv(tokenVariable), e.log)
		if err != nil {
			return fmt.Errorf("durable: listening on %s: %w", e.config.Listen, err)
		}
		e.server = server
		e.log.Info("topogen: durable promises are served", "topology", e.config.Topology, "address", e.server.Address())
		e.background.Go(func() {
			select {
			case err := <-e.server.Failed():
				p.Fail(err)
			case <-e.over:
			}
		})
	}
	if b.failed != nil {
		e.background.Go(func() {
			if err := b.failed(); err != nil {
				p.Fail(err)
			}
		})
	}
	return nil
}

func (e *Carrier) setPool(p *piper.Pool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pool = p
}

// Start implements piper.DurableEdges: the worker takes tasks from now on.
func (e *Carrier) Start() {
	if e.stepped != nil {
		e.stepped.serving = true
		return
	}
	if e.storeless() {
		return
	}
	w, err := e.use()
	if err != nil {
		e.pool.Fail(err)
		return
	}
	e.background.Go(func() {
		if err := w.Serve(context.Background()); err != nil {
			e.pool.Fail(err)
		}
	})
	e.background.Go(func() { e.recover(w.PID()) })
	e.background.Go(e.finish.run)
	e.background.Go(e.checkFigures)
}

// InputsClosed implements piper.DurableEdges.
func (e *Carrier) InputsClosed(group int) { e.finish.add(group) }

// Stopping implements piper.DurableEdges. The tasks that wait for an instance return to the
// store at once, and handlers end at their next durable call. The context of a step ends before the
// drain timeout, so that a step that heeds it does not make Run return an error.
func (e *Carrier) Stopping() {
	e.stop(e.settings.DrainTimeout / 4 * 3)
	for _, edge := range e.config.Edges {
		e.pool.CloseDurable(e.pool.GroupOf(edge.Receiver))
	}
}

// stop closes the worker, once. It does not wait for handlers that run, unless there is a
// Stepper, where none runs.
func (e *Carrier) stop(limit time.Duration) {
	e.mu.Lock()
	w, ending := e.worker, e.ending
	e.ending = true
	e.mu.Unlock()
	if w == nil || ending {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	if e.stepped != nil {
		cancel()
		_ = w.Close(ctx)
		return
	}
	e.background.Go(func() {
		defer cancel()
		if err := w.Close(ctx); err != nil {
			e.log.Warn("topogen: durable functions have not ended in time; their last steps run again in the next process", "error", err)
		}
	})
}

// endTimeout is how long End waits for accepted operations and for requests from outside.
const endTimeout = 5 * time.Second

// End implements piper.DurableEdges.
func (e *Carrier) End() {
	close(e.over)
	e.finish.end()
	e.stop(0)
	if e.stepped != nil {
		e.source.end()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if w := e.takeWorker(); w != nil {
		_ = w.Close(ctx) // waits for the Close that stop has begun
	}
	if e.server != nil {
		if err := e.server.Close(ctx); err != nil {
			e.log.Warn("topogen: closing the server of durable promises", "error", err)
		}
	}
	if b := e.source.end(); b != nil {
		if err := b.close(ctx); err != nil {
			e.log.Error("topogen: closing the store of durable promises", "error", err)
		}
	}
	e.background.Wait()
}

func (e *Carrier) takeWorker() *durable.Worker {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.worker
}

// Figures implements piper.DurableEdges.
func (e *Carrier) Figures(edge int) piper.DurableFigures { return e.figures.read(edge) }
