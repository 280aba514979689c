//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func goodHello() []byte { return frame(frameHello, appendHello(nil, "hash", nil, nil)...) }

// afterHello sends a valid hello and answers the first call with the given bytes.
func afterHello(answer ...byte) func(*os.File) {
	return func(conn *os.File) {
		conn.Write(goodHello())
		newFrames(conn, MessageLimitDefault).next(nil)
		conn.Write(answer)
		io.Copy(io.Discard, conn)
	}
}

func writes(b ...byte) func(*os.File) {
	return func(conn *os.File) {
		conn.Write(b)
		io.Copy(io.Discard, conn)
	}
}

// hang reads from a pipe to which no process writes.
func hang() {
	r, _, _ := os.Pipe()
	r.Read(make([]byte, 1))
}

// hostile are processes that violate the protocol, by processor name.
var hostile = map[string]func(conn *os.File){
	"silent":              writes(),
	"claims":              writes(3, 0, 0, 0, byte(frameHello), 1, 2, 3),
	"start: garbage":      writes([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")...),
	"start: huge":         writes(0xFF, 0xFF, 0xFF, 0xFF, byte(frameHello)),
	"start: no hello":     writes(frame(frameAnswer, 0, 0)...),
	"start: short hello":  writes(frame(frameHello, 0, 0, 0, version)...),
	"start: version":      writes(frame(frameHello, 0, 0, 0, version+1, 0, 0, 0, 0, 0)...),
	"start: hash":         writes(frame(frameHello, appendHello(nil, "hush", nil, nil)...)...),
	"call: garbage":       afterHello([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")...),
	"call: huge":          afterHello(0xFF, 0xFF, 0xFF, 0xFF, byte(frameAnswer)),
	"call: hello":         afterHello(goodHello()...),
	"call: empty":         afterHello(frame(frameAnswer)...),
	"call: error":         afterHello(frame(frameAnswer, errorSentinel, 200, 0)...),
	"call: no such error": afterHello(frame(frameAnswer, 9, 0)...),
	"call: short send":    afterHello(frame(frameAnswer, 0, 0, 1, 2, 3)...),
	"call: negative size": afterHello(frame(frameAnswer, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF)...),
	"closes": func(conn *os.File) {
		conn.Write(goodHello())
		conn.Close()
		hang()
	},
	"leaves": func(conn *os.File) {
		conn.Write(goodHello())
		frames := newFrames(conn, MessageLimitDefault)
		frames.next(nil)
		escaped := exec.Command("sleep", "1000")
		escaped.ExtraFiles = []*os.File{conn}
		escaped.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := escaped.Start(); err != nil {
			panic(err)
		}
		var a AnswerBuilder
		a.Reply(fmt.Append(nil, escaped.Process.Pid))
		conn.Write(frame(frameAnswer, a.appendBody(nil, nil, true)...))
		frames.next(nil)
		os.Exit(3)
	},
	"deaf": func(conn *os.File) {
		conn.Write(goodHello())
		hang()
	},
}

func TestHostileProcess(t *testing.T) {
	t.Parallel() // it waits for endTimeout
	for name := range hostile {
		phase, _, ok := strings.Cut(name, ": ")
		if !ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			c, err := Start(t.Context(), settings(name))
			if phase == "call" {
				if err != nil {
					t.Fatal(err)
				}
				_, err = c.Call(1, 0, nil)
			}
			// On a busy computer a killed process may not have ended after endTimeout.
			exit := exitOf(t, err).Exit
			if !errors.Is(err, ErrProtocol) || exit.Signal != "SIGKILL" && !strings.HasSuffix(exit.String(), "has not ended yet") {
				t.Errorf("%v", err)
			}
		})
	}
	for _, name := range []string{"silent", "claims"} {
		s := settings(name)
		s.StartupTimeout = 50 * time.Millisecond
		if _, err := Start(t.Context(), s); !errors.Is(err, ErrStartup) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := start(t, settings("closes"))
	if _, err := c.Call(1, 0, nil); !strings.Contains(err.Error(), "killed by SIGKILL: the connection is closed but the process is still running: ") {
		t.Errorf("closes: %v", err)
	}
	if err := start(t, settings("call: hello")).Serve(nil); !errors.Is(err, ErrProtocol) {
		t.Errorf("serve: %v", err)
	}
}

// TestDeaf: a process that does not read blocks only its own calls, and only until it is
// killed.
func TestDeaf(t *testing.T) {
	t.Parallel() // it allocates a large message
	c := start(t, settings("deaf"))
	called := make(chan error)
	go func() {
		_, err := c.Call(1, 0, make([]byte, MessageLimitDefault/2))
		called <- err
	}()
	c.Stop()
	c.Cancel()
	c.Kill()
	if err := <-called; !errors.Is(err, ErrKilled) {
		t.Errorf("%v", err)
	}
}

// TestTheConnectionIsHeld: the end of a process is detected even if a process that it
// started holds the connection open.
func TestTheConnectionIsHeld(t *testing.T) {
	t.Parallel() // it waits for endTimeout
	c := start(t, settings("leaves"))
	pid, err := strconv.Atoi(string(ask(t, c, "").Reply))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGKILL)
	_, err = c.Call(1, 0, nil)
	if e := exitOf(t, err); e.Exit.Code != 3 || !e.Exit.InCall {
		t.Errorf("%v", err)
	}
}

// TestAnotherBuild: a process whose plan differs from its parent's refuses to run.
func TestAnotherBuild(t *testing.T) {
	registered.Store("another", "a newer hash")
	defer registered.Store("another", "other hash")
	s := settings("camera|exit 3") // is not executed
	s.Topology, s.Hash = "another", "a newer hash"
	_, err := Start(t.Context(), s)
	if err == nil || !strings.Contains(err.Error(), `from a different build: its plan has hash "other hash", want "a newer hash"`) {
		t.Errorf("%v", err)
	}
}

// TestHostileVariable: a process with a forged variable runs neither main nor the
// instance that the variable names.
func TestHostileVariable(t *testing.T) {
	good := settings("camera").value(os.Getpid(), nil)
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, test := range map[string]struct {
		value string
		files []*os.File
		want  string
	}{
		"empty":    {"", nil, "it was set by another version of topogen"},
		"garbage":  {"1\nx", nil, "it was set by another version of topogen"},
		"version":  {"9" + good[1:], nil, "it was set by another version of topogen"},
		"parent":   {settings("camera").value(1, nil), nil, "process 1 is not the parent"},
		"number":   {strings.Replace(good, "\n3\n", "\nthree\n", 1), nil, "three"},
		"instance": {strings.Replace(good, "\n1\n2", "\n2\n2", 1), nil, "invalid instance 2 of 2"},
		"no name":  {strings.Replace(good, "camera", "", 1), nil, `invalid name ""`},
		"closes 0": {settings("camera").value(os.Getpid(), []int{0}), nil, "file 0 is in use"},
		"no file":  {good, nil, "file 3 is not a socket"},
		"a file":   {good, []*os.File{file}, "file 3 is not a socket"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), variable+"="+test.value)
		cmd.ExtraFiles = test.files
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != exitRefused || !bytes.Contains(out, []byte(test.want)) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
