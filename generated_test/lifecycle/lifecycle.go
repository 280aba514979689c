// Package lifecycle notes the order of the calls of lifecycle methods.
package lifecycle

import (
	"context"
	"errors"

	"github.com/topogen/topogen/runtime/topo"
)

type M struct{}

var (
	calls   []string
	initErr error
)

type A struct{}

func (A) Init(ctx context.Context) error { calls = append(calls, "a.Init"); return ctx.Err() }
func (A) Ping(out *ASender) error        { return errors.Join(out.SendM(M{}), topo.Done) }
func (A) Finish(ctx context.Context, out *ASender) error {
	calls = append(calls, "a.Finish")
	return errors.Join(ctx.Err(), out.SendM(M{}))
}
func (A) Close() error { calls = append(calls, "a.Close"); return nil }

type B struct{ n int }

func (b *B) Init() error                { calls = append(calls, "b.Init"); return initErr }
func (b *B) ReceiveM(_ M, out *BSender) { b.n++; out.SendM(M{}) }
func (b *B) Finish(out *BSender)        { calls = append(calls, "b.Finish"); out.SendM(M{}) }
func (b *B) Close() error               { calls = append(calls, "b.Close"); return nil }

type C struct{ n int }

func (c *C) ReceiveM(M)   { c.n++ }
func (c *C) Finish()      { calls = append(calls, "c.Finish") }
func (c *C) Close() error { calls = append(calls, "c.Close"); return nil }
