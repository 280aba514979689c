package errtop

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestPowerFailureAnywhere: after a power failure during a dump, the file is the old one or
// the new one. After the dump it is the new one.
func TestPowerFailureAnywhere(t *testing.T) {
	const path = "/state/errors.pb"
	for failAt := 1; ; failAt++ {
		old, k, disk := keeperWithNews(t, path)
		disk.ops, disk.failAt, disk.power = nil, failAt, true
		err := k.Dump()
		fresh := encode(k.Top())
		for _, found := range disk.afterwards(path) {
			if entries, e := decodeBytes(found); found == nil || e != nil {
				t.Errorf("after %v the file is lost: %v, %v", disk.ops, entries, e)
			} else if !bytes.Equal(found, fresh) && (err == nil || !bytes.Equal(found, old)) {
				t.Errorf("after %v (%v) the file holds %v", disk.ops, err, entries)
			}
		}
		if err == nil {
			break
		}
		if !errors.Is(err, errPower) {
			t.Errorf("after %v: %v", disk.ops, err)
		}
	}
}

// TestDiskFailsAnywhere: if a dump fails, the file is the old one or the new one, no
// other file is left, and the next dump succeeds.
func TestDiskFailsAnywhere(t *testing.T) {
	const path = "/state/errors.pb"
	for failAt := 1; ; failAt++ {
		old, k, disk := keeperWithNews(t, path)
		disk.ops, disk.failAt = nil, failAt
		err := k.Dump()
		failed := slices.Clone(disk.ops)
		if len(failed) < failAt {
			break
		}
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("after %v: %v", failed, err)
		}
		if err == nil && failed[failAt-1] != "chmod" {
			t.Errorf("%v failed, but Dump returned no error", failed)
		}
		fresh := encode(k.Top())
		if b := disk.content(path); !bytes.Equal(b, old) && !bytes.Equal(b, fresh) {
			t.Errorf("after %v the file holds %q", failed, b)
		}
		if names := disk.files(); len(names) != 1 {
			t.Errorf("after %v there are %v", failed, names)
		}
		if err := k.Dump(); err != nil || !bytes.Equal(disk.content(path), fresh) {
			t.Errorf("after %v the next dump fails: %v", failed, err)
		}
	}
}

// keeperWithNews returns a keeper with a record that is not in its file, and the content
// of the file.
func keeperWithNews(t *testing.T, path string) (old []byte, k *Keeper, d *memoryDisk) {
	old = encode([]Entry{{"an old error", 7, time.Now().Add(-time.Second)}})
	d = newMemoryDisk(map[string][]byte{path: old})
	k = withoutWriter(t, path, d)
	k.Record(0, "", 0, errors.New("a new error"), nil)
	return old, k, d
}

// withoutWriter returns a keeper that only writes when Dump is called.
func withoutWriter(t *testing.T, path string, d disk) *Keeper {
	settings, err := Settings{Path: path, Logger: new(warnings).logger()}.checked()
	if err != nil {
		t.Fatal(err)
	}
	k := &Keeper{settings: settings, disk: d}
	if err := k.restore(time.Now()); err != nil {
		t.Fatal(err)
	}
	return k
}

// TestDumps: there is at most one dump per period, a dump at once after a pause, and no
// dump without new records.
func TestDumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newMemoryDisk(nil)
		k := mustOpen(t, Settings{Path: "/errors.pb", DumpEvery: 3 * time.Second}, disk)
		dumps := func(want int) {
			t.Helper()
			synctest.Wait()
			if n := disk.count("rename"); n != want {
				t.Fatalf("at %v: got %d dumps, want %d", time.Now(), n, want)
			}
		}
		time.Sleep(time.Minute) // virtual time, here and below
		dumps(0)
		k.Record(0, "", 0, fs.ErrExist, nil)
		dumps(1)
		for range 30 { // 3 s
			k.Record(0, "", 0, fs.ErrExist, nil)
			time.Sleep(100 * time.Millisecond)
		}
		dumps(2)
		time.Sleep(time.Minute)
		dumps(2)
		k.Record(0, "", 0, fs.ErrExist, nil)
		dumps(3)
		k.Record(0, "", 0, fs.ErrClosed, nil)
		dumps(3)
		closeKeeper(t, k)
		dumps(4)
		entries, err := decodeBytes(disk.content("/errors.pb"))
		if got, want := figures(entries), "file already exists ×32, file already closed ×1"; err != nil || got != want {
			t.Errorf("the file has %s, %v, want %s", got, err, want)
		}
		k.Record(0, "", 0, fs.ErrClosed, nil)
		closeKeeper(t, k)
		dumps(4)
		closeKeeper(t, mustOpen(t, Settings{Path: "/errors.pb"}, disk)) // nothing has changed
		dumps(4)
	})
}

// TestFullDisk: a failing dump is logged once, tried again each period, and succeeds when
// there is room.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var warned warnings
		disk := newMemoryDisk(nil)
		full := &fullDisk{memoryDisk: disk}
		k := mustOpen(t, Settings{Path: "/errors.pb", Logger: warned.logger()}, full)
		full.is.Store(true)
		k.Record(0, "", 0, fs.ErrExist, nil)
		time.Sleep(10*time.Second + time.Millisecond)
		if n := disk.count("create"); n < 10 || n > 12 {
			t.Errorf("%d tries in 10 s", n)
		}
		if list := warned.all(); len(list) != 1 || !strings.Contains(list[0], "cannot write the errors, will try again path=/errors.pb") {
			t.Errorf("warned: %q", list)
		}
		if err := k.Dump(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Dump returned %v", err)
		}
		full.is.Store(false)
		time.Sleep(time.Second)
		if entries, err := decodeBytes(disk.content("/errors.pb")); err != nil || len(entries) != 1 {
			t.Errorf("%v, %v", entries, err)
		}
		full.is.Store(true)
		k.Record(0, "", 0, fs.ErrExist, nil)
		if err := k.Close(); !errors.Is(err, syscall.ENOSPC) || !errors.Is(k.Close(), syscall.ENOSPC) {
			t.Errorf("Close returned %v", err)
		}
	})
}

func TestKeepTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newMemoryDisk(nil)
		k := mustOpen(t, Settings{Path: "/errors.pb", Keep: time.Minute}, disk)
		k.Record(0, "", 0, fs.ErrExist, nil)
		time.Sleep(time.Minute - time.Microsecond)
		k.Record(0, "", 0, fs.ErrClosed, nil)
		if got := figures(k.Top()); got != "file already closed ×1, file already exists ×1" {
			t.Errorf("holds %s", got)
		}
		time.Sleep(time.Microsecond)
		if got := figures(k.Top()); got != "file already closed ×1" {
			t.Errorf("holds %s", got)
		}
		closeKeeper(t, k)
		time.Sleep(time.Hour)
		k = mustOpen(t, Settings{Path: "/errors.pb", Keep: time.Minute}, disk)
		if top := k.Top(); len(top) != 0 {
			t.Errorf("holds %v", top)
		}
		closeKeeper(t, k)
		if entries, err := decodeBytes(disk.content("/errors.pb")); err != nil || len(entries) == 0 {
			t.Errorf("the last errors before a pause are lost: %v, %v", entries, err)
		}
	})
}

func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "errors.pb")
	for start := range 3 {
		k := mustOpen(t, Settings{Path: path}, osDisk{})
		k.Record(0, "parser", 0, errors.New("no such line"), nil)
		k.Record(0, "parser", 0, fmt.Errorf("start %d", start), nil)
		closeKeeper(t, k)
	}
	entries, err := Read(path)
	if got := figures(entries); err != nil || !strings.HasPrefix(got, "parser: no such line ×3, parser: start ") || len(entries) != 4 {
		t.Errorf("the file has %s, %v", got, err)
	}
	alone(t, path)
}

// TestOnlyOwnersReadAtFirst: a new file can only be read by its owner, because errors may
// contain secrets. Permissions that the user has changed are kept.
func TestOnlyOwnersReadAtFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "errors.pb")
	k := withoutWriter(t, path, osDisk{})
	for _, want := range []fs.FileMode{0o600, 0o640} {
		k.Record(0, "", 0, fs.ErrExist, nil)
		if err := k.Dump(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%v, %v, want %v", info.Mode(), err, want)
		}
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
	}
}

// TestALinkStays: a dump writes the target of a link, in the target's folder, even if the
// target does not exist yet.
func TestALinkStays(t *testing.T) {
	dir := t.TempDir()
	link, hop, target := filepath.Join(dir, "errors.pb"), filepath.Join(dir, "hop"), filepath.Join(dir, "state", "file.pb")
	if err := os.Mkdir(filepath.Dir(target), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink("hop", link), os.Symlink(target, hop)); err != nil {
		t.Skip("cannot create symbolic links: ", err)
	}
	for round := range uint64(2) {
		k := mustOpen(t, Settings{Path: link}, osDisk{})
		k.Record(0, "", 0, fs.ErrExist, nil)
		closeKeeper(t, k)
		for _, path := range []string{link, target} {
			if entries, err := Read(path); err != nil || len(entries) != 1 || entries[0].Count != round+1 {
				t.Errorf("%s: %v, %v", path, entries, err)
			}
		}
		for _, path := range []string{link, hop} {
			if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeSymlink {
				t.Errorf("%s is not a link any more: %v, %v", path, info.Mode(), err)
			}
		}
	}
	if err := os.WriteFile(target, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	closeKeeper(t, mustOpen(t, Settings{Path: link, Logger: new(warnings).logger()}, osDisk{}))
	if _, err := os.Stat(target + ".broken"); err != nil {
		t.Errorf("a broken file was not renamed in its folder: %v", err)
	}
	alias := filepath.Join(dir, "alias")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "state", "deep"), 0o700), os.Symlink(filepath.Join("state", "deep"), alias),
		os.Symlink(filepath.Join("..", "other.pb"), filepath.Join(alias, "errors.pb"))); err != nil {
		t.Fatal(err)
	}
	k := mustOpen(t, Settings{Path: filepath.Join(alias, "errors.pb")}, osDisk{})
	k.Record(0, "", 0, fs.ErrExist, nil)
	closeKeeper(t, k)
	if entries, err := Read(filepath.Join(dir, "state", "other.pb")); err != nil || len(entries) != 1 {
		t.Errorf("through a link to the folder: %v, %v", entries, err)
	}
	ring := filepath.Join(dir, "ring")
	if err := os.Symlink(ring, ring); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Settings{Path: ring}); !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), "symbolic links") {
		t.Errorf("a ring of links: %v", err)
	}
}

func TestForeignFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "errors.pb")
	large := filepath.Join(t.TempDir(), "large")
	if err := errors.Join(os.WriteFile(large, nil, 0o600), os.Truncate(large, fileMax+1)); err != nil {
		t.Fatal(err)
	}
	for i := range brokenMax + 2 {
		var warned warnings
		want := "byte 3: cannot parse reserved wire type"
		text := fmt.Sprint("panic: ", i)
		if i == 3 {
			want = fmt.Sprintf("too large: it has %d bytes, at most %d are expected", fileMax+1, fileMax)
			if err := os.Rename(large, path); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		k := mustOpen(t, Settings{Path: path, Logger: warned.logger()}, osDisk{})
		if list := warned.all(); len(list) != 1 || !strings.HasSuffix(list[0], want) || len(k.Top()) != 0 {
			t.Errorf("warned: %q, want %q", list, want)
		}
		k.Record(0, "", 0, fs.ErrExist, nil)
		closeKeeper(t, k)
		if entries, err := Read(path); err != nil || len(entries) != 1 {
			t.Errorf("%v, %v", entries, err)
		}
	}
	first, err := os.ReadFile(path + ".broken")
	last, err2 := os.ReadFile(path + ".broken9")
	if string(first) != "panic: 0" || string(last) != "panic: 10" || err != nil || err2 != nil {
		t.Errorf("%q, %v; %q, %v", first, err, last, err2)
	}
}

func TestInvalidPaths(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(Settings{Path: dir}); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Open(Settings{Path: filepath.Join(dir, "none", "errors.pb")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := Read(filepath.Join(dir, "errors.pb")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Read(os.DevNull); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a device: %v", err)
	}
	for _, content := range []string{"text", "\x00"} {
		broken := filepath.Join(dir, "broken")
		if err := os.WriteFile(broken, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(broken); !errors.Is(err, ErrFormat) || !strings.HasPrefix(err.Error(), "read "+broken+": errtop: ") {
			t.Errorf("%q: %v", content, err)
		}
	}
	// A file that can neither be read nor renamed must not be overwritten.
	disk := newMemoryDisk(map[string][]byte{"/errors.pb": []byte("text")})
	disk.failAt = 4 // create, close, remove, rename
	if _, err := open(Settings{Path: "/errors.pb"}, disk); !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, ErrFormat) {
		t.Errorf("a broken file that cannot be renamed: %v", err)
	}
	// A folder that is removed and created again.
	path := filepath.Join(dir, "state", "errors.pb")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	k := mustOpen(t, Settings{Path: path, Logger: new(warnings).logger()}, osDisk{})
	if err := os.Remove(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	k.Record(0, "", 0, fs.ErrExist, nil)
	if err := k.Dump(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without its folder: %v", err)
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	closeKeeper(t, k)
	if entries, err := Read(path); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestKilledBeforeRename kills a process between writing and renaming.
func TestKilledBeforeRename(t *testing.T) {
	if path := os.Getenv("ERRTOP_TEST_KILL"); path != "" {
		k := mustOpen(t, Settings{Path: path}, stuckDisk{})
		k.Record(0, "", 0, errors.New("the last words"), nil)
		_, _ = io.Copy(io.Discard, os.Stdin) // until the process is killed
		t.Fatal("the process was not killed")
	}
	path := filepath.Join(t.TempDir(), "errors.pb")
	k := mustOpen(t, Settings{Path: path}, osDisk{})
	k.Record(0, "", 0, fs.ErrExist, nil)
	closeKeeper(t, k)

	child := exec.Command(os.Args[0], "-test.run=^TestKilledBeforeRename$")
	child.Env = append(os.Environ(), "ERRTOP_TEST_KILL="+path)
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "renaming\n" {
		t.Errorf("%q, %v", line, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = child.Wait() // the error is that it was killed

	entries, err := Read(path)
	if got := figures(entries); err != nil || got != "file already exists ×1" {
		t.Errorf("the file has %s, %v", got, err)
	}
	// Its temporary file is removed when it is old; other files are kept.
	temps, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".errors.pb.*.tmp"))
	if len(temps) != 1 {
		t.Fatalf("got temporary files %v", temps)
	}
	other := filepath.Join(filepath.Dir(path), ".errors.pb.mine")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closeKeeper(t, mustOpen(t, Settings{Path: path}, osDisk{}))
	if _, err := os.Stat(temps[0]); err != nil {
		t.Errorf("a recent temporary file was removed: %v", err)
	}
	ago := time.Now().Add(-tempMaxAge - time.Minute)
	if err := errors.Join(os.Chtimes(temps[0], ago, ago), os.Chtimes(other, ago, ago)); err != nil {
		t.Fatal(err)
	}
	closeKeeper(t, mustOpen(t, Settings{Path: path}, osDisk{}))
	if err := os.Remove(other); err != nil {
		t.Error(err)
	}
	alone(t, path)
}

// stuckDisk blocks in Rename, after reporting it.
type stuckDisk struct{ osDisk }

func (stuckDisk) Rename(string, string) error {
	fmt.Println("renaming")
	select {}
}

// alone checks that the folder has no other files.
func alone(t *testing.T, path string) {
	t.Helper()
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v, want only the file", entries, err)
	}
}
