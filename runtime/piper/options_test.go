package piper_test

import (
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/piper"
)

// workersOf is the number of workers of the topology.
func workersOf(top *topology) int { return top.pool.Snapshot().Workers }

// TestFileEnvironmentOption checks that the environment overrides the file, and an
// option both.
func TestFileEnvironmentOption(t *testing.T) {
	procs := []proc{{}}
	spec := build(t, procs, nil).spec()
	spec.Workers = 3
	fromFile, err := piper.New(spec)
	if err != nil || fromFile.Snapshot().Workers != 3 {
		t.Fatalf("%d workers, %v", fromFile.Snapshot().Workers, err)
	}
	t.Setenv("TOPOGEN_WORKERS", "5")
	fromEnvironment, err := piper.New(spec)
	if err != nil || fromEnvironment.Snapshot().Workers != 5 {
		t.Fatalf("%d workers, %v", fromEnvironment.Snapshot().Workers, err)
	}
	if top := build(t, procs, nil, piper.Workers(7)); workersOf(top) != 7 {
		t.Errorf("%d workers", workersOf(top))
	}
	t.Setenv("TOPOGEN_WORKERS", "")
	if top := build(t, procs, nil, nil, piper.Workers(0)); workersOf(top) < 1 {
		t.Errorf("%d workers", workersOf(top))
	}
}

// TestMessageLimit checks the default and the syntax of the environment variable.
func TestMessageLimit(t *testing.T) {
	spec := build(t, []proc{{}}, nil).spec()
	for text, want := range map[string]int{"": 64 << 20, "65536": 64 << 10, "100KiB": 100 << 10, "3MiB": 3 << 20, "1GiB": 1 << 30} {
		t.Setenv("TOPOGEN_MESSAGE_LIMIT", text)
		p, err := piper.New(spec)
		if err != nil || p.MessageLimit() != want {
			t.Errorf("%q: %d, %v", text, p.MessageLimit(), err)
		}
	}
	t.Setenv("TOPOGEN_MESSAGE_LIMIT", "")
	spec.MessageLimit = 1 << 20
	if p, err := piper.New(spec); err != nil || p.MessageLimit() != 1<<20 {
		t.Errorf("%d, %v", p.MessageLimit(), err)
	}
}

// TestMalformedEnvironmentIsAnErrorOfNew checks that the error names the variable and
// its text.
func TestMalformedEnvironmentIsAnErrorOfNew(t *testing.T) {
	for name, texts := range map[string][]string{
		"TOPOGEN_WORKERS":       {"many", "-1", "1.5", "99999"},
		"TOPOGEN_BATCH":         {"0", "x", "-3", "65537"},
		"TOPOGEN_REBALANCE":     {"5", "soon", "-1s"},
		"TOPOGEN_DRAIN_TIMEOUT": {"10", "-1ms", "1 s"},
		"TOPOGEN_CYCLE_LIMIT":   {"-1", "1e6", "much"},
		"TOPOGEN_MESSAGE_LIMIT": {"1", "-1MiB", "1 MiB", "1MB", "2GiB", "5000000000GiB", "much"},
	} {
		for _, text := range texts {
			t.Run(name+"="+text, func(t *testing.T) {
				t.Setenv(name, text)
				_, err := construct([]proc{{}}, nil)
				if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), text) {
					t.Errorf("New returns %v", err)
				}
			})
		}
	}
	for name, text := range map[string]string{
		"TOPOGEN_WORKERS": "2", "TOPOGEN_BATCH": "65536", "TOPOGEN_REBALANCE": "0s", "TOPOGEN_DRAIN_TIMEOUT": "1m30s", "TOPOGEN_MESSAGE_LIMIT": "1GiB",
	} {
		t.Setenv(name, text)
	}
	build(t, []proc{feed(0, 10, 1), {}}, []edge{{from: 0, to: 1}}).runWhole(t)
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for name, option := range map[string]piper.Option{
		"workers": piper.Workers(-1), "batch": piper.Batch(0), "rebalance": piper.Rebalance(-1), "drain": piper.DrainTimeout(-time.Second),
		"no message": piper.MessageLimit(0), "huge messages": piper.MessageLimit(1<<30 + 1),
	} {
		if _, err := construct([]proc{{}}, nil, option); err == nil {
			t.Errorf("%s: New returns no error", name)
		}
	}
}
