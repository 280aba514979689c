package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/topogen/topogen/cmd/topoctl/internal/cli"
	"github.com/topogen/topogen/internal/test/speed"
)

// TestTheLargestFile prints the largest possible file, with the errors that take most
// space when printed, in bounded memory.
func TestTheLargestFile(t *testing.T) {
	speed.Landing(t)
	const memoryMax = 100 << 10 // in KiB; the command takes 60 MB
	path := filepath.Join(t.TempDir(), "errors.pb")
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
	outputs := [][]string{{"errors", "--format=json"}, {"errors"}, {"errors", "--full"}}
	for _, args := range speed.Pick(t, nil, outputs[:1], outputs) {
		cmd := exec.Command("measure", append(args, path)...)
		// The test measures the memory that the command needs. Without a limit, it would
		// also measure garbage that a busy host has not collected yet.
		cmd.Env = append(os.Environ(), "GOMEMLIMIT=80MiB")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v takes %s KiB", args, out)
		if used, err := strconv.Atoi(string(out)); err != nil || used > memoryMax {
			t.Errorf("%v takes %d KiB, %v", args, used, err)
		}
	}
}

func init() { commands["measure"] = measure }

// measure runs a command of topoctl and prints the most memory that this process had, in KiB.
// The system also counts the memory of the parent in the usage of a process, but not in its
// status.
func measure() {
	if code := cli.Run(context.Background(), os.Args[1:], cli.Streams{Out: io.Discard, Err: os.Stderr}); code != 0 {
		os.Exit(code)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	_, most, _ := strings.Cut(string(status), "VmHWM:")
	fmt.Print(strings.Fields(most)[0])
}
