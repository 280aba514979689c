package durabletests_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/nodejs"
	"github.com/topogen/topogen/internal/test/rerun"
)

// awaitMax is far more than any condition takes on a busy computer.
const awaitMax = 2 * time.Minute

// bench is a server, its store and programs that use it.
type bench struct {
	*testing.T
	tools   nodejs.Toolchain
	dir     string   // of the programs
	store   string   // of the server
	address string   // of the server
	token   string   // that the server asks for; "" for none
	flags   []string // of the server
	server  *sdkProcess
	tls     *certificate // of the server; nil for none
}

// prepare starts a server with an empty store.
func prepare(t *testing.T, token string, flags ...string) *bench {
	t.Helper()
	b := &bench{T: t, tools: nodejs.Need(t, sdkPrograms), store: filepath.Join(t.TempDir(), "store"), token: token, flags: flags}
	rerun.WhenCodeChanges(t)
	b.open()
	return b
}

func (b *bench) open() {
	b.Helper()
	b.dir = stage(b.T, b.tools)
	b.address = loopback.Addresses(b.T, 1)[0]
	b.serve()
}

// url returns the address of the server as a URL.
func (b *bench) url() string {
	if b.tls != nil {
		return "https://" + b.address
	}
	return "http://" + b.address
}

// serve starts the server on the store, and waits until it is ready. When the test ends,
// it stops the last server and checks the store.
func (b *bench) serve() {
	b.Helper()
	server := sdkStart(b.T, b.serverCommand())
	b.server = server
	b.Cleanup(func() {
		if b.server == server {
			b.checkStore()
		}
	})
	readiness := http.DefaultClient
	if b.tls != nil {
		readiness = b.tls.client
	}
	b.await("the server is ready", func() bool {
		request, err := http.NewRequest(http.MethodGet, b.url()+"/ready", nil)
		if err != nil {
			b.Fatal(err)
		}
		if b.token != "" {
			request.Header.Set("Authorization", "Bearer "+b.token)
		}
		response, err := readiness.Do(request)
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

// node starts a program. The variables come last in its environment.
func (b *bench) node(variables []string, program string, args ...string) *sdkProcess {
	b.Helper()
	cmd := exec.Command(b.tools.Node, append([]string{program}, args...)...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "RESONATE_URL="+b.url(), "RESONATE_TOKEN="+b.token)
	if b.tls != nil {
		cmd.Env = append(cmd.Env, "NODE_EXTRA_CA_CERTS="+b.tls.certificate)
	}
	cmd.Env = append(cmd.Env, variables...)
	return sdkStart(b.T, cmd)
}

// await waits for a condition.
func (b *bench) await(what string, condition func() bool) {
	b.Helper()
	for deadline := time.Now().Add(awaitMax); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("timeout: %s", what)
		}
	}
}

// sdkProcess is a running command.
type sdkProcess struct {
	t      *testing.T
	name   string
	cmd    *exec.Cmd
	out    output
	errors output
	ended  chan struct{}
	err    error // valid when ended is closed
}

// sdkStart starts a command, which ends at the latest with the test.
func sdkStart(t *testing.T, cmd *exec.Cmd) *sdkProcess {
	t.Helper()
	p := &sdkProcess{t: t, name: strings.Join(cmd.Args, " "), cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.errors
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s\n%s%s", p.name, p.out.String(), p.errors.String())
		}
	})
	return p
}

// kill ends a process with SIGKILL.
func (p *sdkProcess) kill() {
	_ = p.cmd.Process.Kill() // fails if it has ended
	<-p.ended
}

// result waits until a process has ended, and returns what it printed.
func (p *sdkProcess) result() (string, error) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(awaitMax):
		p.t.Errorf("timeout: %s has not ended and printed\n%s%s", p.name, p.out.String(), p.errors.String())
		p.kill()
	}
	return p.out.String(), p.err
}

// want fails the test if the process does not print the text and end without an error.
func (p *sdkProcess) want(text string) {
	p.t.Helper()
	out, err := p.result()
	if err != nil {
		p.t.Errorf("%s: %v\n%s", p.name, err, p.errors.String())
	}
	if out != text {
		p.t.Errorf("%s\nprinted\n%s\nwant\n%s", p.name, out, text)
	}
}

// output is what a process prints.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// stopServer ends the server in order.
func (b *bench) stopServer() {
	b.Helper()
	if err := b.server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Errorf("the server has ended before: %v", err)
	}
	if _, err := b.server.result(); err != nil {
		b.Errorf("the server: %v", err)
	}
}
