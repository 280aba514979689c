package member

import (
	"slices"
	"time"
)

// status is the rank of a claim about a process. At the same boot id and incarnation, a
// higher status replaces a lower one.
type status uint8

const (
	statusAlive status = iota
	statusSuspect
	statusDead
	statusLeft
	statuses = iota
)

// record is a claim about a process, as nodes tell it each other. Claims about a name are
// ordered by boot id, incarnation and status, and each node keeps the greatest that it
// has received. So all nodes agree after they have received the same claims, in any
// order.
type record struct {
	name    string
	address string
	meta    []byte

	boot        uint64
	incarnation uint64
	status      status

	// accusers are hashes of the names of nodes that could not reach the process
	// themselves, sorted, at most accusersMax. Claims that are otherwise equal are merged
	// to the union of their accusers.
	accusers []uint32

	// age is how long the process has been dead or has left, for nodes that learn about
	// it late. So all nodes forget it at about the same time.
	age time.Duration
}

// compare orders claims about a name.
func (r *record) compare(boot, incarnation uint64, s status) int {
	for _, pair := range [...][2]uint64{{r.boot, boot}, {r.incarnation, incarnation}, {uint64(r.status), uint64(s)}} {
		if pair[0] != pair[1] {
			if pair[0] < pair[1] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// addAccusers adds hashes to sorted hashes, up to accusersMax, and reports whether any was
// missing.
func addAccusers(to, more []uint32) (union []uint32, added bool) {
	for _, a := range more {
		i, found := slices.BinarySearch(to, a)
		if !found && len(to) < accusersMax {
			to = slices.Insert(slices.Clip(to), i, a)
			added = true
		}
	}
	return to, added
}

// accuser returns the hash of a name: FNV-1a. Two names with the same hash count as one
// accuser, which makes a suspicion take longer at worst.
func accuser(name string) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h
}

// digest returns a number that depends on all parts of a claim that nodes must agree on.
// Claims about nodes that are dead or have left count as 0, because nodes forget them at
// slightly different times.
func (r *record) digest() uint64 {
	if r.status >= statusDead || r.boot == 0 {
		return 0
	}
	h := uint64(14695981039346656037)
	mix := func(b byte) { h = (h ^ uint64(b)) * 1099511628211 }
	for i := range len(r.name) {
		mix(r.name[i])
	}
	for _, v := range [...]uint64{r.boot, r.incarnation, uint64(r.status)} {
		for range 8 {
			mix(byte(v))
			v >>= 8
		}
	}
	// The digests of all claims are combined by XOR, so the bits must be well mixed.
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	return h
}
