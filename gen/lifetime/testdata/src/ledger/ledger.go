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
	later  []func()
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

// PointsToCopy is right: its receiver points to a copy before a closure uses it.
type PointsToCopy struct{ Name string }

func (u *PointsToCopy) Update(s *Accounts) error {
	c := *u
	u = &c
	s.later = append(s.later, func() { println(u.Name) })
	s.any = u
	return nil
}

func (u *PointsToCopy) Revert(s *Accounts) error {
	last := u
	for range s.Names {
		c := *last
		last = &c
		s.later = append(s.later, func() { println(last.Name) })
	}
	return nil
}

// PointsToCopyLate is kept before its receiver points to a copy, or after it points to the update again.
type PointsToCopyLate struct{ Name string }

func (u *PointsToCopyLate) Update(s *Accounts) error {
	original := u
	s.any = u // want `update pointer u is stored in field any of Accounts`
	c := *u
	u = &c
	s.later = append(s.later, func() { println(u.Name) })
	s.later = append(s.later, func() { println(original.Name) }) // want `update pointer u is stored in field later of Accounts`
	return nil
}

func (u *PointsToCopyLate) UpdateAt(s *Accounts, e fsm.Entry) (int, error) {
	original := u
	c := *u
	u = &c
	s.later = append(s.later, func() { println(u.Name) }) // want `update pointer u is stored in field later of Accounts`
	u = original
	return 0, nil
}

func (u *PointsToCopyLate) Revert(s *Accounts) error {
	original := u
	c := *u
	u = &c
	func() { u = original }()
	s.any = u // want `update pointer u is stored in field any of Accounts`
	return nil
}

// KeepsByVariable is kept through a pointer to a variable, or by a closure over a variable.
type KeepsByVariable struct{ Name string }

func (u *KeepsByVariable) Update(s *Accounts) error {
	pointers := []**KeepsByVariable{&u}
	s.any = *pointers[0] // want `update pointer u is stored in field any of Accounts`
	u = new(KeepsByVariable)
	return nil
}

func (u *KeepsByVariable) Revert(s *Accounts) error {
	var last *KeepsByVariable
	for range s.Names {
		last = u
		if len(s.Names) == len(s.later) {
			break
		}
		last = new(KeepsByVariable)
		s.later = append(s.later, func() { println(last.Name) }) // want `update pointer u is stored in field later of Accounts`
	}
	return nil
}

// PointsToCopySometimes is kept, because its receiver points to a copy on some paths only.
type PointsToCopySometimes struct{ Name string }

func (u *PointsToCopySometimes) Update(s *Accounts) error {
	if len(s.All) > 0 {
		c := *u
		u = &c
	}
	s.later = append(s.later, func() { println(u.Name) }) // want `update pointer u is stored in field later of Accounts`
	s.any = u                                             // want `update pointer u is stored in field any of Accounts`
	return nil
}

func (u *PointsToCopySometimes) Revert(s *Accounts) error {
	for range s.Names {
		c := *u
		u = &c
	}
	s.later = append(s.later, func() { println(u.Name) }) // want `update pointer u is stored in field later of Accounts`
	return nil
}

func (u *PointsToCopySometimes) UpdateAt(s *Accounts, e fsm.Entry) (int, error) {
	last := u
	for range s.Names {
		s.later = append(s.later, func() { println(last.Name) }) // want `update pointer u is stored in field later of Accounts`
		if len(s.later) > 1 {
			break
		}
		c := *u
		last = &c
	}
	return 0, nil
}

// Log is a state that gets copies of updates in lists. Each mistake has a field of its own.
type Log struct {
	All    []*Listed
	Values []Listed
	Names  []string

	pointed, nested, inStruct, array pair

	elements, inField [1]*Listed

	first, next *Listed
	appended    []*Listed
}

type pair struct{ left, right *Listed }

type lists struct {
	pairs []*pair
	array [1]*Listed
}

// Listed is put into local lists.
type Listed struct {
	Name string
	Next *Listed
}

// Update is right: a local list contains the update, and the state gets copies.
func (u *Listed) Update(s *Log) error {
	list := append([]*Listed{u}, s.All...)
	for _, x := range list {
		s.Names = append(s.Names, x.Name)
		c := *x
		s.All = append(s.All, &c)
	}
	s.copyAll(list)
	s.copyBoth(pair{u, u})
	s.Values = append(s.Values, values(list)...)
	return nil
}

func (s *Log) copyAll(list []*Listed) {
	for _, x := range list {
		s.Values = append(s.Values, *x)
	}
}

func (s *Log) copyBoth(p pair) {
	left, right := *p.left, *p.right
	s.All = append(s.All, &left, &right)
}

func values(list []*Listed) (found []Listed) {
	for _, x := range list {
		found = append(found, *x)
	}
	return found
}

// UpdateAt is right: the copy does not contain the pointer that is stored later.
func (u *Listed) UpdateAt(s *Log, e fsm.Entry) (int, error) {
	s.copyAll([]*Listed{u.Next})
	u.Next.Next = u
	return 0, nil
}

// Revert keeps the update that the list contains, or copies of other values that contain the pointer.
func (u *Listed) Revert(s *Log) error {
	list := append([]*Listed{u}, s.All...)
	s.keepFirst(list)                                  // want `update pointer u is stored in field first of Log by keepFirst`
	s.appended = append(s.appended, list...)           // want `update pointer u is stored in field appended of Log`
	s.next = values([]*Listed{{Next: u}})[0].Next      // want `update pointer u is stored in field next of Log`
	s.copyPointed([]*pair{{left: u}})                  // want `update pointer u is stored in field pointed of Log by copyPointed`
	s.copyNested([][]*pair{{{left: u}}})               // want `update pointer u is stored in field nested of Log by copyNestedList`
	s.copyInStruct(&lists{pairs: []*pair{{right: u}}}) // want `update pointer u is stored in field inStruct of Log by copyInStruct`
	local := pair{right: u}
	s.copyArray(&[1]*pair{&local}) // want `update pointer u is stored in field array of Log by copyArray`
	s.copyElements(&[1]*Listed{u}) // want `update pointer u is stored in field elements of Log by copyElements`
	l := new(lists)
	l.array[0] = u
	s.copyField([]*lists{l}) // want `update pointer u is stored in field inField of Log by copyField`
	return nil
}

func (s *Log) keepFirst(list []*Listed) { s.first = list[0] }

func (s *Log) copyPointed(list []*pair) { s.pointed = *list[0] }

func (s *Log) copyNested(lists [][]*pair) { s.copyNestedList(lists[0]) }

func (s *Log) copyNestedList(list []*pair) { s.nested = *list[0] }

func (s *Log) copyInStruct(l *lists) { s.inStruct = *l.pairs[0] }

func (s *Log) copyArray(list *[1]*pair) { s.array = *list[0] }

func (s *Log) copyElements(array *[1]*Listed) { s.elements = *array }

func (s *Log) copyField(list []*lists) { s.inField = list[0].array }

// Linked is kept by a copy, because the copy contains the pointer.
type Linked struct {
	Next *Linked
	List []*Linked
}

// Chain is a state that gets copies.
type Chain struct {
	copied Linked
	next   *Linked
}

func (u *Linked) Update(s *Chain) error {
	u.Next = u
	s.copyFirst([]*Linked{u}) // want `update pointer u is stored in field copied of Chain by copyFirst`
	return nil
}

func (u *Linked) Revert(s *Chain) error {
	*u = Linked{Next: u}
	s.copyFirst([]*Linked{u}) // want `update pointer u is stored in field copied of Chain by copyFirst`
	return nil
}

func (u *Linked) UpdateAt(s *Chain, e fsm.Entry) (int, error) {
	u.List[0].Next = u
	c := *u.List[0]
	s.next = c.Next // want `update pointer u is stored in field next of Chain`
	return 0, nil
}

func (s *Chain) copyFirst(list []*Linked) { s.copied = *list[0] }

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
