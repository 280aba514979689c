package piper

import (
	"errors"
	"fmt"
)

// errorsMax bounds how many errors of one kind Run returns. If 100,000 instances fail
// for the same reason, the first few errors are enough.
const errorsMax = 16

// errorList is a list of errors of one kind: the first errors, and the number of
// further ones. The zero value is empty.
type errorList struct {
	first []error
	more  int
}

func (l *errorList) add(err error) {
	if len(l.first) < errorsMax {
		l.first = append(l.first, err)
	} else {
		l.more++
	}
}

// join returns err and the errors of the list as one error. kind describes the errors
// that were left out.
func (l *errorList) join(err error, kind string) error {
	if len(l.first) == 0 {
		return err
	}
	all := append([]error{err}, l.first...)
	if l.more > 0 {
		all = append(all, fmt.Errorf("pool: and %d more %s", l.more, kind))
	}
	return errors.Join(all...)
}
