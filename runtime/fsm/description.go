package fsm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ErrIncompatible means that this program cannot read a log, or would misread it,
// because a type or a limit has changed.
var ErrIncompatible = errors.New("fsm: the log was written with other types")

const (
	descriptionMax = 1 << 20 // bytes: about ten thousand fields
	fieldsMax      = 1 << 16 // of all messages of a description
)

// description says how the state, the updates and their results are encoded, and under
// which limits entries are applied. Its text has lines of these forms:
//
//	state .Accounts
//	message Accounts
//	1 Cents map string int64
//	limit Window 4096
type description struct {
	roots    map[string]string // the element of state, update and result
	messages map[string]message
	limits   map[string]string
}

type message map[int]field

type field struct{ name, form string }

// parseDescription parses a description. The text may come from a damaged log.
func parseDescription(text string) (*description, error) {
	d := &description{roots: make(map[string]string), messages: make(map[string]message), limits: make(map[string]string)}
	var current message
	n := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if n++; n > fieldsMax {
			return nil, fmt.Errorf("%w: a description of more than %d lines", ErrDamaged, fieldsMax)
		}
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "state", "update", "result":
			d.roots[word] = rest
		case "message":
			current = make(message)
			d.messages[rest] = current
		case "limit":
			name, value, _ := strings.Cut(rest, " ")
			d.limits[name] = value
		default:
			number, err := strconv.Atoi(word)
			name, form, ok := strings.Cut(rest, " ")
			if err != nil || !ok || current == nil {
				return nil, fmt.Errorf("%w: a description with the line %.100q", ErrDamaged, line)
			}
			current[number] = field{name, form}
		}
	}
	return d, nil
}

// Compatible returns an error if a program with the description now cannot open a log
// with the description then: a field has another kind or another number or no longer
// exists, or a limit differs. A field may be added, and an integer may become wider. A
// field may be renamed if no field of its message had the new name then. The error
// matches [ErrIncompatible]. An empty description is compatible with all others.
func Compatible(then, now string) error {
	if then == now || then == "" || now == "" {
		return nil
	}
	a, err := parseDescription(then)
	if err != nil {
		return err
	}
	b, err := parseDescription(now)
	if err != nil {
		return err
	}
	c := &comparison{then: a, now: b, seen: make(map[[2]string]bool)}
	for _, root := range []string{"state", "update", "result"} {
		if err := c.root(root); err != nil {
			return err
		}
	}
	for _, name := range []string{"Sessions", "SessionTTL", "Window", "Results", "Upcoming"} {
		x, y := a.limits[name], b.limits[name]
		if x != "" && y != "" && x != y {
			return fmt.Errorf("%w: the log was written with Options.%s %s, and here it is %s", ErrIncompatible, name, x, y)
		}
	}
	return nil
}

// Described returns the description in the data of an entry, or "". A node writes its
// description in the first command of its first entry.
func Described(data []byte) string {
	in := newReader(data)
	var c command
	if len(data) == 0 {
		return ""
	}
	if version, _ := in.entry(); version < openersVersion || !in.next(&c) || c.kind != commandDescribe {
		return ""
	}
	return string(c.name)
}

// comparison compares two descriptions.
type comparison struct {
	then, now *description
	seen      map[[2]string]bool
}

func (c *comparison) root(kind string) error {
	then, now := c.then.roots[kind], c.now.roots[kind]
	switch {
	case then != "" && now != "":
		return c.forms("the "+kind, then, now)
	case then != "" && len(c.now.roots) > 0: // otherwise it does not describe types
		return fmt.Errorf("%w: the %s was %s, and it no longer exists", ErrIncompatible, kind, c.words(then))
	}
	return nil
}

// forms compares two elements.
func (c *comparison) forms(where, then, now string) error {
	a, b := strings.Fields(then), strings.Fields(now)
	same := len(a) == len(b)
	for i := 0; i < len(a) && same; i++ {
		_, nested := strings.CutPrefix(a[i], ".")
		if nested && strings.HasPrefix(b[i], ".") {
			continue
		}
		same = a[i] == b[i] || a[i] == "int32" && b[i] == "int64" || a[i] == "uint32" && b[i] == "uint64"
	}
	if !same {
		return fmt.Errorf("%w: %s was %s, and is %s now: keep this field, and add another one for the new type", ErrIncompatible, where, c.words(then), c.words(now))
	}
	for i := range a {
		if strings.HasPrefix(a[i], ".") {
			if err := c.messages(a[i][1:], b[i][1:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// messages compares the fields of two messages that are used in the same place.
func (c *comparison) messages(then, now string) error {
	pair := [2]string{then, now}
	if c.seen[pair] {
		return nil
	}
	c.seen[pair] = true
	a, b := c.then.messages[then], c.now.messages[now]
	if len(c.seen) > fieldsMax {
		return fmt.Errorf("%w: descriptions with more than %d pairs of messages", ErrDamaged, fieldsMax)
	}
	numbers := make(map[string]int, len(b))
	for number, y := range b {
		numbers[y.name] = number
	}
	for _, number := range slices.Sorted(maps.Keys(a)) {
		x := a[number]
		y, ok := b[number]
		if other, exists := numbers[x.name]; exists && other != number {
			return renumbered(then, x.name, number, other)
		}
		where := fmt.Sprintf("field %d of %s, %s,", number, then, x.name)
		switch {
		case ok:
			if err := c.forms(where, x.form, y.form); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: %s was %s, and it no longer exists: keep the field, because the log may contain it; if it was renamed, rename it in topology.wire.yml too, and remove the line with the sum of its message; or start the newer program, which has it", ErrIncompatible, where, c.words(x.form))
		}
	}
	return nil
}

// renumbered returns the error for a field that has another number now. It is not taken for
// two renamed fields, because without topology.wire.yml the numbers follow the order of the
// fields in Go, and the log would be misread without any other sign.
func renumbered(message, field string, then, now int) error {
	return fmt.Errorf("%w: %s of %s was field %d, and is field %d now, so the log would be misread: restore the topology.wire.yml of the program that wrote the log, and run topogen build. "+
		"If field %[5]d got its number on purpose, give it a name that no other field of %[3]s had", ErrIncompatible, field, message, then, now)
}

// words formats an element for an error.
func (c *comparison) words(form string) string {
	words := strings.Fields(form)
	for i := range words {
		words[i] = strings.TrimPrefix(words[i], ".")
	}
	if len(words) == 3 && words[0] == "map" {
		return "map[" + words[1] + "]" + words[2]
	}
	return strings.Join(words, " ")
}
