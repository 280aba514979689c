package bind

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
)

// TestVendoredRuntime: the generated code may import packages of the runtime that the vendor folder
// lacks. The error does not count as an error of the generated code, so the files are written.
func TestVendoredRuntime(t *testing.T) {
	for _, work := range []bool{false, true} {
		dir := memdir.Quick(t)
		module, command, replaced, modules := dir, "go mod tidy && go mod vendor", "./topogen", ""
		if work {
			module, command = filepath.Join(dir, "app"), "go mod tidy && go work vendor"
			replaced, modules = "./app/topogen", "## workspace\n"
			write(t, filepath.Join(dir, "go.work"), "go 1.26\n\nuse ./app\n")
		}
		writeModule(t, module)
		vendored := filepath.Join(dir, "vendor", "github.com", "topogen", "topogen")
		if err := os.CopyFS(vendored, os.DirFS(filepath.Join(module, "topogen"))); err != nil {
			t.Fatal(err)
		}
		old := modules
		modules += "# github.com/topogen/topogen v0.0.0 => " + replaced + "\n## explicit; go 1.26\n"
		for _, path := range []string{"internal/alive", "internal/attempt", "internal/fencing", "internal/hold", "topo"} {
			modules += "github.com/topogen/topogen/runtime/" + path + "\n"
		}
		list := filepath.Join(dir, "vendor", "modules.txt")
		write(t, list, modules+"# github.com/topogen/topogen => "+replaced+"\n")
		r := small(t, filepath.Join(module, "small"), "", Options{})
		if len(r.Findings) > 0 {
			t.Fatal(said(r.Findings))
		}
		v := verify(t, r, map[string][]byte{
			"topology_ports_gen.go": []byte("package small\n\ntype FeedSender struct{}\n\nfunc (*FeedSender) SendM(M) error { return nil }\n"),
			"topology_gen.go":       []byte("package small\n\nimport \"github.com/topogen/topogen/runtime/wire\"\n\nvar _ = wire.Missing\n"),
		})
		want := list + ":0:0: TG311 the generated code imports package github.com/topogen/topogen/runtime/wire, which is not in the vendor folder"
		if got := said(v.User); got != want || len(v.Own) > 0 || v.User[0].Suggestion != "run "+command {
			t.Errorf("got %v, %v\nwant %s", v.User, v.Own, want)
		}
		r = small(t, filepath.Join(module, "small"), "-- topology.yml --\n"+smallTopology+"messages: {M: github.com/topogen/topogen/runtime/wire.Kind}\n", Options{})
		want = "topology.yml:6:15: TG314 package github.com/topogen/topogen/runtime/wire is not in the vendor folder"
		if got := said(r.Findings); got != want || r.Findings[0].Suggestion != "run GOFLAGS=-mod=readonly topogen build && "+command {
			t.Errorf("a message of the package: got %v\nwant %s", r.Findings, want)
		}
		write(t, list, old)
		r = small(t, filepath.Join(module, "small"), "", Options{})
		if got := said(r.Findings); !strings.Contains(got, "inconsistent vendoring") || !strings.HasSuffix(got, "; run "+command) {
			t.Errorf("an old vendor folder: %s", got)
		}
	}
}
