package durablesdk_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/nodejs"
)

// stage makes a folder with the programs and their packages.
func stage(t *testing.T, tools nodejs.Toolchain) string {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob("programs/*.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(nodejs.CopyFiles(dir, files...), os.Symlink(tools.Modules, filepath.Join(dir, "node_modules"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestToolchain says whether the other tests run. .ci/run shows its output.
func TestToolchain(t *testing.T) {
	tools := nodejs.Need(t, "programs")
	out, err := exec.Command(tools.Node, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("node %s in %s, packages in %s", strings.TrimSpace(string(out)), tools.Node, tools.Modules)
}

// TestTypes checks the types of the programs.
func TestTypes(t *testing.T) {
	t.Parallel()
	tools := nodejs.Need(t, "programs")
	check := exec.Command(tools.Node, filepath.Join(tools.Modules, "typescript", "bin", "tsc"), "--project", stage(t, tools))
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLockNamesNoHost checks that npm takes the packages from the registry of the user.
func TestLockNamesNoHost(t *testing.T) {
	lock, err := os.ReadFile("programs/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(lock), "resolved") {
		t.Error(`package-lock.json has fields "resolved"; write it with npm install --omit-lockfile-registry-resolved`)
	}
}
