package edges

import "testing"

// TestOneLine prints ids that would change the terminal.
func TestOneLine(t *testing.T) {
	text := "order \n\x1b[31m\u2028 \"ü\": ☕"
	if got, want := oneLine(text), `order \n\x1b[31m\u2028 "ü": ☕`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
