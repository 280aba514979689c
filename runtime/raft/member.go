package raft

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	membersMax   = 64        // known and removed ones, in what comes from disks and peers; groups have three to nine voters
	nameBytesMax = 256       // of a member's name or address: a DNS name has at most 255
	idMask       = 1<<63 - 1 // ids stay clear of those that the engine keeps for itself, at the upper end
)

// Member is a node of a group.
type Member struct {
	ID      uint64 // MemberID(Name)
	Name    string
	Address string // host:port, for transports that dial
	Learner bool   // gets the log, and has no vote
	Removed bool   // its name and id are never given again
}

// MemberID is the id of the member with a name. Names are never given again, so
// neither are ids.
func MemberID(name string) uint64 {
	id := xxhash.Sum64String(name) & idMask
	if id == 0 {
		id = 1 // the engine's word for nobody is 0
	}
	return id
}

// members are all that a group has or had.
type members map[uint64]Member

// makeMembers makes the members of a new group.
func makeMembers(peers map[string]string) (members, error) {
	m := make(members, len(peers))
	for name, address := range peers {
		if name == "" {
			return nil, errors.New("raft: a peer has no name")
		}
		id := MemberID(name)
		if other, ok := m[id]; ok {
			return nil, fmt.Errorf("raft: the peers %q and %q have the same id; rename one", other.Name, name)
		}
		m[id] = Member{ID: id, Name: name, Address: address}
	}
	if len(m) > membersMax {
		return nil, fmt.Errorf("raft: %d peers, at most %d", len(m), membersMax)
	}
	return m, nil
}

// list is m by name.
func (m members) list() []Member {
	return slices.SortedFunc(maps.Values(m), func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
}

// apply puts in what a change of members says.
func (m members) apply(changed []Member) {
	for _, c := range changed {
		m[c.ID] = c
	}
}

// fields of a Member in protobuf's wire format; the first is that of a list.
const (
	fieldMember  = 1
	fieldName    = 1
	fieldAddress = 2
	fieldFlags   = 3
)

const (
	flagLearner = 1 << iota
	flagRemoved
)

// appendMembers writes a list of members.
func appendMembers(b []byte, list []Member) []byte {
	var one []byte
	for _, m := range list {
		flags := uint64(0)
		if m.Learner {
			flags |= flagLearner
		}
		if m.Removed {
			flags |= flagRemoved
		}
		one = protowire.AppendTag(one[:0], fieldName, protowire.BytesType)
		one = protowire.AppendString(one, m.Name)
		one = protowire.AppendTag(one, fieldAddress, protowire.BytesType)
		one = protowire.AppendString(one, m.Address)
		one = protowire.AppendTag(one, fieldFlags, protowire.VarintType)
		one = protowire.AppendVarint(one, flags)
		b = protowire.AppendTag(b, fieldMember, protowire.BytesType)
		b = protowire.AppendBytes(b, one)
	}
	return b
}

var errMembers = errors.New("raft: a list of members is damaged")

// readMembers reads what appendMembers wrote.
func readMembers(b []byte) ([]Member, error) {
	var list []Member
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 || number != fieldMember || kind != protowire.BytesType || len(list) == membersMax {
			return nil, errMembers
		}
		b = b[n:]
		one, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return nil, errMembers
		}
		b = b[n:]
		m, err := readMember(one)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

func readMember(b []byte) (m Member, err error) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return m, errMembers
		}
		b = b[n:]
		switch {
		case kind == protowire.BytesType && (number == fieldName || number == fieldAddress):
			s, n := protowire.ConsumeBytes(b)
			if n < 0 || len(s) > nameBytesMax {
				return m, errMembers
			}
			if number == fieldName {
				m.Name = string(s)
			} else {
				m.Address = string(s)
			}
			b = b[n:]
		case kind == protowire.VarintType && number == fieldFlags:
			flags, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return m, errMembers
			}
			m.Learner, m.Removed = flags&flagLearner != 0, flags&flagRemoved != 0
			b = b[n:]
		default:
			return m, errMembers
		}
	}
	if m.Name == "" {
		return m, errMembers
	}
	m.ID = MemberID(m.Name)
	return m, nil
}
