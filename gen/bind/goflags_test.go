package bind

import (
	"slices"
	"testing"
)

// TestFlagsAreJoined checks that GOFLAGS without -modfile has the same meaning.
func TestFlagsAreJoined(t *testing.T) {
	e := newEnvironment([]string{"GOENV=off", `GOFLAGS=-v -modfile=other.mod '-tags=a b' "-tags=a 'b'" -x="y"`}, "-tags=c")
	env, flags := e.buildFlags(e.list)
	if want := []string{"-modfile=other.mod", "-tags=c"}; !slices.Equal(flags, want) {
		t.Errorf("flags %q, want %q", flags, want)
	}
	if got, want := env[len(env)-1], `GOFLAGS= -v "-tags=a b" "-tags=a 'b'" -x="y"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
