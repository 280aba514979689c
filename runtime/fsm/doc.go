// Package fsm keeps a state that changes by updates only: the state machine of
// rast.md 2.15.
package fsm
