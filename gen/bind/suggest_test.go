package bind

import (
	"strings"
	"testing"
)

// TestWhatWasMeant checks the suggestion of a finding about a wrong name, and that dependent
// findings are omitted.
func TestWhatWasMeant(t *testing.T) {
	const sender = "type Feed struct{}\n\nfunc (*Feed) Ping(out *FeedSender) error { return nil }\n\n"
	for _, c := range []struct {
		name, code string
		suggests   string // of the first finding; "" where nothing there was meant
		findings   int
	}{
		{"a renamed type", sender + "type M struct{}\n\ntype Drain struct{}\n\nfunc (*Drain) ReceiveM(M) {}\n",
			`type Drain has the methods: write "type: Drain"`, 1},
		{"and its alias", sender + "type M struct{}\n\ntype Drain struct{}\n\ntype Other = Drain\n\nfunc (*Drain) ReceiveM(M) {}\n",
			`type Drain has the methods: write "type: Drain"`, 1},
		{"a generic type, which cannot be it", sender + "type M struct{}\n\ntype Drain[T any] struct{}\n\nfunc (*Drain[T]) ReceiveM(M) {}\n", "", 1},
		{"one handler of the form", sender + "type M struct{}\n\ntype Sink struct{}\n\nfunc (*Sink) ReceiveOther(M) {}\n",
			"rename its method ReceiveOther to ReceiveM", 1},
		{"two handlers of the form", sender + "type M struct{}\n\ntype Sink struct{}\n\nfunc (*Sink) ReceiveOne(M) {}\n\nfunc (*Sink) ReceiveTwo(M) {}\n", "", 3},
		{"a handler of another form", sender + "type M struct{}\n\ntype Sink struct{}\n\nfunc (*Sink) ReceiveOther(int) {}\n", "", 2},
		{"a message without a type, and a handler that may take it", sender + "type Sink struct{}\n\nfunc (*Sink) ReceiveOther(int) {}\n", "", 1},
	} {
		r := small(t, newFolder(t), "-- a.go --\npackage small\n\n"+c.code, Options{})
		if len(r.Findings) != c.findings {
			t.Errorf("%s: %d findings, want %d:\n%s", c.name, len(r.Findings), c.findings, said(r.Findings))
			continue
		}
		got := ""
		for _, f := range r.Findings {
			if strings.HasPrefix(f.File, "topology.yml") {
				got = f.Suggestion
			}
		}
		if suggested := strings.HasPrefix(got, "rename") || strings.HasPrefix(got, "type "); suggested != (c.suggests != "") || suggested && got != c.suggests {
			t.Errorf("%s: suggests %q, want %q", c.name, got, c.suggests)
		}
	}
}
