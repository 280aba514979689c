// Package hidden is internal.
package hidden

// Part is a part of a message.
type Part struct{ A int }
