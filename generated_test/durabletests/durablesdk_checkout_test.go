package durabletests_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/nodejs"
	"github.com/topogen/topogen/internal/test/rerun"
)

// TestDurableSDKCheckout: the example checkout carries out orders from TypeScript, as its README says.
func TestDurableSDKCheckout(t *testing.T) {
	t.Parallel()
	tools := nodejs.Need(t, sdkPrograms)
	rerun.WhenCodeChanges(t, "examples")
	dir := t.TempDir()
	example := filepath.Join("..", "..", "examples", "checkout")
	program := filepath.Join(dir, "checkout")
	if out, err := exec.Command("go", "build", "-o", program, "./"+example).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := errors.Join(nodejs.CopyFiles(dir, filepath.Join(example, "drive.mts")), os.Symlink(tools.Modules, filepath.Join(dir, "node_modules"))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-orders", "0")
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(dir, "tmp"))
	shop := sdkStart(t, cmd)
	t.Cleanup(func() { // before start kills it: an interrupt also ends its workers
		_ = cmd.Process.Signal(os.Interrupt)
		<-shop.ended
	})
	url := ""
	b := &bench{T: t, tools: tools, dir: dir}
	b.await("the shop serves", func() bool {
		_, rest, _ := strings.Cut(shop.out.String(), "serving ")
		var complete bool
		url, _, complete = strings.Cut(rest, " ")
		return complete
	})
	b.address = strings.TrimPrefix(url, "http://")
	b.node(nil, "drive.mts", "1000").want("order 1000: ship-1\n")
	b.node(nil, "drive.mts", "1006").want("order 1006: not paid: the card is declined\n")
}
