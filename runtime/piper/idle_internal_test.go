package piper

import "testing"

// TestATopologyWithAnExternalSenderIsIdle: the group of an external sender has no instances.
func TestATopologyWithAnExternalSenderIsIdle(t *testing.T) {
	p, err := New(Spec{Name: "test", Processors: []Processor{{Name: "api", External: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if !(Interior{p}).IsIdle(func() bool { return false }) {
		t.Error("the topology is not idle")
	}
}
