package plan

import "testing"

// TestComplete checks that the plan has the facts, and that neither the outline nor the facts
// change.
func TestComplete(t *testing.T) {
	outline := pairOutline()
	facts := NewFacts(outline)
	facts.Bound, facts.Wire = true, "w"
	facts.Processors[0].Ping = &Method{Name: "Ping"}
	facts.Processors[0].Sends[0] = SendFacts{Clone: true, Proposer: true}
	facts.Processors[1].Machine = MachineFacts{At: true, KeyType: "string", Key: &Selector{Access: []string{"Account", "ID"}, Nils: []int{1}}}
	facts.Edges[0] = EdgeFacts{Pointerful: true, CloneAgain: true}
	before, found := Hash(outline), HashOf(facts)
	p := Complete(outline, facts)
	if Hash(outline) != before || HashOf(facts) != found {
		t.Error("the outline or the facts changed")
	}
	if !p.Bound || p.Wire != "w" || p.Processors[0].Ping == nil || p.Groups[0].OnlyTimers {
		t.Errorf("%+v", p)
	}
	if s := p.Processors[0].Sends[0]; !s.Clone || !s.Proposer || s.Name != "SendM" {
		t.Errorf("%+v", s)
	}
	if m := p.Processors[1].Machine; !m.At || m.KeyType != "string" || m.Keyed.Access[0] != "Account" {
		t.Errorf("%+v", m)
	}
	if e := p.Edges[0]; !e.Pointerful || !e.CloneAgain || len(e.Access) != 3 || e.Access[0] != "Update" || e.Nils[0] != 2 {
		t.Errorf("%+v", e)
	}
	if again := Complete(outline, facts); Hash(again) != Hash(p) {
		t.Error("the same again gives another plan")
	}
	if Complete(outline, nil) != outline {
		t.Error("without facts it is the outline")
	}
}

// pairOutline is a -> b: M, where b is a machine with several instances.
func pairOutline() *Plan {
	return &Plan{
		Processors: []Processor{
			{Name: "a", Outgoing: []int{0}, Sends: []Send{{Name: "SendM", Message: "M", Edges: []int{0}}}},
			{Name: "b", Incoming: []int{0}, Instances: 2, Group: 1, Machine: &Machine{Keyed: &Edge{Route: Key, Selector: Selector{Access: []string{"Account"}}}}},
		},
		Edges:  []Edge{{From: 0, To: 1, Route: Key, Selector: Selector{Access: []string{"Update", "Account"}}}},
		Groups: []Group{{Processors: []int{0}, OnlyTimers: true}, {Processors: []int{1}, Upstream: []int{0}}},
	}
}
