// Package hidden is one that its neighbours alone may import.
package hidden

// Part is a part of a message.
type Part struct{ A int }
