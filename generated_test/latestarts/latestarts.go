// Package latestarts has a processor whose constructor never returns.
package latestarts

type Order struct{}

// Part is a processor.
type Part struct{}

func NewPart() *Part { select {} }

func (*Part) ReceiveOrder(Order) {}
