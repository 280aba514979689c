package raft

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/effects"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestEverySettingReachesTheNode names the tests that observe the effect of each setting, most of them
// TestSettingsReachTheNode.
func TestEverySettingReachesTheNode(t *testing.T) {
	effects.Check(t, effects.Table{
		"Config.Topology":        effects.By("TestSettingsReachTheNode"),
		"Config.Group":           effects.By("TestSettingsReachTheNode"),
		"Config.Instance":        effects.By("TestSettingsReachTheNode"),
		"Config.Instances":       effects.By("TestSettingsReachTheNode"),
		"Config.Node":            effects.By("TestSettingsReachTheNode"),
		"Config.Peers":           effects.By("TestSettingsReachTheNode"),
		"Config.Join":            effects.By("TestSettingsReachTheNode"),
		"Config.Dir":             effects.By("TestOneDisk"),
		"Config.Sync":            effects.By("TestSettingsReachTheDisk"),
		"Config.SyncInterval":    effects.By("TestSettingsReachTheDisk"),
		"Config.SnapshotEvery":   effects.By("TestSettingsReachTheNode"),
		"Config.ChecksumEvery":   effects.By("TestSettingsReachTheNode"),
		"Config.NoChecksums":     effects.By("TestChecksumsAreOff"),
		"Config.ElectionTimeout": effects.By("TestSettingsReachTheNode"),
		"Config.Heartbeat":       effects.By("TestSettingsReachTheNode"),
		"Config.Prefer":          effects.By("TestSettingsReachTheNode"),
		"Config.Forward":         effects.By("TestSettingsReachTheNode"),
		"Config.SessionTTL":      effects.By("TestSessionsAreShort"),
		"Config.TLSCert":         effects.By("TestOperators"),
		"Config.TLSKey":          effects.By("TestOperators"),
		"Config.TLSCA":           effects.By("TestOperators"),
		"Config.TrustDomain":     effects.By("TestSettingsReachTheListener"),
		"Config.Insecure":        effects.By("TestSettingsReachTheListener"),
		"Config.NodeTLS":         effects.By("TestCertificateOfTheNode"),
		"Config.NodeTrustDomain": effects.By("TestCertificateOfTheNode"),
		"Config.Now":             effects.By("TestSettingsReachTheNode"),
		"Config.Called":          effects.By("TestCalls"),
		"Config.Transport":       effects.By("TestSettingsReachTheNode"),
		"Config.Carried":         effects.By("TestTheCoreOfRast"),
		"Config.Disk":            effects.By("TestSettingsReachTheNode"),
		"Config.Logger":          effects.By("TestSettingsReachTheNode"),
		"Config.LostLog":         effects.By("TestSettingsReachTheNode"),
		"Config.Listener":        effects.By("TestListenerOfAConfig"),

		VariableNode:     fromEnvironment(VariableNode, "n2", func(c *Config) any { return c.Node }, "n2"),
		VariableDir:      fromEnvironment(VariableDir, "x", func(c *Config) any { return c.Dir }, filepath.Join("x", "g")),
		VariablePeers:    fromEnvironment(VariablePeers, "n3=h:3", func(c *Config) any { return c.Peers }, map[string]string{"n3": "h:3"}),
		VariableJoin:     fromEnvironment(VariableJoin, "true", func(c *Config) any { return c.Join }, true),
		VariableCert:     fromEnvironment(VariableCert, "x", func(c *Config) any { return c.TLSCert }, "x"),
		VariableKey:      fromEnvironment(VariableKey, "x", func(c *Config) any { return c.TLSKey }, "x"),
		VariableCA:       fromEnvironment(VariableCA, "x", func(c *Config) any { return c.TLSCA }, "x"),
		VariableTrust:    fromEnvironment(VariableTrust, "x", func(c *Config) any { return c.TrustDomain }, "x"),
		VariableInsecure: fromEnvironment(VariableInsecure, "true", func(c *Config) any { return c.Insecure }, true),

		VariableNodeCert:  fromEnvironment(VariableNodeCert, "x", func(c *Config) any { return c.NodeTLS.Cert }, "x"),
		VariableNodeKey:   fromEnvironment(VariableNodeKey, "x", func(c *Config) any { return c.NodeTLS.Key }, "x"),
		VariableNodeCA:    fromEnvironment(VariableNodeCA, "x", func(c *Config) any { return c.NodeTLS.CA }, "x"),
		VariableNodeTrust: fromEnvironment(VariableNodeTrust, "x", func(c *Config) any { return c.NodeTrustDomain }, "x"),

		VariableNoSums: fromEnvironment(VariableNoSums, "true", func(c *Config) any { return c.NoChecksums }, true),
	}, Config{})
}

// fromEnvironment sets an environment variable, and wants a field of the configuration to have its value. The
// fields are tested above.
func fromEnvironment(variable, text string, get func(c *Config) any, want any) func(*testing.T) {
	return func(t *testing.T) {
		t.Setenv(variable, text)
		c := &Config{Group: "g", Node: "n1", Dir: "y", Peers: map[string]string{"n1": "h:1"}}
		if err := c.FromEnvironment(); err != nil {
			t.Fatal(err)
		}
		if got := get(c); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// TestSettingsReachTheDisk: the folder of a log gets the mode and the interval of its syncs. Package
// wal tests what the log does with them.
func TestSettingsReachTheDisk(t *testing.T) {
	disk := startedNode(t, Config{Topology: "test", Group: "numbers", Dir: memdir.Quick(t), Sync: wal.Interval, SyncInterval: 7 * time.Second}).Disk
	if o := disk.(*folder).options; o.Sync != wal.Interval || o.Interval != 7*time.Second {
		t.Errorf("the log gets %+v", o)
	}
}
