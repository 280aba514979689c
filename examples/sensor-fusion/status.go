package main

import (
	"fmt"
	"strings"
	"time"
)

// Status prints a line for each change and, on a terminal, a status line for each State.
// It also computes the errors of the estimates.
type Status struct {
	screen *Screen
	start  time.Time
	last   State
	errors [modeCount]mean
}

// NewStatus returns a Status that prints to stdout.
func NewStatus() *Status { return &Status{screen: stdout} }

func (s *Status) ReceiveState(m State) {
	if s.start.IsZero() {
		s.start = m.At
		s.printChange(&m, "the robot knows where it is")
	}
	off := m.Position.minus(path(m.At)).length()
	s.errors[m.Mode()].add(off)
	for in, name := range sensors {
		before, now := s.last.Silent[in], m.Silent[in]
		if before.IsZero() && !now.IsZero() {
			s.printChange(&m, name+" is silent")
		}
		if m.Restarts[in] > s.last.Restarts[in] {
			s.printChange(&m, name+" was restarted")
		}
		if !before.IsZero() && now.IsZero() {
			s.printChange(&m, fmt.Sprintf("%s is back after %.1f s", name, m.At.Sub(before).Seconds()))
		}
	}
	s.last = m
	s.screen.Rewrite(s.line(&m, off))
}

// printChange prints a change.
func (s *Status) printChange(m *State, what string) {
	s.screen.Print(fmt.Sprintf("%5.1f s  %-9s  %s", m.At.Sub(s.start).Seconds(), m.Mode(), what))
}

// line returns the status line.
func (s *Status) line(m *State, off float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%5.1f s  %-9s  at (%5.1f, %5.1f) m, off by %.2f m", m.At.Sub(s.start).Seconds(), m.Mode(), m.Position.X, m.Position.Y, off)
	for in, name := range sensors {
		if since := m.Silent[in]; !since.IsZero() {
			fmt.Fprintf(&b, "  no %s for %.1f s", name, m.At.Sub(since).Seconds())
		}
	}
	return b.String()
}

// mean is the mean of the added values.
type mean struct {
	sum   float64
	count int
}

func (m *mean) add(x float64) { m.sum += x; m.count++ }

func (m mean) String() string {
	if m.count == 0 {
		return "none"
	}
	return fmt.Sprintf("%.2f m", m.sum/float64(m.count))
}
