package plan

import (
	"fmt"
	"go/token"
	"go/types"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/topogen/topogen/spec"
)

// Name is an identifier at package level that the generated files declare.
type Name struct {
	Ident     string
	What      string // "the sender"
	Processor int    // its processor, or -1
	Edge      int    // its edge, or -1
}

// Names lists the names that the generated files declare at package level for users, so
// that they can be compared with the names in the package.
func (p *Plan) Names() []Name {
	names := make([]Name, 0, 5+5*len(p.Processors)+len(p.Edges))
	names = append(names,
		Name{"ProcessorIndex", "the type of the processors' indices", -1, -1},
		Name{"EdgeIndex", "the type of the edges' indices", -1, -1},
		Name{"Processors", "the struct of constructors", -1, -1},
		Name{"New", "the function that constructs the topology", -1, -1},
		Name{"Topology", "the type of the topology", -1, -1},
	)
	if p.Cluster != nil {
		names = append(names,
			Name{"Client", "the type of clients", -1, -1},
			Name{"NewClient", "the function that makes a client", -1, -1})
	}
	for i := range p.Processors {
		q := &p.Processors[i]
		for _, j := range joinedNames {
			if j.has(q) {
				names = append(names, Name{j.name(q), j.what, i, -1})
			}
		}
		if q.External {
			continue
		}
		if name := q.Constructor(); name != "" {
			names = append(names, Name{name, "the constructor", i, -1})
		}
		if name := q.InstancesType(); name != "" {
			names = append(names, Name{name, "the type of the instances", i, -1})
		}
		if q.Inputs != nil {
			names = append(names,
				Name{q.Ident + "Inputs", "the tracker of the inputs", i, -1},
				Name{q.Ident + "Input", "the type of the inputs", i, -1})
			for _, in := range q.Inputs {
				names = append(names, Name{q.Ident + "Input" + in.Ident, "an input", i, -1})
			}
		}
	}
	for _, a := range p.Aliases {
		names = append(names, Name{a.Name, a.What, a.Processor, -1})
	}
	for i, e := range p.Edges {
		names = append(names, Name{"Edge" + e.Ident, "the index", -1, i})
		if p.LeavesLetters(i) {
			names = append(names, Name{"DeadLetter" + e.Ident, "the function for dead letters", -1, i})
		}
	}
	return names
}

// Words are the predeclared names that the generated files use. A package that declares one
// of them at package level changes its meaning.
var Words = []string{
	"any", "append", "bool", "byte", "error", "false", "int", "int64", "iota", "len", "make", "new", "nil",
	"string", "true", "uint16", "uint64",
}

// NameText describes n: the sender of processor "parser".
func (p *Plan) NameText(n Name) string {
	switch {
	case n.Processor >= 0:
		return fmt.Sprintf("%s of processor %q", n.What, p.Processors[n.Processor].Name)
	case n.Edge >= 0:
		return n.What + " of edge " + p.EdgeText(n.Edge)
	}
	return n.What
}

// EdgeText is edge i in the notation of the file: feed -> parser: Raw.
func (p *Plan) EdgeText(i int) string {
	e := &p.Edges[i]
	if e.From < 0 {
		return e.timerText() + " -> " + p.Processors[e.To].Name
	}
	return p.Processors[e.From].Name + " -> " + p.Processors[e.To].Name + ": " + e.Message
}

// Handlers lists the names of methods that may handle the messages of edge e. If a type has
// two of them, the first is used.
func (p *Plan) Handlers(e int) []string {
	edge := &p.Edges[e]
	if edge.From < 0 {
		return []string{"Receive" + edge.Message}
	}
	short := "Receive" + spec.Exported(edge.Message)
	return []string{short + "From" + p.Processors[edge.From].Ident, short}
}

// reservedNames are names that generated functions use or import, other than predeclared names.
var reservedNames = map[string]bool{
	"context": true, "ctx": true, "err": true, "errors": true, "fmt": true, "graph": true, "m": true, "message": true, "ok": true,
	"out": true, "piper": true, "pool": true, "queue": true, "route": true, "sync": true, "time": true, "topo": true, "topology": true,
}

// unique adds name to taken, with underscores appended if name is in use, and returns it.
func unique(taken map[string]bool, name string) string {
	for taken[name] {
		name += "_"
	}
	taken[name] = true
	return name
}

// localName is ident with a lower-case first letter, as the name of a variable.
func localName(ident string) string {
	first, size := utf8.DecodeRuneInString(ident)
	name := string(unicode.ToLower(first)) + ident[size:]
	if token.IsKeyword(name) || types.Universe.Lookup(name) != nil || reservedNames[name] {
		name += "Processor"
	}
	return name
}

// timerText is a timer in the notation of the file.
func (e *Edge) timerText() string {
	if e.Timer != "" {
		return "every " + e.Every.String() + " as " + e.Timer
	}
	return "every " + e.Every.String()
}

// timerIdent distinguishes timers in names: by the name, else by the period.
func (e *Edge) timerIdent() string {
	if e.Timer != "" {
		return spec.Exported(e.Timer)
	}
	return durationIdent(e.Every)
}

// durationIdent is d in the largest unit that divides it: 90s, 1500ms.
func durationIdent(d time.Duration) string {
	units := []struct {
		unit time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "us"}}
	for _, u := range units {
		if d%u.unit == 0 {
			return strconv.FormatInt(int64(d/u.unit), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(d), 10) + "ns"
}
