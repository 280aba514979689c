package bind

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/spec/finding"
)

func TestVerify(t *testing.T) {
	r := small(t, newFolder(t), "-- b.go --\npackage small\n\nvar x int = \"ä\"\n\nfunc main() { New(Processors{}); RecordFeed(); wrong() }\n", Options{})
	if !r.plan().Bound || !r.Declares()("x") || r.Declares()("New") {
		t.Fatalf("bound %t, %v", r.plan().Bound, r.Findings)
	}
	user := `b.go:3:13: TG311 cannot use "ä" (untyped string constant) as int value in variable declaration` + "\n" +
		"b.go:5:48: TG311 undefined: wrong"
	ports := "package small\n\nimport \"time\"\n\ntype FeedSender struct{ at time.Time }\n\nfunc (*FeedSender) SendM(M) error { return nil }\n"
	for _, c := range []struct {
		name  string
		files map[string][]byte
		own   string
	}{
		{"nothing", nil, "[]"},
		{"ports", map[string][]byte{"topology_ports_gen.go": []byte(ports)}, "[]"},
		{"wrong ports", map[string][]byte{"topology_ports_gen.go": []byte(ports + "\nvar _ int = nil\n")},
			"[topology_ports_gen.go:9:13: cannot use nil as int value in variable declaration]"},
		{"a name that the runtime lacks", map[string][]byte{"topology_ports_gen.go": []byte("package small\n\nimport rt \"github.com/topogen/topogen/runtime/topo\"\n\nvar _ rt.Missing\n")},
			"[the runtime in go.mod must match this topogen, got github.com/topogen/topogen in " + filepath.Join(shared.dir, "topogen") + "; require the release of this topogen]"},
		{"a name that another package lacks", map[string][]byte{"topology_ports_gen.go": []byte("package small\n\nimport \"time\"\n\nvar _ time.Missing\n")},
			"[topology_ports_gen.go:5:12: undefined: time.Missing]"},
	} {
		v := verify(t, r, c.files)
		if got := fmt.Sprint(v.Own); got != c.own {
			t.Errorf("%s: own %s, want %s", c.name, got, c.own)
		}
		if got := said(v.User); got != user {
			t.Errorf("%s: user %s", c.name, got)
		}
	}
}

// TestManyTypeErrors checks the maximum number of reported type errors.
func TestManyTypeErrors(t *testing.T) {
	r := small(t, newFolder(t), "-- b.go --\npackage small\n\nfunc f() {\n"+strings.Repeat("\tlost()\n", typeErrorsMax+50)+"}\n", Options{})
	if n := len(verify(t, r, nil).User); n != typeErrorsMax {
		t.Errorf("%d findings, want %d", n, typeErrorsMax)
	}
}

// TestQuotedErrors checks that a type error is omitted if a finding quotes it, and only then.
func TestQuotedErrors(t *testing.T) {
	const missing = "TG302 type Sink has no method that receives M from \"feed\" (ReceiveM or ReceiveMFromFeed)"
	for _, c := range []struct{ method, found, user string }{
		{"ReceiveM(Lost)", "a.go:6:14: TG303 method ReceiveM(Lost) of Sink uses an unknown type (undefined: Lost)", ""},
		{"ReceiveThing(Lost)", "topology.yml:5:5: " + missing, "a.go:6:27: TG311 undefined: Lost"},
		{"ReceiveM(m M, x Bad)", "a.go:6:14: TG303 method ReceiveM(m M, x Bad) of Sink uses an unknown type",
			"a.go:8:10: TG311 undefined: Lost"},
	} {
		code := "package small\n\ntype M struct{}\ntype Feed struct{}\ntype Sink struct{}\nfunc (*Sink) " + c.method + " {}\nfunc (*Feed) Ping(out *FeedSender) error { return nil }\n"
		if strings.Contains(c.method, "Bad") {
			code += "type Bad Lost\n"
		}
		r := small(t, newFolder(t), "-- a.go --\n"+code, Options{})
		found := slices.DeleteFunc(slices.Clone(r.Findings), func(f finding.Finding) bool { return f.Severity == finding.Warning })
		if got := said(found); got != c.found {
			t.Errorf("%s: got %s", c.method, got)
		}
		if got := said(verify(t, r, nil).User); got != c.user {
			t.Errorf("%s: type errors %q, want %q", c.method, got, c.user)
		}
	}
}

// TestUndefinedSend checks that a type error about a send method that is not generated suggests
// the missing edge, if there is a type for its message.
func TestUndefinedSend(t *testing.T) {
	for name, want := range map[string]string{
		"SendLost":  `no edge from "feed" carries Lost: add "- feed -> TO: Lost" to edges`,
		"SendThing": "",
	} {
		code := "package small\n\ntype M struct{}\ntype Lost struct{}\ntype Feed struct{}\ntype Sink struct{}\nfunc (*Sink) ReceiveM(M) {}\n" +
			"func (*Feed) Ping(out *FeedSender) error { out." + name + "(Lost{}); return nil }\n"
		r := small(t, newFolder(t), "-- a.go --\n"+code, Options{})
		user := verify(t, r, nil).User
		if len(user) != 1 || user[0].Suggestion != want {
			t.Errorf("%s: %+v", name, user)
		}
	}
}

// TestContextFirst checks the signature that is suggested for a method whose context is not its
// first parameter.
func TestContextFirst(t *testing.T) {
	for signature, want := range map[string]string{
		"func (t *T) Ping() error":                    "func (t *T) Ping(ctx context.Context) error",
		"func (t *T) Ping(out *TSender) error":        "func (t *T) Ping(ctx context.Context, out *TSender) error",
		"func (t *T) Ping(ctx context.Context) error": "func (t *T) Ping(ctx context.Context) error",
	} {
		if got := contextFirst(signature, "Ping"); got != want {
			t.Errorf("%s: got %s", signature, got)
		}
	}
}
