package stale

import "testing"

func TestOnce(t *testing.T) {
	if once != 1 || twice != again {
		t.Error("changed")
	}
}
