//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// backups runs the command for a test of backups.
type backups struct {
	*testing.T
	program string
	dir     string
}

func newBackups(t *testing.T) *backups {
	t.Helper()
	speed.Landing(t)
	return &backups{t, filepath.Join(buildCommand(t), "topoctl"), t.TempDir()}
}

func (b *backups) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// serve starts a server with a store, which runs until it is stopped or the test ends.
func (b *backups) serve(dir string) (*exec.Cmd, string) {
	b.Helper()
	cmd := exec.Command(b.program, "durable", "serve", "--listen", "127.0.0.1:0", "--store", filepath.Join(b.dir, dir))
	out, err := cmd.StdoutPipe()
	b.must(err)
	b.must(cmd.Start())
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // it may have ended
	line, err := bufio.NewReader(out).ReadString('\n')
	b.must(err)
	_, url, _ := strings.Cut(strings.TrimSpace(line), "serving durable promises at ")
	return cmd, url
}

// command returns a command that has not started, and its output.
func (b *backups) command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd, out := exec.Command(b.program, append([]string{"durable"}, args...)...), new(bytes.Buffer)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.dir, out, out
	return cmd, out
}

func (b *backups) run(args ...string) {
	b.Helper()
	if cmd, out := b.command(args...); cmd.Run() != nil {
		b.Fatalf("%v: %v\n%s", args, cmd.ProcessState, out)
	}
}

// files returns the names of the files that begin as a backup.
func (b *backups) files() []string {
	list, err := filepath.Glob(filepath.Join(b.dir, "backup*"))
	b.must(err)
	return list
}

// create creates a promise.
func (b *backups) create(c *client.Client, id, data string) {
	r, err := c.Do(b.Context(), protocol.PromiseCreate{ID: id, TimeoutAt: protocol.MaxTime, Param: protocol.Value{Data: &data}})
	if err == nil && r.Status != protocol.OK {
		err = errors.New(r.Error)
	}
	if err != nil && b.Context().Err() == nil {
		b.Error(err)
	}
}

// TestBackupUnderLoad backs up a server while clients create promises, restores the backup, and
// finds every promise that was acknowledged before the backup began.
func TestBackupUnderLoad(t *testing.T) {
	b := newBackups(t)
	_, url := b.serve("store")
	const clients = 8
	var acknowledged [clients]atomic.Int64
	stop := make(chan struct{})
	var group sync.WaitGroup
	for k := range clients {
		c, err := client.New(url, client.Options{})
		b.must(err)
		defer c.Close()
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				b.create(c, fmt.Sprint("p", k, "-", i), strings.Repeat("x", rand.IntN(2000)))
				acknowledged[k].Store(int64(i + 1))
			}
		})
	}
	for round := range 5 {
		for acknowledged[0].Load() < int64(round+1)*100 { // there is something new
			b.must(b.Context().Err())
		}
		var before [clients]int64
		for k := range clients {
			before[k] = acknowledged[k].Load()
		}
		file, dir := fmt.Sprint("backup", round), fmt.Sprint("restored", round)
		b.run("backup", file, "--server", url)
		b.run("restore", file, "--store", dir)
		b.run("check", dir)
		b.contains(dir, before[:])
	}
	close(stop)
	group.Wait()
	cmd, url := b.serve("restored0")
	c, err := client.New(url, client.Options{})
	b.must(err)
	defer c.Close()
	if r, err := c.Do(b.Context(), protocol.PromiseGet{ID: "p0-0"}); err != nil || r.Status != protocol.OK {
		t.Error(r, err)
	}
	b.must(cmd.Process.Signal(syscall.SIGTERM))
	b.must(cmd.Wait())
	b.run("check", "restored0")
}

// contains checks that a store has the promises that clients had created.
func (b *backups) contains(dir string, created []int64) {
	b.Helper()
	s, err := store.OpenReadOnly(filepath.Join(b.dir, dir), store.Options{})
	b.must(err)
	b.must(s.View(func(tx store.Tx) error {
		for k, n := range created {
			for i := range n {
				if id := fmt.Sprint("p", k, "-", i); tx.Get(core.Promises, []byte(id)) == nil {
					b.Errorf("promise %s was acknowledged before the backup, and is not in it", id)
				}
			}
		}
		return nil
	}))
	b.must(s.Close())
}

// A relay passes the bytes of connections to a server on. When a response has passed so many
// bytes, it calls cut once, and passes no more of it if cut returns false.
type relay struct {
	net.Listener
	server string
	after  int64
	cut    func() bool
}

func (b *backups) relay(url string, after int64, cut func() bool) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	b.must(err)
	r := &relay{l, strings.TrimPrefix(url, "http://"), after, sync.OnceValue(cut)}
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.pass(c)
		}
	}()
	return r
}

func (r *relay) url() string { return "http://" + r.Addr().String() }

func (r *relay) pass(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", r.server)
	if err != nil {
		return
	}
	defer s.Close()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(s, c) // ends with the client
	}()
	if n, _ := io.CopyN(c, s, r.after); n == r.after && !r.cut() {
		<-gone
		return
	}
	_, _ = io.Copy(c, s)
}

// TestKilledBackup ends a backup at random moments: the server is killed, and the command is
// killed or interrupted. No file has the name of the backup, and the server makes the next one.
func TestKilledBackup(t *testing.T) {
	b := newBackups(t)
	server, url := b.serve("store")
	c, err := client.New(url, client.Options{})
	b.must(err)
	defer c.Close()
	const promises, size = 16, 2 << 20
	for i := range promises {
		b.create(c, fmt.Sprint(i), strings.Repeat("x", size))
	}
	for range 5 {
		for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM} {
			b.ended(url, rand.Int64N(promises*size), signal)
		}
	}
	for !b.succeeds(url) { // the server may not have noticed that the last reader is gone
		b.must(b.Context().Err())
	}
	b.must(os.Remove(filepath.Join(b.dir, "backup")))

	r := b.relay(url, rand.Int64N(promises*size), func() bool {
		b.must(server.Process.Kill())
		return true
	})
	cmd, out := b.command("backup", "backup", "--server", r.url())
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 3 || !strings.Contains(out.String(), "the server has ended the backup after") {
		t.Errorf("the server was killed: %v\n%s", err, out)
	}
	if files := b.files(); len(files) > 0 {
		t.Errorf("the server was killed: there are %v", files)
	}
	_ = server.Wait() // it was killed
	b.run("backup", "backup", "--store", "store")
	b.run("restore", "backup", "--store", "restored")
	b.run("check", "restored")
	if _, err := os.Stat(filepath.Join(b.dir, "backup")); errors.Is(err, fs.ErrNotExist) {
		t.Error("the restore has removed the backup")
	}
}

// ended sends a signal to a backup after so many bytes, and checks what it leaves.
func (b *backups) ended(url string, after int64, signal syscall.Signal) {
	b.Helper()
	for refused := true; refused; { // the server may not have noticed that the reader before is gone
		var cmd *exec.Cmd
		started := make(chan struct{})
		r := b.relay(url, after, func() bool {
			<-started
			_ = cmd.Process.Signal(signal) // the exit code shows it
			return false
		})
		cmd, out := b.command("backup", "backup", "--server", r.url())
		b.must(cmd.Start())
		close(started)
		_ = cmd.Wait() // see the exit code
		if refused = strings.Contains(out.String(), "another backup is being made"); refused {
			continue
		}
		want := 3
		if signal == syscall.SIGKILL {
			want = -1
		}
		if code := cmd.ProcessState.ExitCode(); code != want {
			b.Errorf("%v: exit code %d: %s", signal, code, out)
		}
		for _, name := range b.files() {
			if signal != syscall.SIGKILL || !strings.Contains(name, ".tmp-") {
				b.Errorf("%v: there is a file %s", signal, name)
			}
			b.must(os.Remove(name))
		}
	}
}

// succeeds backs up a server. It reports false if the server makes another backup.
func (b *backups) succeeds(url string) bool {
	b.Helper()
	cmd, out := b.command("backup", "backup", "--server", url)
	err := cmd.Run()
	if err != nil && !strings.Contains(out.String(), "another backup is being made") {
		b.Fatalf("%v\n%s", err, out)
	}
	return err == nil
}
