// Package other has a message with what nobody else reaches.
package other

type Far struct {
	Name  string
	state int
	more  bool
}
