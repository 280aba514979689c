// Package model has an update of another package.
package model

// Entry is a line of the journal.
type Entry struct {
	Line string
	Page int
}

// Pages are all lines by page.
type Pages = map[int][]string

// Update writes it.
func (e *Entry) Update(p *Pages) error {
	if *p == nil {
		*p = make(Pages)
	}
	(*p)[e.Page] = append((*p)[e.Page], e.Line)
	return nil
}

// Revert takes it out again.
func (e *Entry) Revert(p *Pages) error {
	(*p)[e.Page] = (*p)[e.Page][:len((*p)[e.Page])-1]
	return nil
}
