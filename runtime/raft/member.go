package raft

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/topogen/topogen/runtime/transport"
)

const (
	membersMax   = 64                        // of a group at one time, and in data from disks and peers; usual groups have three to nine voters
	nameBytesMax = transport.AddressBytesMax // of a member's name or address
	idMask       = 1<<63 - 1                 // ids must be smaller than the special ids of the engine
)

// Member is a node of a group. Its ID belongs to its disk and is never used again. Name
// and Address can change and can be used again.
type Member struct {
	ID      uint64
	Name    string
	Address string // host:port, for transports that connect to it
	Learner bool   // the member gets the log and has no vote
	Moved   bool   // Address was set by a change, and takes precedence over the configured peers of a node
	Was     string // previous name, which the node uses until it restarts after a renaming

	// Leaving is set while the group leaves joint consensus: the member was removed, but
	// its vote still counts among the old members.
	Leaving bool
}

// MemberID returns the id that a member with a name had before ids were random. Old logs
// still contain such ids.
func MemberID(name string) uint64 { return maskID(xxhash.Sum64String(name)) }

func maskID(n uint64) uint64 { return max(n&idMask, 1) } // the engine uses 0 for "no node"

// newID returns a random id.
func newID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return maskID(binary.BigEndian.Uint64(b[:]))
}

// members are the members of a group, by id.
type members map[uint64]Member

// list returns the members in the order of their names.
func (m members) list() []Member {
	return slices.SortedFunc(maps.Values(m), func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
}

// apply applies a change of members, and removes the members that have left.
func (m members) apply(changed []Member, conf *pb.ConfState) {
	for _, c := range changed {
		m[c.ID] = c
	}
	maps.DeleteFunc(m, func(id uint64, o Member) bool {
		return o.Leaving && !slices.Contains(conf.GetVotersOutgoing(), id)
	})
}

// named returns the member with a name.
func (m members) named(name string) (Member, bool) {
	for _, o := range m {
		if o.Name == name && !o.Leaving {
			return o, true
		}
	}
	return Member{}, false
}

// Fields of a Member in protobuf's wire format; fieldMember is the field of a list.
const (
	fieldMember  = 1
	fieldName    = 1
	fieldAddress = 2
	fieldFlags   = 3
	fieldID      = 4
	fieldWas     = 5
)

const (
	flagLearner = 1 << iota
	flagLeaving // in logs from before ids were numbers: the member was removed at some time
	flagMoved
)

// appendMembers appends an encoded list of members.
func appendMembers(b []byte, list []Member) []byte {
	for _, m := range list {
		b = protowire.AppendTag(b, fieldMember, protowire.BytesType)
		b = protowire.AppendBytes(b, appendMember(nil, m))
	}
	return b
}

func appendMember(b []byte, m Member) []byte {
	flags := uint64(0)
	for flag, set := range map[uint64]bool{flagLearner: m.Learner, flagLeaving: m.Leaving, flagMoved: m.Moved} {
		if set {
			flags |= flag
		}
	}
	b = protowire.AppendTag(b, fieldName, protowire.BytesType)
	b = protowire.AppendString(b, m.Name)
	b = protowire.AppendTag(b, fieldAddress, protowire.BytesType)
	b = protowire.AppendString(b, m.Address)
	b = protowire.AppendTag(b, fieldFlags, protowire.VarintType)
	b = protowire.AppendVarint(b, flags)
	b = protowire.AppendTag(b, fieldID, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, m.ID)
	if m.Was == "" {
		return b
	}
	b = protowire.AppendTag(b, fieldWas, protowire.BytesType)
	return protowire.AppendString(b, m.Was)
}

var errMembers = errors.New("raft: a list of members is damaged")

// readMembers reads the output of appendMembers.
func readMembers(b []byte) ([]Member, error) {
	var list []Member
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 || number != fieldMember || kind != protowire.BytesType || len(list) == 2*membersMax { // including members that are leaving
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
		case kind == protowire.BytesType:
			text := map[protowire.Number]*string{fieldName: &m.Name, fieldAddress: &m.Address, fieldWas: &m.Was}[number]
			s, n := protowire.ConsumeBytes(b)
			if n < 0 || len(s) > nameBytesMax || text == nil {
				return m, errMembers
			}
			*text = string(s)
			b = b[n:]
		case kind == protowire.VarintType && number == fieldFlags:
			flags, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return m, errMembers
			}
			m.Learner, m.Leaving, m.Moved = flags&flagLearner != 0, flags&flagLeaving != 0, flags&flagMoved != 0
			b = b[n:]
		case kind == protowire.Fixed64Type && number == fieldID:
			if m.ID, n = protowire.ConsumeFixed64(b); n < 0 || m.ID == 0 || m.ID > idMask {
				return m, errMembers
			}
			b = b[n:]
		default:
			return m, errMembers
		}
	}
	if m.Name == "" {
		return m, errMembers
	}
	if m.ID == 0 { // written before ids were numbers
		m.ID = MemberID(m.Name)
	}
	return m, nil
}

// saltBytes is the length of the random bytes that a founder adds to the hash of a group.
const saltBytes = 16

// hashGroup returns the identity of a group: a hash of the ids and names of its first
// members and of the founder's random bytes.
func hashGroup(first []Member, salt []byte) uint64 {
	h := sha256.New()
	_, _ = h.Write(salt)
	for _, m := range first {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, m.ID))
		_, _ = h.Write(append([]byte(m.Name), 0))
	}
	return maskID(binary.BigEndian.Uint64(h.Sum(nil)))
}

// groupText formats the identity of a group, or the id of a node.
func groupText(id uint64) string { return fmt.Sprintf("%016x", id) }
