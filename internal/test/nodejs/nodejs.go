// Package nodejs gives tests a Node.js that runs TypeScript, and the packages of a folder
// with a package-lock.json.
//
//	tools := nodejs.Need(t, "programs")
//	cmd := exec.Command(tools.Node, "worker.ts")
//
// Packages are installed once, in the cache folder of the user. A computer with an older
// node gets one from the npm registry, in the same place. The test is skipped, with the
// reason, if there is no npm or if npm does not reach the registry.
package nodejs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
)

// version is the version of node that is installed if the computer has none that runs
// TypeScript without a flag.
const version = "22.23.3"

// installMax is the longest time that npm may take for 150 MB. It is shorter than the
// time that go test gives a package.
const installMax = 4 * time.Minute

// Toolchain is node and the packages of a folder.
type Toolchain struct {
	Node    string // the command
	Modules string // the folder node_modules
}

// Need returns a toolchain with the packages that the package-lock.json of a folder
// lists. It skips the test on a computer that cannot have them, and in a quick run, because
// a developer may not expect that a test installs packages.
func Need(t testing.TB, folder string) Toolchain {
	t.Helper()
	speed.Landing(t)
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED on this system: the tests use links and SIGKILL")
	}
	tools, err := find(folder)
	if missing := (*missingError)(nil); errors.As(err, &missing) {
		t.Skip("SKIPPED, TypeScript is not tested: " + missing.why)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// A missingError says why a computer cannot have a toolchain.
type missingError struct{ why string }

func (e *missingError) Error() string { return e.why }

var installing sync.Mutex // tests of a package run at the same time

// find returns the toolchain of a folder, and installs what is missing.
func find(folder string) (Toolchain, error) {
	installing.Lock()
	defer installing.Unlock()
	npm, err := exec.LookPath("npm")
	if err != nil {
		return Toolchain{}, &missingError{"npm is not installed"}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Toolchain{}, err
	}
	cache = filepath.Join(cache, "topogen", "nodejs")
	files := []string{filepath.Join(folder, "package.json"), filepath.Join(folder, "package-lock.json")}
	lock, err := os.ReadFile(files[1])
	if err != nil {
		return Toolchain{}, err
	}
	packages := filepath.Join(cache, fmt.Sprintf("packages-%x", sha256.Sum256(lock)))
	if err := install(npm, packages, "ci", files...); err != nil {
		return Toolchain{}, err
	}
	tools := Toolchain{Node: inPath(), Modules: filepath.Join(packages, "node_modules")}
	if tools.Node != "" {
		return tools, nil
	}
	own := filepath.Join(cache, "node-"+version)
	tools.Node = filepath.Join(own, "node_modules", ".bin", "node")
	return tools, install(npm, own, "install node@"+version)
}

// inPath returns the node of the computer if it runs TypeScript without a flag, which is
// the case since 22.18.
func inPath() string {
	path, err := exec.LookPath("node")
	if err != nil {
		return ""
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil || !runsTypeScript(string(out)) {
		return ""
	}
	return path
}

func runsTypeScript(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "v%d.%d.", &major, &minor); err != nil {
		return false
	}
	return major > 22 || major == 22 && minor >= 18
}

// install runs npm in a new folder with copies of files, and gives the folder its name
// when npm has finished. It does nothing if the folder exists.
func install(npm, dir, command string, files ...string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	unfinished, err := os.MkdirTemp(filepath.Dir(dir), "unfinished-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(unfinished)
	if err := CopyFiles(unfinished, files...); err != nil {
		return err
	}
	if err := run(npm, unfinished, command); err != nil {
		return err
	}
	err = os.Rename(unfinished, dir)
	if _, exists := os.Stat(dir); exists == nil {
		return nil // the test of another package was faster
	}
	return err
}

func run(npm, dir, command string) error {
	ctx, cancel := context.WithTimeout(context.Background(), installMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, strings.Fields(command)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "npm_config_fund=false", "npm_config_audit=false", "npm_config_update_notifier=false")
	cmd.WaitDelay = time.Second // for the children of npm
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || isOffline(string(out)):
		return &missingError{fmt.Sprintf("npm %s does not reach the registry:\n%s", command, out)}
	}
	return fmt.Errorf("npm %s: %w\n%s", command, err, out)
}

// isOffline reports whether npm says that the network fails. Other errors, such as a
// wrong checksum, are failures of a test.
func isOffline(out string) bool {
	for _, code := range []string{"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ERR_SOCKET_TIMEOUT", "ENETUNREACH", "EHOSTUNREACH", "ENOTCACHED"} {
		if strings.Contains(out, "npm error code "+code+"\n") {
			return true
		}
	}
	return false
}

// CopyFiles copies files into a folder.
func CopyFiles(dir string, files ...string) error {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o666); err != nil {
			return err
		}
	}
	return nil
}
