package cluster

import (
	"context"
	"sync"

	"google.golang.org/grpc/status"

	"github.com/topogen/topogen/runtime/transport/grpc"
)

const (
	answersMax      = 4 // at the same time: each has a view of the cluster in memory, and a slow reader keeps it
	ownerAnswersMax = 2 // of them to one certificate, so that others get answers in the meantime
)

// answering limits the answers that a node makes at the same time. Further callers wait until
// their calls end.
type answering struct {
	all    chan struct{}
	mu     sync.Mutex
	owners map[string]*ownerAnswers // by certificate
}

type ownerAnswers struct {
	turns chan struct{}
	calls int // that have a turn or wait for it
}

func newAnswering() *answering {
	return &answering{all: make(chan struct{}, answersMax), owners: map[string]*ownerAnswers{}}
}

// begin waits for the turn of an answer. Without an error, end must be called.
func (a *answering) begin(ctx context.Context) (end func(), err error) {
	owner := ownerOf(ctx)
	of := a.enter(owner)
	select {
	case of.turns <- struct{}{}:
	case <-ctx.Done():
		a.leave(owner, of)
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	select {
	case a.all <- struct{}{}:
	case <-ctx.Done():
		<-of.turns
		a.leave(owner, of)
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return func() {
		<-a.all
		<-of.turns
		a.leave(owner, of)
	}, nil
}

func (a *answering) enter(owner string) *ownerAnswers {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.owners[owner]
	if of == nil {
		turns := ownerAnswersMax
		if owner == "" { // without TLS
			turns = answersMax
		}
		of = &ownerAnswers{turns: make(chan struct{}, turns)}
		a.owners[owner] = of
	}
	of.calls++
	return of
}

func (a *answering) leave(owner string, of *ownerAnswers) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if of.calls--; of.calls == 0 {
		delete(a.owners, owner)
	}
}

// ownerOf returns the certificate of a caller; "" without TLS.
func ownerOf(ctx context.Context) string {
	if id, ok := grpc.Caller(ctx); ok {
		return id.String()
	}
	return ""
}
