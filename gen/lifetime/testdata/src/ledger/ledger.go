// Package ledger has state machines. The types of updates are named after the behavior of their methods.
package ledger

import "github.com/topogen/topogen/runtime/fsm"

// Accounts is the state.
type Accounts struct {
	All    []*KeepsItself
	Last   map[string]*KeepsItself
	Part   *int
	Array  []int
	Names  []string
	Copies []*KeepsCopies
	Values []*ByValue
	any    any
}

// last is a mistake for another reason, too: each replica has its own.
var last *KeepsElsewhere

// KeepsItself is kept in the state.
type KeepsItself struct{ Name string }

func (u *KeepsItself) Update(s *Accounts) error {
	s.All = append(s.All, u) // want `update pointer u is stored in field All of Accounts, but it is valid only until Update returns \(copy the update: \*u\)`
	if s.Last == nil {
		s.Last = make(map[string]*KeepsItself)
	}
	s.Last[u.Name] = u // want `update pointer u is stored in field Last of Accounts`
	return nil
}

func (u *KeepsItself) Revert(s *Accounts) error {
	s.any = u // want `update pointer u is stored in field any of Accounts, but it is valid only until Revert returns`
	return nil
}

// KeepsPartAt leaves the address of a field and an array in the state.
type KeepsPartAt struct {
	Cents int
	Days  [7]int
}

func (u *KeepsPartAt) UpdateAt(s *Accounts, e fsm.Entry) (*int, error) {
	s.Part = &u.Cents   // want `update pointer u is stored in field Part of Accounts, but it is valid only until UpdateAt returns`
	s.Array = u.Days[:] // want `update pointer u is stored in field Array of Accounts`
	return &u.Cents, nil
}

// KeepsByHelper is kept by a method of the state.
type KeepsByHelper struct{ Name string }

func (u *KeepsByHelper) Update(s *Accounts) error {
	s.keep(u) // want `update pointer u is stored in field any of Accounts by keep \(ledger.go:\d+\)`
	return nil
}

func (s *Accounts) keep(v any) { s.any = v }

// KeepsElsewhere is kept outside of the state.
type KeepsElsewhere struct{ Done chan *KeepsElsewhere }

func (u *KeepsElsewhere) Update(s *Accounts) error {
	last = u              // want `update pointer u is stored in the package variable last`
	u.Done <- u           // want `update pointer u is sent on a channel`
	go func() { _ = u }() // want `update pointer u is used in another goroutine`
	return nil
}

// KeepsCopies is right: the state owns what an update points to, and a result is encoded at once.
type KeepsCopies struct {
	Names []string
	Self  *KeepsCopies
}

func (u *KeepsCopies) Update(s *Accounts) (*KeepsCopies, error) {
	kept := *u
	s.Copies = append(s.Copies, &kept)
	s.Names = u.Names
	u.Self = u
	return u, nil
}

// ByValue gets a copy of the update.
type ByValue struct{ Name string }

func (u ByValue) Update(s *Accounts) error {
	s.Values = append(s.Values, &u)
	return nil
}

// NotAnUpdate has a method Update, but it is not the update of a state machine.
type NotAnUpdate struct{}

func (u *NotAnUpdate) Update(s *Accounts) error {
	s.any = u
	return nil
}
