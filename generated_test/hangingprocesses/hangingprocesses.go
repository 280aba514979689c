// Package hangingprocesses has a processor whose constructor, Init and Close hang or end their
// goroutine.
package hangingprocesses

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/topogen/topogen/runtime/topo"
)

// Variable is the environment variable with a folder of faults. Each file causes a fault
// once: FOLDER/new with the text "hang".
const Variable = "STARTS_FOLDER"

// goWrong causes the fault in a file, and removes the file.
func goWrong(when string) {
	file := filepath.Join(os.Getenv(Variable), when)
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
type Part struct{}

func NewPart(topo.Instance) *Part {
	goWrong("new")
	return &Part{}
}

func (*Part) Init() error {
	goWrong("init")
	return nil
}

func (*Part) Close() error {
	goWrong("close")
	return nil
}

func (*Part) ReceiveOrder(o Order) (Outcome, error) {
	if o.Fail {
		return Outcome{}, errors.New("as ordered")
	}
	return Outcome{os.Getpid()}, nil
}
