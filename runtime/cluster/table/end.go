package table

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/topogen/topogen/runtime/internal/fields"
)

// End is how far the nodes have agreed about the end of the topology. It does not change: an
// [Agree] replaces it.
type End struct {
	Phases    []byte          // by group of processors: the last phase that has ended on all nodes; 0: none
	Processes map[string]Boot // by node: the processes for which the phases hold
}

// Holds reports whether the phases hold for a process. They do not hold for a process that has
// started later, until an Agree includes it.
func (e *End) Holds(node string, boot Boot) bool {
	return e != nil && boot != 0 && e.Processes[node] == boot
}

// Phase is the last phase of a group that has ended on all nodes, 0 if there is none.
func (e *End) Phase(group int) byte {
	if e == nil || group >= len(e.Phases) {
		return 0
	}
	return e.Phases[group]
}

// GroupPhase is a phase of a group of processors.
type GroupPhase struct {
	Group int
	Phase byte
}

// HashProcesses is the number for [ProcessesAre]. Nodes must be in the order of their names.
type HashProcesses struct{ b []byte }

// Add adds a node and the boot id of its process.
func (h *HashProcesses) Add(node string, boot Boot) {
	h.b = binary.LittleEndian.AppendUint64(fields.AppendText(h.b, node), uint64(boot))
}

// Sum returns the hash.
func (h *HashProcesses) Sum() uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write(h.b) // never fails
	return sum.Sum64()
}

// processes is the hash of the nodes that take part.
func (l *layout) processes() uint64 {
	var h HashProcesses
	for _, n := range l.ordered {
		if n.State < Left {
			h.Add(n.Name, n.Boot)
		}
	}
	return h.Sum()
}

// isCurrent reports whether a process for which e holds is in the table.
func (l *layout) isCurrent(e *End) bool {
	return e != nil && slices.ContainsFunc(l.ordered, func(n *Node) bool { return n.State < Left && e.Holds(n.Name, n.Boot) })
}

// withAgreed returns a copy of the layout in which groups have reached phases. If all processes
// for which the phases hold were replaced, these phases are those of an earlier run, and all
// groups begin again.
func (l *layout) withAgreed(groups []GroupPhase) *layout {
	next := *l
	e := &End{Processes: map[string]Boot{}}
	if l.isCurrent(l.end) {
		e.Phases = slices.Clone(l.end.Phases)
	}
	for _, n := range l.ordered {
		if n.State < Left && n.Boot != 0 {
			e.Processes[n.Name] = n.Boot
		}
	}
	if len(e.Processes) == 0 {
		return l // the phases would hold for no process
	}
	for _, g := range groups {
		e.reach(g.Group, g.Phase)
	}
	next.end = e
	return &next
}

// reach sets a phase, unless the group has reached a later one.
func (e *End) reach(group int, phase byte) {
	if n := group + 1 - len(e.Phases); n > 0 {
		e.Phases = append(e.Phases, make([]byte, n)...)
	}
	e.Phases[group] = max(e.Phases[group], phase)
}

// mergeEnds returns what two states know about the end, for Merge. l is the merged layout, from the other state. What
// holds for a process that is in the table is newer. If both do, they belong to one run.
func mergeEnds(l, from *layout) *End {
	a, b := l.end, from.end
	switch inA, inB := l.isCurrent(a), l.isCurrent(b); {
	case b == nil || inA && !inB || a != nil && inA == inB && !inA:
		return a
	case a == nil || inB && !inA:
		return b
	}
	e := &End{Phases: slices.Clone(a.Phases), Processes: maps.Clone(b.Processes)}
	maps.Copy(e.Processes, a.Processes)
	for group, phase := range b.Phases {
		e.reach(group, phase)
	}
	return e
}

// appendEnd appends an encoded End, which may be nil. Equal ones have equal encodings.
func appendEnd(b []byte, e *End) []byte {
	if e == nil {
		return appendInt(appendInt(b, 0), 0)
	}
	b = append(appendInt(b, len(e.Phases)), e.Phases...)
	b = appendInt(b, len(e.Processes))
	for _, name := range slices.Sorted(maps.Keys(e.Processes)) {
		b = binary.AppendUvarint(fields.AppendText(b, name), uint64(e.Processes[name]))
	}
	return b
}

func (r *reader) agreed() *End {
	e := &End{}
	e.Phases = slices.Clone(r.Take(uint64(r.Count(ProcessorsMax))))
	n := r.Count(NodesMax)
	if n == 0 {
		return nil
	}
	e.Processes = make(map[string]Boot, n)
	last := ""
	for range n {
		name, boot := r.Text(NameBytesMax), Boot(r.Uint())
		if name <= last || boot == 0 {
			r.Fail("process %q of the end is invalid or out of order", name)
		}
		if r.Err != nil {
			return nil
		}
		last, e.Processes[name] = name, boot
	}
	return e
}
