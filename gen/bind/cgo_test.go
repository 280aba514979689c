package bind

import (
	"go/token"
	"testing"
)

// TestStandInForC: topogen does not report errors that may depend on the types of C, neither in
// files of the user nor in generated files. It reports errors about names.
func TestStandInForC(t *testing.T) {
	needsCgo(t)
	const c = `
-- c.go --
package small

// typedef int status;
// enum { COUNT = 3 };
import "C"

type Status C.status
type Handle = C.int
type Buffer [C.COUNT]byte

func use(n int) (Status, Handle, [3]byte) {
	var b [3]byte = Buffer{}
	return Status(n), Handle(n) + 1, b
}
`
	for _, x := range []struct{ name, files, want string }{
		{"types of C", c, ""},
		{"names", c + "\nfunc other() { lost() }\n\nfunc other() {}\n",
			"c.go:16:16: TG311 undefined: lost\nc.go:18:6: TG311 other redeclared in this block"},
		{"no C", "-- c.go --\npackage small\n\ntype Status int\n\nvar _ string = Status(1)\n",
			"c.go:5:16: TG311 cannot use Status(1) (constant 1 of int type Status) as string value in variable declaration"},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := small(t, newFolder(t), x.files, Options{})
			if got := said(r.Findings); got != "" {
				t.Errorf("findings: %s", got)
			}
			generated := map[string][]byte{"topology_ports_gen.go": []byte("package small\n\ntype FeedSender struct{}\n\nfunc (*FeedSender) SendM(M) error { return nil }\n")}
			if x.name != "no C" {
				generated["topology_gen.go"] = []byte("package small\n\nfunc generated(h Handle) uint64 { return uint64(Status(h)) }\n")
			}
			v := verify(t, r, generated)
			if got := said(v.User); got != x.want {
				t.Errorf("got %s\nwant %s", got, x.want)
			}
			if len(v.Own) > 0 {
				t.Error(v.Own)
			}
		})
	}
}

// TestStandInForCOfImport: a package that does not compile is checked from source, so its types of
// C are unknown too. Only its own error is reported.
func TestStandInForCOfImport(t *testing.T) {
	needsCgo(t)
	dir := newFolder(t)
	path := locate(token.NewFileSet(), newEnvironment(nil), writeSmall(t, dir, "")).root.path + "/c"
	r := small(t, dir, `
-- c/c.go --
package c

// typedef int status;
import "C"

type Status C.status

var _ int = ""
-- b.go --
package small

import "`+path+`"

func use(n int) c.Status { return c.Status(n) }
`, Options{})
	const want = "c/c.go:8:13: TG311 cannot use \"\" (untyped string constant) as int value in variable declaration"
	if got := said(verify(t, r, nil).User); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestLifetimesWithC: handlers of a package that imports "C" are analyzed. A function whose body does
// not compile with the stand-in for C is left out.
func TestLifetimesWithC(t *testing.T) {
	needsCgo(t)
	const text = `-- a.go --
package small

// typedef int status;
// int check(int n) { return n; }
import "C"

type M struct{ code C.status }

type Feed struct{ out *FeedSender }

func (f *Feed) Ping(out *FeedSender) error {
	C.check(1)
	f.out = out
	return nil
}

type Sink struct {
	last   *M
	status C.int
}

func (s *Sink) ReceiveM(m *M) {
	s.status = C.int(3)
	s.count(m)
	s.keep(m)
}

func (s *Sink) keep(m *M) { s.last = m }

func (s *Sink) count(m *M) int {
	s.last = m
	return int(C.check(1))
}
`
	generated := map[string][]byte{"topology_ports_gen.go": []byte("package small\n\ntype FeedSender struct{}\n\nfunc (*FeedSender) SendM(M) error { return nil }\n")}
	const want = "a.go:25:8: TG321 message pointer m is stored in field last of Sink by keep (a.go:28), but it is valid only until ReceiveM returns"
	if got := said(verify(t, small(t, newFolder(t), text, Options{}), generated).User); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	const lost = "\nfunc other() { lost() }\n"
	if got := said(verify(t, small(t, newFolder(t), text+lost, Options{}), generated).User); got != "a.go:35:16: TG311 undefined: lost" {
		t.Errorf("with a type error: %s", got)
	}
}

func needsCgo(t *testing.T) {
	if !newEnvironment(nil).context(nil).CgoEnabled {
		t.Skip("cgo is off")
	}
}
