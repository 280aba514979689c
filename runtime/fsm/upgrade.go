package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/topogen/topogen/runtime/internal/fields"
)

// ErrNotYet means that an update uses a field that some members do not know, because
// they run an older program. The update was not applied. It may be proposed again
// later.
var ErrNotYet = errors.New("fsm: some nodes still run an older program")

// announced holds the descriptions that the members of a group have announced. The
// log's description changes to a newer one when all members know it. Until then no
// update may use fields that the log's description lacks.
type announced struct {
	list    []announcement // by node
	members []uint64       // ascending; empty: unknown
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

// behind returns the members that do not know a description completely.
func (t *announced) behind(text string) (nodes []uint64) {
	for _, node := range t.members {
		if known := t.text(node); known == "" || Compatible(text, known) != nil {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// newest returns the log's next description, which all members know.
func (t *announced) newest(recorded string) string {
	for _, a := range t.list {
		if a.text != recorded && Compatible(recorded, a.text) == nil && Compatible(a.text, recorded) != nil && len(t.behind(a.text)) == 0 {
			recorded = a.text
		}
	}
	return recorded
}

// Members sets the members from the next entry on. It must be called with the same
// members at the same place of the log on each replica. The returned error stops this
// replica.
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

// describe handles the description that a node announces. The first one becomes the
// log's description. A newer one replaces it when all members know it. The returned
// error stops this replica.
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
		description = r.description // share the string: Notes compares it after each entry
	}
	if _, member := slices.BinarySearch(t.members, node); member {
		t.set(node, description)
	}
	if r.recorded == "" || len(t.members) == 0 {
		r.recorded = description
	}
	return r.upgrade()
}

// upgrade replaces the log's description if all members know a newer one. It returns an
// error if this program does not know the new one.
func (r *Replicated[S, U, R]) upgrade() error {
	t := &r.announced
	r.recorded = t.newest(r.recorded)
	t.allowed = newAllowed(r.recorded, r.description, t)
	if err := Compatible(r.recorded, r.description); err != nil {
		return fmt.Errorf("%w. The other nodes run another program: start this node with the same program", err)
	}
	return nil
}

// appendTo appends the part of a snapshot that a starting replica needs.
func (t *announced) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(t.list)))
	for _, a := range t.list {
		b = fields.AppendText(binary.AppendUvarint(b, a.node), a.text)
	}
	return b
}

// announced reads the descriptions of a snapshot.
func (r *reader) announced() (t announced) {
	n := r.Uint()
	if n > votersMax {
		r.Fail("descriptions of %d nodes, too many", n)
	}
	for ; n > 0 && r.Err == nil; n-- {
		node := r.Uint()
		if k := len(t.list); k > 0 && t.list[k-1].node >= node {
			r.Fail("the descriptions are out of order: node %x after node %x", node, t.list[k-1].node)
		}
		t.list = append(t.list, announcement{node, r.Text(descriptionMax + limitsMax)})
	}
	return t
}
