// Package hangingstarts has processors that hang, or end their goroutine, while they are
// made and while they are closed.
package hangingstarts

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/topogen/topogen/runtime/topo"
)

// Variable names the folder of the files that say what is to go wrong, each once:
// FOLDER/far-new with the text "hang".
const Variable = "STARTS_FOLDER"

// goWrong does what a file says, and removes it.
func goWrong(processor, when string) {
	file := filepath.Join(os.Getenv(Variable), processor+"-"+when)
	text, err := os.ReadFile(file)
	if err != nil || os.Remove(file) != nil {
		return
	}
	switch string(text) {
	case "hang":
		select {}
	case "goexit":
		runtime.Goexit()
	}
}

type (
	Order   struct{ Fail bool }
	Outcome struct{ Process int }
)

// Part is a processor.
type Part struct{ name string }

func NewPart(in topo.Instance) *Part {
	goWrong(in.Processor, "new")
	return &Part{in.Processor}
}

func (p *Part) Init() error {
	goWrong(p.name, "init")
	return nil
}

func (p *Part) Close() error {
	goWrong(p.name, "close")
	return nil
}

func (p *Part) ReceiveOrder(o Order) (Outcome, error) {
	if o.Fail {
		return Outcome{}, errors.New("as ordered")
	}
	return Outcome{os.Getpid()}, nil
}
