// Package piper stands in for the runtime.
package piper

type Out struct{}

type Link struct{}
