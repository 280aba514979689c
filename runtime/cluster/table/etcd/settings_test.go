package etcd

import (
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/effects"
	"github.com/topogen/topogen/runtime/cluster/table"
)

// TestSettingsReachTheTable sets each option, and observes the error with which the table refuses it.
func TestSettingsReachTheTable(t *testing.T) {
	refused := func(o Options, want string) func(*testing.T) {
		return func(t *testing.T) {
			if _, err := Opener(o)(table.Setup{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
	endpoints := []string{"http://127.0.0.1:1"}
	effects.Check(t, effects.Table{
		"Options.Endpoints": refused(Options{Endpoints: endpoints}, "Config.Prefix must have 1"),
		"Options.Prefix":    refused(Options{Endpoints: endpoints, Prefix: "/" + strings.Repeat("x", 599)}, "got 600"),
		"Options.Cert":      refused(Options{Endpoints: endpoints, Prefix: "/x", Cert: "no-cert", Key: "no-key"}, "no-cert"),
		"Options.Key":       refused(Options{Endpoints: endpoints, Prefix: "/x", Cert: "settings_test.go", Key: "no-key"}, "no-key"),
		"Options.CA":        refused(Options{Endpoints: endpoints, Prefix: "/x", CA: "no-ca"}, "no-ca"),
	}, Options{})
}
