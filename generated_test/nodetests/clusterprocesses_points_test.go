package nodetests_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pointPatches put calls of points.At into the code of the nodes. Each old text is once in its file.
var pointPatches = []struct{ file, old, new string }{
	{"generated_test/clusterprocesses/clusterprocesses.go",
		`return w.items.add(m.Source, m.N)`,
		`points.At("before handler"); err := w.items.add(m.Source, m.N); points.At("after handler"); return err`},
	{"runtime/cluster/confirm.go", `p.send(laneConfirm, b)`, `points.At("before confirmation"); p.send(laneConfirm, b)`},
	{"runtime/cluster/control.go", `lane, n := r.Uint(), r.Uint()`, `points.At("confirmation arrives"); lane, n := r.Uint(), r.Uint()`},
	{"runtime/cluster/node.go",
		`_, err := n.table.Txn(n.ctx, p.guards, []table.Change{p.agree})`,
		`points.At("before commit"); _, err := n.table.Txn(n.ctx, p.guards, []table.Change{p.agree}); points.At("after commit")`},
	{"runtime/cluster/begin.go",
		`if err := table.EnterWhen(ctx, n.table, me, n.mayEnter); err != nil {`,
		`points.At("before entering"); if err := table.EnterWhen(ctx, n.table, me, n.mayEnter); err != nil {`},
	{"runtime/cluster/begin.go", `n.names.hasEntered(n.table.Replica())`, `points.At("after entering"); n.names.hasEntered(n.table.Replica())`},
	{"runtime/cluster/agreement.go", `a.tell(to, groupMessage{kind: controlStatus`, `points.At("status"); a.tell(to, groupMessage{kind: controlStatus`},
	{"runtime/cluster/agreement.go", `a.tell(node, groupMessage{kind: controlQuery`, `points.At("query"); a.tell(node, groupMessage{kind: controlQuery`},
	{"runtime/cluster/agreement.go", `a.tell(from, groupMessage{kind: controlAnswer`, `points.At("answer"); a.tell(from, groupMessage{kind: controlAnswer`},
	{"runtime/cluster/record.go", `a.core.pool.Agree(i, p)`, `points.At("phase"); a.core.pool.Agree(i, p)`},
	{"runtime/cluster/core.go", `c.ended, c.endedAt, c.flushed =`, `points.At("finished"); c.ended, c.endedAt, c.flushed =`},
	{"runtime/cluster/end.go", `n.awaitLeaving()
	}`, `n.awaitLeaving(); points.At("end") }`},
	{"runtime/cluster/core.go", `c.draining, c.drainAt,`, `points.At("draining"); c.draining, c.drainAt,`},
	{"runtime/cluster/drain.go", `d.refused, d.refusedAt =`, `points.At("refuse"); d.refused, d.refusedAt =`},
	{"runtime/cluster/core.go", `c.left = true
`, `points.At("left"); c.left = true
`},
	// The engine of the address table, and the fence.
	{"generated_test/clusterprocesses/topology_gen.go", `raft.Opener(),`, `addressTable(raft.Opener()),`},
	{"generated_test/clusterprocesses/topology_gen.go", `Fence: "majority"`, `Fence: fence()`},
}

const pointsPackage = "github.com/topogen/topogen/internal/test/points"

// variableEngine selects the engine of the address table: broadcast, or the URL of an etcd.
const variableEngine = "CLUSTERPROCESSES_ADDRESSES"

// variableFence selects the fence: two nodes need "off", or a tie breaker.
const variableFence = "CLUSTERPROCESSES_FENCE"

// engineFile is added to package clusterprocesses.
const engineFile = `package clusterprocesses

import (
	"cmp"
	"os"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/cluster/table/broadcast"
	"github.com/topogen/topogen/runtime/cluster/table/etcd"
)

func fence() string { return cmp.Or(os.Getenv("` + variableFence + `"), "majority") }

func addressTable(raft table.Opener) table.Opener {
	switch engine := os.Getenv("` + variableEngine + `"); engine {
	case "":
		return raft
	case "broadcast":
		return broadcast.Opener()
	default:
		return etcd.Opener(etcd.Options{Endpoints: []string{engine}, Prefix: "/clusterprocesses"})
	}
}
`

// buildWithPoints builds the node with the patches. It returns the file of the program.
func buildWithPoints(t *testing.T) string {
	t.Helper()
	dir, root := t.TempDir(), moduleRoot(t)
	code := map[string]string{}
	for _, p := range pointPatches {
		text, ok := code[p.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, p.file))
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		if n := strings.Count(text, p.old); n != 1 {
			t.Fatalf("%s has the following text %d times. Write the patch again in the changed code:\n%s", p.file, n, p.old)
		}
		code[p.file] = strings.Replace(text, p.old, p.new, 1)
	}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	add := func(file, text string) {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(root, file)] = to
	}
	for file, text := range code {
		if strings.Contains(text, "points.At(") {
			text = strings.Replace(text, "import (", "import (\n\t\""+pointsPackage+"\"", 1)
		}
		add(file, text)
	}
	add("generated_test/clusterprocesses/address_table.go", engineFile)
	b, err := json.Marshal(overlay)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "node")
	build(t, root, "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./generated_test/clusterprocesses/node")
	return program
}

// buildEtcd builds the etcd of the module bench. It returns the file of the program.
func buildEtcd(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "etcd")
	build(t, filepath.Join(moduleRoot(t), "bench"), "-o", program, "./cmd/etcd")
	return program
}

func build(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"build"}, args...)...)
	cmd.Dir = dir
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, b)
	}
}

// moduleRoot is the folder of the module.
func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}
