package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/topogen/topogen/runtime/piper/border"
)

// toldEarly are nodes of which another one has failed as soon as this one has its place.
type toldEarly struct {
	border.Nodes
	failure error
}

func (n *toldEarly) Begin(_ context.Context, p *border.Border) error {
	defer p.Fail(n.failure)
	return p.Place(func(int, int) bool { return true })
}

func (n *toldEarly) End(error) {}

func (n *toldEarly) FencingToken(int, int) uint64 { return 0 }

// TestFailureBeforeInit tells a node of a failure before its instances are initialized. Their
// contexts have ended then, so no Init can wait for ever.
func TestFailureBeforeInit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram()
		p.init = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		failed := errors.New("another node has failed")
		top, err := p.newTop(nil, border.UseNodes(&toldEarly{failure: failed}))
		if err != nil {
			t.Fatal(err)
		}
		if err := top.pool.Run(t.Context()); !errors.Is(err, failed) {
			t.Errorf("Run returns %v, want %v", err, failed)
		}
	})
}
