package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// ErrNotYet: an update has a field that not all members know: some still run an older
// program. Known: not applied; later it may be proposed again.
var ErrNotYet = errors.New("fsm: not all nodes run the newer program yet")

// announced are the descriptions that the members of a group have said. The log's own
// becomes a newer one as soon as all members know that; until then no update may have
// what the log's own does not.
type announced struct {
	list    []announcement // by node
	members []uint64       // ascending; none: they are not known
	allowed *Allowed
}

type announcement struct {
	node uint64
	text string
}

func (t *announced) text(node uint64) (text string) {
	if i, ok := t.find(node); ok {
		text = t.list[i].text
	}
	return text
}

func (t *announced) find(node uint64) (int, bool) {
	return slices.BinarySearchFunc(t.list, node, func(a announcement, node uint64) int {
		switch {
		case a.node < node:
			return -1
		case a.node > node:
			return 1
		}
		return 0
	})
}

func (t *announced) set(node uint64, text string) {
	i, ok := t.find(node)
	if !ok {
		t.list = slices.Insert(t.list, i, announcement{node: node})
	}
	t.list[i].text = text
}

// lack are the members that do not know all of a description.
func (t *announced) behind(text string) (nodes []uint64) {
	for _, node := range t.members {
		if said := t.text(node); said == "" || Compatible(text, said) != nil {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// newest is what the log's description becomes: one that all members know.
func (t *announced) newest(recorded string) string {
	for _, a := range t.list {
		if a.text != recorded && Compatible(recorded, a.text) == nil && Compatible(a.text, recorded) != nil && len(t.behind(a.text)) == 0 {
			recorded = a.text
		}
	}
	return recorded
}

// Members says who the members are from the next entry on, and which of them have a
// vote. Each replica is told the same at the same place in the log. The error is one
// that ends this replica.
func (r *Replicated[S, U, R]) Members(voters, learners []uint64) error {
	r.checksums.voters = append(r.checksums.voters[:0], voters...)
	t := &r.announced
	t.members = append(append(t.members[:0], voters...), learners...)
	slices.Sort(t.members)
	t.list = slices.DeleteFunc(t.list, func(a announcement) bool {
		_, member := slices.BinarySearch(t.members, a.node)
		return !member
	})
	return r.upgrade()
}

// describe takes what a node says of its program. That of the first node is the log's,
// and later one that all members know. The error is one that ends this replica.
func (r *Replicated[S, U, R]) describe(node uint64, description string, a *Applied) error {
	t := &r.announced
	if err := Compatible(r.recorded, description); err != nil {
		if !errors.Is(err, ErrIncompatible) {
			return err
		}
		a.Err = err
		return nil
	}
	if description == r.description {
		description = r.description // one text, which Notes compares behind each entry
	}
	if _, member := slices.BinarySearch(t.members, node); member {
		t.set(node, description)
	}
	if r.recorded == "" || len(t.members) == 0 {
		r.recorded = description
	}
	return r.upgrade()
}

// upgrade moves the log's description on, where all members know a newer one. The error
// says that this program does not.
func (r *Replicated[S, U, R]) upgrade() error {
	t := &r.announced
	r.recorded = t.newest(r.recorded)
	t.allowed = newAllowed(r.recorded, r.description, t)
	if err := Compatible(r.recorded, r.description); err != nil {
		return fmt.Errorf("%w. The others run another program: start this node with that, too", err)
	}
	return nil
}

// appendTo appends what a replica that begins with a snapshot has to know.
func (t *announced) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(t.list)))
	for _, a := range t.list {
		b = appendText(binary.AppendUvarint(b, a.node), a.text)
	}
	return b
}

// announced reads them from a snapshot.
func (r *reader) announced() (t announced) {
	n := r.uint()
	if n > votersMax {
		r.fail("descriptions of %d nodes", n)
	}
	for ; n > 0 && r.err == nil; n-- {
		node := r.uint()
		if k := len(t.list); k > 0 && t.list[k-1].node >= node {
			r.fail("the description of node %x after that of node %x", node, t.list[k-1].node)
		}
		t.list = append(t.list, announcement{node, r.text("a description", descriptionMax+limitsMax)})
	}
	return t
}
