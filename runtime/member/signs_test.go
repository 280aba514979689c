package member

import (
	"slices"
	"testing"
)

// TestSigns: each node that was heard is reported once.
func TestSigns(t *testing.T) {
	var s signs
	heard := func() (names []string) {
		s.take(func(name string) { names = append(names, name) })
		slices.Sort(names)
		return names
	}
	s.set("n1")
	s.set("n2")
	s.set("n1")
	if got := heard(); !slices.Equal(got, []string{"n1", "n2"}) {
		t.Errorf("heard %v", got)
	}
	if got := heard(); got != nil {
		t.Errorf("heard %v again", got)
	}
	for i := range signsMax + 10 {
		s.set(string(rune(i + 1000)))
	}
	if got := len(heard()); got != signsMax-2 {
		t.Errorf("%d names, want the limit", got)
	}
}

// TestEventsOfASlowObserver: events that wait for long are replaced by one EventLost.
func TestEventsOfASlowObserver(t *testing.T) {
	entered, proceed, seen := make(chan bool, 1), make(chan bool), make(chan EventKind, eventsMax)
	e := NewEvents(func(event Event) {
		if event.Kind == EventJoined {
			entered <- true
		}
		<-proceed
		seen <- event.Kind
	})
	e.Start()
	e.Add(Event{Kind: EventJoined})
	<-entered
	for range eventsMax + 5 {
		e.Add(Event{Kind: EventAlive})
	}
	close(proceed)
	for lost := false; !lost; {
		lost = <-seen == EventLost
	}
	e.Close()
}
