package subject

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// WriteByHand writes a module into dir with the same handlers as Write, connected by
// channels and goroutines as a programmer would do it.
func WriteByHand(dir string, processors int) (*Module, error) {
	m := &Module{Dir: dir, Processors: processors}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	files := m.handlerFiles()
	files["go.mod"] = "module example.com/byhand\n\ngo 1.26.0\n"
	files["doc.go"] = docByHand
	files["wiring.go"] = m.wiring()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return m, nil
}

const docByHand = `// Package subject is a chain of processors.
package subject

import "errors"

type Report struct{ N int }

var errDone = errors.New("done")

type Source struct{ left int }

func (s *Source) Ping(out *SourceSender) error {
	if s.left == 0 {
		return errDone
	}
	s.left--
	return out.SendMessage0(Message0{N: s.left})
}

type Last struct{ reports int }

func (l *Last) ReceiveReport(*Report) { l.reports++ }
`

// wiring returns the code that topogen would generate.
func (m *Module) wiring() string {
	var senders, loops, channels, run strings.Builder
	for i := range m.steps() {
		next, value, end := "", "", ""
		if i < m.steps()-1 {
			next = fmt.Sprintf("\tnext   chan<- Message%d\n", i+1)
			value = fmt.Sprintf("next: message%d, ", i+1)
			end = "\tdefer close(out.next)\n"
			fmt.Fprintf(&senders, "\nfunc (s *Step%[1]dSender) SendMessage%[2]d(m Message%[2]d) { s.next <- m }\n", i, i+1)
		}
		fmt.Fprintf(&senders, "\ntype Step%[1]dSender struct {\n%[2]s\treport chan<- Report\n}\n\nfunc (s *Step%[1]dSender) SendReport(m Report) { s.report <- m }\n", i, next)
		fmt.Fprintf(&loops, "\nfunc runStep%[1]d(in <-chan Message%[1]d, out *Step%[1]dSender) {\n%[2]s\tx := new(Step%[1]d)\n\tfor m := range in {\n\t\tx.ReceiveMessage%[1]d(&m, out)\n\t}\n}\n", i, end)
		fmt.Fprintf(&channels, "\tmessage%[1]d := make(chan Message%[1]d, 1024)\n", i)
		fmt.Fprintf(&run, "\tsteps.Go(func() { runStep%[1]d(message%[1]d, &Step%[1]dSender{%[2]sreport: report}) })\n", i, value)
	}
	return `package subject

import "sync"

type SourceSender struct{ next chan<- Message0 }

func (s *SourceSender) SendMessage0(m Message0) error {
	s.next <- m
	return nil
}
` + senders.String() + loops.String() + `
// Run sends n messages through the chain, and returns the number of reports.
func Run(n int) int {
	var steps sync.WaitGroup
	report := make(chan Report, 1024)
` + channels.String() + `	go func() {
		defer close(message0)
		source, out := &Source{left: n}, &SourceSender{message0}
		for source.Ping(out) == nil {
		}
	}()
` + run.String() + `	go func() {
		steps.Wait()
		close(report)
	}()
	last := new(Last)
	for m := range report {
		last.ReceiveReport(&m)
	}
	return last.reports
}
`
}
