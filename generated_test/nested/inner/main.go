// Inner prints a line.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/topogen/topogen/runtime/topo"
)

type Line string

type Hello struct{ done bool }

func (h *Hello) Ping(out *HelloSender) error {
	if h.done {
		return topo.Done
	}
	h.done = true
	return out.SendLine("hello")
}

type Printer struct{}

func (Printer) ReceiveLine(l Line) error {
	_, err := fmt.Println(l)
	return err
}

func main() {
	t, err := New(Processors{})
	if err == nil {
		err = t.Run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
