package store_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func init() { children["read from a mount"] = childReadsFromMount }

// childReadsFromMount makes a directory read-only for this process, and reads the store in it.
func childReadsFromMount(arguments []string) {
	dir := arguments[0]
	for _, m := range []struct {
		from, to string
		flags    uintptr
	}{
		{"none", "/", syscall.MS_REC | syscall.MS_PRIVATE},
		{dir, dir, syscall.MS_BIND},
		{dir, dir, syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_RDONLY},
	} {
		if err := syscall.Mount(m.from, m.to, "", m.flags, ""); err != nil {
			fmt.Println("no mount:", err)
			return
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		fmt.Println("the mount is not read-only:", err)
		return
	}
	fmt.Println(verifyAndOpen(dir))
}

// TestReadOnlyMount: a store on a file system that is mounted for reading can be read.
func TestReadOnlyMount(t *testing.T) {
	dir, _, _ := filled(t)
	for _, lock := range []bool{true, false} {
		if !lock {
			must(t, os.Remove(filepath.Join(dir, "lock")))
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"=read from a mount", childArguments+"="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		out, err := cmd.CombinedOutput()
		text := strings.TrimSpace(string(out))
		if errors.Is(err, syscall.EPERM) || strings.HasPrefix(text, "no mount:") {
			t.Skipf("needs permission to mount: %v %s", err, text)
		}
		if err != nil || text != "<nil>" {
			t.Errorf("lock %v: %v %s", lock, err, text)
		}
	}
}
