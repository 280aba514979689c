// Package model has an update of another package.
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

// Pages are all lines by page.
type Pages = map[int][]string

// Place is where an entry is: its page, which line on it, and when it was written.
type Place struct {
	Page, Line int
	Time       time.Time
}

// ErrEmpty is what an entry without a line ends with.
var ErrEmpty = errors.New("the line is empty")

// UpdateAt writes it.
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
