package red

import "testing"

func TestAnswer(t *testing.T) {
	if answer != 42 {
		t.Error("the answer must be 42")
	}
}
