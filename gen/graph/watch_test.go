package graph

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/topogen/topogen/spec"
)

// robot is testdata/robot.yml, which has every setting for failures.
func robot(t *testing.T) *spec.Topology {
	t.Helper()
	path := filepath.Join("testdata", "robot.yml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	topology, findings := spec.Parse(path, text)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return topology
}

func robotSnapshot(t *testing.T) *Snapshot {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "robot-snapshot.json"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSnapshot(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFailuresAreDrawn(t *testing.T) {
	g := FromTopology(robot(t))
	with, findings := WithLoad(robot(t), robotSnapshot(t), "robot-snapshot.json")
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	for _, f := range formats {
		t.Run(f.ext, func(t *testing.T) {
			golden(t, "robot."+f.ext, f.write(g))
			golden(t, "robot-load."+f.ext, f.write(with))
		})
	}
	check(t, g, "robot")
	check(t, with, "robot with a load")
}

func TestWatchOfNodes(t *testing.T) {
	g := FromTopology(robot(t))
	want := map[string]*Watch{
		"camera": {Restart: "on-failure", MaxRestarts: 5, Delay: time.Second, MaxDelay: 30 * time.Second, Window: 5 * time.Minute, OnError: "stop"},
		"imu":    {Restart: "on-failure", OnError: "stop"}, // by its group alone
		"fusion": {Restart: "never", Timeout: time.Second, OnError: "retry", MaxAttempts: 3},
		"morgue": nil,
		"api":    nil,
	}
	for _, n := range g.Nodes {
		if w, ok := want[n.Name]; ok {
			if d := cmp.Diff(w, n.Watch); d != "" {
				t.Errorf("%s (-want +got):\n%s", n.Name, d)
			}
		}
	}
	last := g.Edges[len(g.Edges)-1]
	if !last.DeadLetter || g.Nodes[last.From].Name != "fusion" || g.Nodes[last.To].Name != "morgue" {
		t.Errorf("the last edge is %+v", last)
	}
}

// TestLettersOfASnapshot checks that a snapshot without dead letters does not match.
func TestLettersOfASnapshot(t *testing.T) {
	s := robotSnapshot(t)
	s.Edges = s.Edges[:len(s.Edges)-1]
	_, findings := WithLoad(robot(t), s, "s.json")
	if len(findings) != 1 || findings[0].Pointer != "/processors/fusion/on_error" {
		t.Errorf("%+v", findings)
	}
	var out bytes.Buffer
	for _, f := range findings {
		out.WriteString(f.Message)
	}
	if out.String() != "edge fusion -> morgue: DeadLetter is not in the snapshot" {
		t.Errorf("%s", out.String())
	}
}
