package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/topogen/topogen/internal/test/rerun"
)

// TestTheLargestFile prints the largest possible file, with the errors that take most
// space when printed, in bounded time and memory.
func TestTheLargestFile(t *testing.T) {
	if os.Getenv("CI") == "" {
		t.Skip("takes long: set CI")
	}
	const memoryMax, timeMax = 100 << 10, 20 * time.Second // in KiB; the command takes 52 MB, and 2 s on an idle host
	rerun.WhenCodeChanges(t)
	path, bin := filepath.Join(t.TempDir(), "errors.pb"), filepath.Join(t.TempDir(), "topoctl")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(file)
	for field := range 2 {
		for i := range 4096 {
			text := strings.Repeat("\x01", 8<<10-4) + fmt.Sprintf("%04d", i)
			entry := protowire.AppendString([]byte{0x0a}, text)
			entry = protowire.AppendVarint(append(entry, 0x10), math.MaxUint64)
			_, _ = w.Write(protowire.AppendBytes([]byte{byte(field+1)<<3 | 2}, entry)) // Flush returns the error
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"errors"}, {"errors", "--full"}, {"errors", "--format=json"}} {
		began := time.Now()
		cmd := exec.Command(self, append(append([]string{bin}, args...), path)...)
		cmd.Args[0] = "measure"
		// The test measures the memory that the command needs. Without a limit, it would
		// also measure garbage that a busy host has not collected yet.
		cmd.Env = append(os.Environ(), "GOMEMLIMIT=80MiB")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > timeMax {
			t.Errorf("%v takes %v", args, took)
		}
		if used, err := strconv.Atoi(string(out)); err != nil || used > memoryMax {
			t.Errorf("%v takes %d KiB, %v", args, used, err)
		}
	}
}

func init() { commands["measure"] = measure }

// measure runs a command and prints the most memory that it had, in KiB. The system
// counts the memory of the parent for a process that it starts, so the parent must be
// small: the process of the tests is not.
func measure() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		os.Exit(1)
	}
	fmt.Print(usage.Maxrss)
}
