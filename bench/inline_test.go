package bench

import (
	"os/exec"
	"strings"
	"testing"
)

// A send is as fast as it is because Put is inlined into it. Put is just small
// enough for that, which no other test would notice.
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
