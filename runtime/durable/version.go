package durable

import (
	"context"
	"fmt"
)

// version records the version with which the execution reached a place.
func (e *execution) version(change string, least, most int) (int, error) {
	if least > most || change == "" || len(nameVersion+change) > nameMax {
		return 0, e.misuse(fmt.Sprintf("Version(%q, %d, %d) is not valid", change, least, most))
	}
	v, ok := e.versions[change]
	if !ok {
		var err error
		if v, err = e.reach(change, least, most); err != nil {
			return 0, err
		}
		if e.versions == nil {
			e.versions = make(map[string]int)
		}
		e.versions[change] = v
	}
	if v < least || v > most {
		return 0, e.ending(e.diverge(fmt.Sprintf("it supports the versions %d to %d of %q, and it began with version %d", least, most, change, v)))
	}
	return v, nil
}

// reach returns the recorded version. An execution that has another record at this place
// came here before Version was called at all, so it has the oldest version, and the call
// uses no position.
func (e *execution) reach(change string, least, most int) (int, error) {
	if err := e.enter(); err != nil {
		return 0, err
	}
	name := nameVersion + change
	e.position++
	p := e.journal.records[e.journal.at(e.position)]
	var err error
	if p == nil {
		if err = e.proceed(); err == nil {
			p = e.journal.records[e.journal.at(e.position)]
		}
	}
	e.position--
	e.leave()
	if err != nil {
		return 0, e.ending(err)
	}
	if p != nil && p.Tags[tagStep] != name {
		return least, nil
	}
	if r, ok := e.backend.(*replayer); ok && p == nil && r.settled {
		return least, nil // the function had ended without a call of Version here
	}
	v := 0
	err = e.internalStep(name, func(context.Context) (any, error) { return most, nil }, &v)
	return v, err
}
