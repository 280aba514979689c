// Package hangingstarts has processors whose constructors, Init and Close hang or end their
// goroutine.
package hangingstarts

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/topogen/topogen/runtime/topo"
)

// Variable is the environment variable with a folder of faults. Each file causes a fault
// once: FOLDER/far-new with the text "hang".
const Variable = "STARTS_FOLDER"

// goWrong causes the fault in a file, and removes the file.
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
