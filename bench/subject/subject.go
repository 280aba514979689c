// Package subject writes modules on which `topogen build` is measured.
package subject

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// Module is a Go module in its own folder.
type Module struct {
	Dir        string
	Processors int // includes the source and the last processor
	capacity   int // of the edges; a change of it changes the generated code
	edits      int // of the first handler
}

// handlersPerFile keeps the files of a large subject as large as handwritten ones.
const handlersPerFile = 20

// Write writes a module into dir: a chain of processors, each with its own message type,
// in which each processor also reports to the last one, and a package of constants for
// stringer. checkout is the folder of topogen's module, whose go.sum is copied.
func Write(dir, checkout string, processors int) (*Module, error) {
	m := &Module{Dir: dir, Processors: processors, capacity: 1024}
	sums, err := os.ReadFile(filepath.Join(checkout, "go.sum"))
	if err != nil {
		return nil, err
	}
	files := m.handlerFiles()
	maps.Copy(files, map[string]string{
		"go.mod": "module example.com/subject\n\ngo 1.26.0\n\n" +
			"require github.com/topogen/topogen v0.0.0\n\nrequire github.com/cespare/xxhash/v2 v2.3.0 // indirect\n\n" +
			"replace github.com/topogen/topogen => " + checkout + "\n",
		"go.sum":           string(sums),
		"doc.go":           doc,
		"colour/colour.go": colours,
	})
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return m, m.Change()
}

// handlerFiles returns the files with the handlers, by name.
func (m *Module) handlerFiles() map[string]string {
	files := map[string]string{}
	steps := m.steps()
	for first := 0; first < steps; first += handlersPerFile {
		var b strings.Builder
		b.WriteString("package subject\n")
		for i := first; i < min(first+handlersPerFile, steps); i++ {
			b.WriteString(m.handler(i))
		}
		files[handlerFile(first)] = b.String()
	}
	return files
}

func handlerFile(i int) string { return fmt.Sprintf("handlers%d.go", i/handlersPerFile) }

// ChangeHandler changes the first handler, like a programmer who works on it.
func (m *Module) ChangeHandler() error {
	m.edits++
	return os.WriteFile(filepath.Join(m.Dir, handlerFile(0)), []byte(m.handlerFiles()[handlerFile(0)]), 0o644)
}

const doc = `// Package subject is a chain of processors.
package subject

import "github.com/topogen/topogen/runtime/topo"

type Report struct{ N int }

type Source struct{ left int }

func (s *Source) Ping(out *SourceSender) error {
	if s.left == 0 {
		return topo.Done
	}
	s.left--
	return out.SendMessage0(Message0{N: s.left})
}

type Last struct{ reports int }

func (l *Last) ReceiveReport(*Report) { l.reports++ }
`

const colours = `// Package colour has constants to name.
package colour

type Colour int

const (
	Red Colour = iota
	Green
	Blue
)
`

// steps is the number of processors between the source and the last one.
func (m *Module) steps() int { return m.Processors - 2 }

// handler returns the code of a processor and its message.
func (m *Module) handler(i int) string {
	send := ""
	if i < m.steps()-1 {
		send = fmt.Sprintf("\tout.SendMessage%d(Message%d{N: m.N + 1})\n", i+1, i+1)
	}
	step := "++"
	if i == 0 && m.edits > 0 {
		step = fmt.Sprintf(" += %d", m.edits)
	}
	return fmt.Sprintf(`
type Message%[1]d struct{ N int }

type Step%[1]d struct{ handled int }

func (s *Step%[1]d) ReceiveMessage%[1]d(m *Message%[1]d, out *Step%[1]dSender) {
	s.handled%[3]s
%[2]s	out.SendReport(Report{N: m.N})
}
`, i, send, step)
}

// Change writes the topology with different capacities, so that a build must do all its
// work and write files.
func (m *Module) Change() error {
	m.capacity++
	steps := m.steps()
	var b strings.Builder
	b.WriteString("version: 1\nname: subject\npackage: subject\n\nprocessors:\n  source: {}\n")
	for i := range steps {
		fmt.Fprintf(&b, "  step%d: {}\n", i)
	}
	b.WriteString("  last: {}\n\nedges:\n")
	from := "source"
	for i := range steps {
		fmt.Fprintf(&b, "  - %s -> step%d: {message: Message%d, capacity: %d}\n", from, i, i, m.capacity)
		fmt.Fprintf(&b, "  - step%d -> last: Report\n", i)
		from = fmt.Sprintf("step%d", i)
	}
	return os.WriteFile(filepath.Join(m.Dir, "topology.yml"), []byte(b.String()), 0o644)
}
