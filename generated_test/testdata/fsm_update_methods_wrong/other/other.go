// Package other has an update for another state.
package other

// Far changes a text.
type Far struct{}

func (Far) Update(*string) error { return nil }
func (Far) Revert(*string) error { return nil }
