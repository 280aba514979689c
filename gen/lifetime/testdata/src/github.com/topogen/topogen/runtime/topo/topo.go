// Package topo stands in for the runtime.
package topo

import "context"

func Hold(ctx context.Context) (release func()) { return func() {} }
