package bind

import "testing"

// TestNearHandlers: the prefix of handlers does not make their names similar.
func TestNearHandlers(t *testing.T) {
	for _, c := range []struct{ name, candidate, want string }{
		{"ReceiveItem", "RecieveItem", "RecieveItem"},
		{"ReceiveItem", "ReceiveItm", "ReceiveItm"},
		{"ReceiveM", "Receivem", "Receivem"},
		{"ReceiveM", "ReceiveN", ""},
		{"ReceiveOne", "ReceiveTwo", ""},
		{"ReceiveItem", "Item", ""},
		{"Item", "Itme", "Itme"},
	} {
		n := near{cells: nearCellsMax}
		if got := n.toHandler(c.name, []string{c.candidate}); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.name, c.candidate, got, c.want)
		}
	}
	if n := (near{}); n.toHandler("ReceiveItem", []string{"ReceiveItm"}) != "" {
		t.Error("looked on with no steps left")
	}
}
