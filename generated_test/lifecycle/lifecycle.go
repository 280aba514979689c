// Package lifecycle notes the order of the calls of lifecycle methods.
package lifecycle

import (
	"context"
	"errors"

	"github.com/topogen/topogen/runtime/topo"
)

type M struct{}

var (
	Calls   []string
	InitErr error
)

type A struct{}

func (A) Init(ctx context.Context) error { Calls = append(Calls, "a.Init"); return ctx.Err() }
func (A) Ping(out *ASender) error        { return errors.Join(out.SendM(M{}), topo.Done) }
func (A) Finish(ctx context.Context, out *ASender) error {
	Calls = append(Calls, "a.Finish")
	return errors.Join(ctx.Err(), out.SendM(M{}))
}
func (A) Close() error { Calls = append(Calls, "a.Close"); return nil }

type B struct{ n int }

func (b *B) Init() error                { Calls = append(Calls, "b.Init"); return InitErr }
func (b *B) ReceiveM(_ M, out *BSender) { b.n++; out.SendM(M{}) }
func (b *B) Finish(out *BSender)        { Calls = append(Calls, "b.Finish"); out.SendM(M{}) }
func (b *B) Close() error               { Calls = append(Calls, "b.Close"); return nil }

type C struct{ N int }

func (c *C) ReceiveM(M)   { c.N++ }
func (c *C) Finish()      { Calls = append(Calls, "c.Finish") }
func (c *C) Close() error { Calls = append(Calls, "c.Close"); return nil }
