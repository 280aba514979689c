package durabletests_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// build builds topoctl once, and returns its path.
var build = sync.OnceValues(func() (topoctl string, err error) {
	topoctl = filepath.Join(built, "topoctl")
	if out, err := exec.Command("go", "build", "-o", topoctl, "../../cmd/topoctl").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return topoctl, nil
})

// command returns a call of topoctl.
func (b *bench) command(args ...string) *exec.Cmd {
	b.Helper()
	topoctl, err := build()
	if err != nil {
		b.Fatal(err)
	}
	return exec.Command(topoctl, args...)
}

// serverCommand returns the command that serves the store.
func (b *bench) serverCommand() *exec.Cmd {
	b.Helper()
	args := append([]string{"durable", "serve", "--listen", b.address, "--store", b.store}, b.flags...)
	if b.token != "" {
		file := filepath.Join(b.TempDir(), "token")
		if err := os.WriteFile(file, []byte(b.token+"\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		args = append(args, "--token-file", file)
	}
	return b.command(args...)
}

// checkStore stops the server, and checks the invariants of its store.
func (b *bench) checkStore() {
	b.stopServer()
	if out, err := b.command("durable", "check", b.store).CombinedOutput(); err != nil {
		b.Errorf("topoctl durable check: %v\n%s", err, out)
	}
}
