// Package model has the update of a state machine in another package.
package model

import (
	"errors"
	"fmt"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
)

// Entry is a line of the journal.
type Entry struct {
	Line string
	Page int
}

// Pages has the lines of each page.
type Pages = map[int][]string

// Place is the position of an entry: page, line, and time of writing.
type Place struct {
	Page, Line int
	Time       time.Time
}

// ErrEmpty is the error of an entry without a line.
var ErrEmpty = errors.New("the line is empty")

// UpdateAt writes the entry.
func (e *Entry) UpdateAt(p *Pages, at fsm.Entry) (Place, error) {
	if e.Line == "" {
		return Place{}, fmt.Errorf("page %d: %w", e.Page, ErrEmpty)
	}
	if *p == nil {
		*p = make(Pages)
	}
	(*p)[e.Page] = append((*p)[e.Page], e.Line)
	return Place{e.Page, len((*p)[e.Page]), time.Unix(0, at.Time)}, nil
}
