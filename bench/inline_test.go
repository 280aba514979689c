package bench

import (
	"os/exec"
	"strings"
	"testing"
)

// TestPutIsInlined: sends are only fast if Put is inlined into them. Put is just small
// enough for that, and no other test would detect a change.
func TestPutIsInlined(t *testing.T) {
	out, err := exec.Command("go", "build", "-gcflags=-m", "./topologies/pipeline").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "topology_ports_gen.go") && strings.Contains(line, "inlining call to queue.Put[") {
			return
		}
	}
	t.Error("queue.Put is not inlined into the senders of topologies/pipeline")
}
