package table

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/internal/fields"
)

// Snapshot is the content of a table at a revision. It shares nothing with the table.
type Snapshot struct {
	Revision    Revision
	Plan        string
	Description string // of the plan
	Nodes       []Node // by name
	Processors  []Places
	Leases      []LeaseState // by name
	End         *End         // nil: the nodes have agreed about nothing
}

// Places are the places of the containers of a processor: runs of consecutive containers
// with the same node and epoch, in order and without gaps.
type Places struct {
	Processor
	Runs []Run
}

// Run is a list of consecutive containers with the same node and epoch, as [Replica.Lookup] returns it.
type Run struct {
	First, Count int
	Node         string // "": no place
	Epoch        uint64
}

// Snapshot returns the content of the state.
func (s *State) Snapshot() *Snapshot {
	l := s.layout.Load()
	v := &Snapshot{Revision: s.revision, Plan: l.plan.Hash, Description: l.plan.Description, End: l.end}
	for _, n := range l.sorted() {
		v.Nodes = append(v.Nodes, n.clone())
	}
	for _, c := range l.processors {
		p := Places{Processor: Processor{c.name, len(c.places)}}
		c.runs(func(first, count, slot int, epoch uint64) {
			n := l.node(slot)
			r := Run{First: first, Count: count, Epoch: n.epochOf(epoch)}
			if n != nil {
				r.Node = n.Name
			}
			p.Runs = append(p.Runs, r)
		})
		v.Processors = append(v.Processors, p)
	}
	for _, name := range slices.Sorted(maps.Keys(s.leases)) {
		v.Leases = append(v.Leases, s.leases[name].LeaseState)
	}
	return v
}

// runs calls f for each run of equal cells.
func (c *cells) runs(f func(first, count, slot int, epoch uint64)) {
	for i := 0; i < len(c.places); {
		first, cell := i, c.places[i].Load()
		for i++; i < len(c.places) && c.places[i].Load() == cell; i++ {
		}
		slot, epoch := unpackCell(cell)
		f(first, i-first, slot, epoch)
	}
}

const (
	stateVersion = 3            // the epochs of version 2 counted the placements
	firstVersion = 1            // has neither a description of the plan nor an End; its plan is refused
	checksumSize = 4            // CRC-32C at the end
	epochReadMax = epochMax / 2 // of an epoch in a snapshot, so that it can still grow
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append appends the encoded state to b. Equal states have equal encodings.
func (s *State) Append(b []byte) []byte {
	begin := len(b)
	l := s.layout.Load()
	b = append(b, stateVersion)
	b = binary.AppendUvarint(b, s.revision.Term)
	b = binary.AppendUvarint(b, s.revision.Index)
	b = binary.AppendUvarint(b, uint64(s.revision.Position))
	b = binary.AppendUvarint(binary.AppendUvarint(b, s.epoch), s.token)
	b = fields.AppendText(fields.AppendText(b, l.plan.Hash), l.plan.Description)
	nodes, number := l.sorted(), map[string]int{}
	b = appendInt(b, len(nodes))
	for i, n := range nodes {
		number[n.Name] = i + 1
		b = binary.AppendUvarint(appendNode(b, n), n.Epoch)
	}
	b = appendInt(b, len(l.processors))
	for _, c := range l.processors {
		b = appendInt(fields.AppendText(b, c.name), len(c.places))
		c.runs(func(_, count, slot int, epoch uint64) {
			at := 0
			if n := l.node(slot); n != nil {
				at = number[n.Name]
			}
			b = binary.AppendUvarint(appendInt(appendInt(b, count), at), epoch)
		})
	}
	b = appendInt(b, len(s.leases))
	for _, name := range slices.Sorted(maps.Keys(s.leases)) {
		o := s.leases[name]
		b = fields.AppendText(fields.AppendText(b, o.Name), o.Holder)
		b = binary.AppendUvarint(binary.AppendUvarint(b, o.Token), uint64(o.ttl))
		b = binary.AppendVarint(b, o.renewed)
	}
	b = appendEnd(b, l.end)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[begin:], castagnoli))
}

// ReadState decodes a state. b may come from a disk or from another node.
func ReadState(b []byte) (*State, error) {
	if len(b) < checksumSize || len(b) > SnapshotBytes {
		return nil, fmt.Errorf("%w: a snapshot has %d bytes", ErrDamaged, len(b))
	}
	body := b[:len(b)-checksumSize]
	if sum := binary.LittleEndian.Uint32(b[len(body):]); sum != crc32.Checksum(body, castagnoli) {
		return nil, fmt.Errorf("%w: the checksum of a snapshot is wrong", ErrDamaged)
	}
	r := newReader(body)
	version := r.Byte()
	if version != stateVersion && version != firstVersion {
		r.Fail("a snapshot has version %d, and this program reads version %d: another version of topogen has written it. Stop all nodes, and delete the address table", version, stateVersion)
	}
	s := NewState()
	s.revision = Revision{r.Uint(), r.Uint(), r.Uint32()}
	r.epoch(s)
	s.token = r.Uint()
	l := &layout{plan: Plan{Hash: r.Text(PlanBytesMax)}, generation: 1, byName: map[string]int{}, slots: map[string]int{}}
	if version != firstVersion {
		l.plan.Description = r.Text(DescriptionBytesMax)
	}
	r.nodes(s, l, version)
	s.counts = make([]int, len(l.nodes)+1)
	r.processors(s, l)
	r.leases(s)
	if version != firstVersion {
		l.end = r.agreed()
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	s.layout.Store(l)
	return s, nil
}

// epoch reads an epoch. Those that s gives are higher.
func (r *reader) epoch(s *State) uint64 {
	epoch := r.Uint()
	if epoch > epochReadMax {
		r.Fail("an epoch is %d", epoch)
	}
	s.epoch = max(s.epoch, epoch)
	return epoch
}

func (r *reader) nodes(s *State, l *layout, version byte) {
	last := ""
	for range r.Count(NodesMax) {
		n := r.node()
		if version != firstVersion {
			n.Epoch = r.epoch(s)
		}
		if r.Err != nil {
			return
		}
		if err := n.check(); err != nil || n.Name <= last || n.Boot == 0 && n.Epoch != 0 {
			r.Fail("node %q is invalid or out of order: %v", n.Name, err)
			return
		}
		last = n.Name
		l.nodes = append(l.nodes, &n)
		l.slots[n.Name] = len(l.nodes)
	}
	l.order()
}

func (r *reader) processors(s *State, l *layout) {
	all := 0
	for range r.Count(ProcessorsMax) {
		name, instances := r.Text(NameBytesMax), r.Number(ContainersMax)
		all += instances
		if _, twice := l.byName[name]; r.Err != nil || twice || name == "" || all > ContainersMax {
			r.Fail("processor %q is invalid, or there are more than %d containers", name, ContainersMax)
			return
		}
		c := &cells{name: name}
		l.byName[name] = len(l.processors)
		l.processors = append(l.processors, c)
		if instances > 0 && len(r.B) == 0 {
			r.Fail("the containers are missing")
			return
		}
		c.places = makeCells(instances)
		for at := 0; at < instances && r.Err == nil; {
			count, slot, epoch := r.Number(instances-at), r.Number(len(l.nodes)), r.epoch(s)
			if count == 0 {
				r.Fail("a run is empty")
				return
			}
			s.counts[slot] += count
			for i := at; i < at+count; i++ {
				c.places[i].Store(packCell(slot, epoch))
			}
			at += count
		}
	}
}

func (r *reader) leases(s *State) {
	last := ""
	for range r.Count(LeasesMax) {
		o := &lease{LeaseState: LeaseState{Name: r.Text(NameBytesMax), Holder: r.Text(NameBytesMax), Token: r.Uint()}}
		ttl, renewed := r.Uint(), r.Int()
		if o.Name <= last || ttl > uint64(LeaseMax) || o.Token > s.token {
			r.Fail("lease %q is invalid or out of order", o.Name)
		}
		if r.Err != nil {
			return
		}
		o.ttl, o.renewed = time.Duration(ttl), renewed
		last = o.Name
		s.leases[o.Name] = o
	}
}
