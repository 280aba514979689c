// Package pool stands in for the runtime.
package pool

type Out struct{}

type Link struct{}
