package bind

import "testing"

// TestNearHandlers checks that the common prefix does not make names of handlers similar.
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
		if got := new(binder).nearHandler(c.name, []string{c.candidate}); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.name, c.candidate, got, c.want)
		}
	}
	b := new(binder)
	b.near.Spend(1 << 30)
	if b.nearHandler("ReceiveItem", []string{"ReceiveItm"}) != "" {
		t.Error("looked on with no steps left")
	}
}
