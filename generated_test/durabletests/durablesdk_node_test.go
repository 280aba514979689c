package durabletests_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/nodejs"
)

// sdkPrograms is the folder with the programs in TypeScript.
const sdkPrograms = "../durablesdk/programs"

// stage makes a folder with the programs and their packages.
func stage(t *testing.T, tools nodejs.Toolchain) string {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob(sdkPrograms + "/*.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(nodejs.CopyFiles(dir, files...), os.Symlink(tools.Modules, filepath.Join(dir, "node_modules"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestDurableSDKToolchain says whether the other tests run. .ci/run shows its output.
func TestDurableSDKToolchain(t *testing.T) {
	tools := nodejs.Need(t, sdkPrograms)
	out, err := exec.Command(tools.Node, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("node %s in %s, packages in %s", strings.TrimSpace(string(out)), tools.Node, tools.Modules)
}

// TestDurableSDKTypes checks the types of the programs.
func TestDurableSDKTypes(t *testing.T) {
	t.Parallel()
	tools := nodejs.Need(t, sdkPrograms)
	check := exec.Command(tools.Node, filepath.Join(tools.Modules, "typescript", "bin", "tsc"), "--project", stage(t, tools))
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestDurableSDKLockNamesNoHost checks that npm takes the packages from the registry of the user.
func TestDurableSDKLockNamesNoHost(t *testing.T) {
	lock, err := os.ReadFile(sdkPrograms + "/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(lock), "resolved") {
		t.Error(`package-lock.json has fields "resolved"; write it with npm install --omit-lockfile-registry-resolved`)
	}
}
