package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// A durableServer is a process of "topoctl durable serve".
type durableServer struct {
	cmd *exec.Cmd
	log string // the file with its stderr
}

// metrics returns the URL of the metrics, which the server has printed before it was ready.
func (s *durableServer) metrics(ts *testscript.TestScript) string {
	_, url, ok := strings.Cut(s.text(ts), "the metrics are at ")
	if !ok {
		ts.Fatalf("the server has no metrics")
	}
	return strings.TrimSpace(url)
}

func (s *durableServer) text(ts *testscript.TestScript) string {
	text, err := os.ReadFile(s.log)
	ts.Check(err)
	return string(text)
}

// durableKey is the key of the running server in the values of a script.
type durableKey struct{}

// serves COMMAND FLAG…: starts "topoctl durable COMMAND --listen 127.0.0.1:0 FLAG…" and
// waits until it is ready. $RESONATE_URL is its URL. The server runs until the command
// stops, or until the script ends.
func serves(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: serves COMMAND FLAG…")
	}
	path := filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], "topoctl")
	s := &durableServer{cmd: exec.Command(path, append([]string{"durable", args[0], "--listen", "127.0.0.1:0"}, args[1:]...)...), log: ts.MkAbs("server.log")}
	s.cmd.Dir = ts.MkAbs(".")
	s.cmd.Env = append(os.Environ(), "RESONATE_DEBUG="+ts.Getenv("RESONATE_DEBUG"))
	log, err := os.Create(s.log)
	ts.Check(err)
	defer log.Close()
	s.cmd.Stderr = log
	out, err := s.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(s.cmd.Start())
	ts.Defer(func() {
		_ = s.cmd.Process.Kill() // fails if the script has stopped it
		_ = s.cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "serving durable promises at ")
	if err != nil || !ok {
		_ = s.cmd.Wait()
		ts.Fatalf("the server is not ready: %q, %v\n%s", line, err, s.text(ts))
	}
	ts.Setenv("RESONATE_URL", url)
	ts.Value(durableKey{}).(map[string]*durableServer)["last"] = s
}

// stops SIGNAL CODE: sends SIGNAL to the server that was started last, and checks its exit
// code; -1 means that the signal has killed it.
func stops(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}
	if neg || len(args) != 2 || signals[args[0]] == 0 {
		ts.Fatalf("usage: stops TERM|INT|KILL CODE")
	}
	s := ts.Value(durableKey{}).(map[string]*durableServer)["last"]
	ts.Check(s.cmd.Process.Signal(signals[args[0]]))
	err := s.cmd.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		ts.Fatalf("%v", err)
	}
	if got := strconv.Itoa(s.cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("the server exited with %s, want %s\n%s", got, args[1], s.text(ts))
	}
}

// webcertificates DIR: creates an authority, a certificate of a server at 127.0.0.1, and one
// of a client: ca, server and client, each with .crt and .key.
func webCertificates(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: webcertificates DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o777))
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	signer := webCertificate(ts, dir, "ca", ca, nil, nil)
	for i, name := range []string{"server", "client"} {
		webCertificate(ts, dir, name, &x509.Certificate{
			SerialNumber: big.NewInt(int64(i) + 2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}, ca, signer)
	}
}

// webCertificate writes a certificate with its key. Without a parent it signs itself.
func webCertificate(ts *testscript.TestScript, dir, name string, c, parent *x509.Certificate, signer *ecdsa.PrivateKey) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	for suffix, block := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		ts.Check(os.WriteFile(filepath.Join(dir, name+suffix), pem.EncodeToMemory(block), 0o600))
	}
	return key
}

// hastask ID…: waits until promises with these ids exist. It is for commands that run in the
// background.
func hasTask(ts *testscript.TestScript, neg bool, args []string) {
	c, err := client.New(ts.Getenv("RESONATE_URL"), client.Options{})
	ts.Check(err)
	for _, id := range args {
		for {
			r, err := c.Do(context.Background(), protocol.TaskGet{ID: id})
			ts.Check(err)
			if r.Status == protocol.OK {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// debugtime STATUS: sends a request with a time of its own, and checks the status.
func debugTime(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: debugtime STATUS")
	}
	c, err := client.New(ts.Getenv("RESONATE_URL"), client.Options{})
	ts.Check(err)
	ctx := client.WithTime(context.Background(), 4_000_000_000_000)
	r, err := c.Do(ctx, protocol.PromiseCreate{ID: "at", TimeoutAt: 5_000_000_000_000})
	ts.Check(err)
	if got := strconv.Itoa(r.Status); got != args[0] {
		ts.Fatalf("status %s, want %s: %s", got, args[0], r.Error)
	}
	if r.Promise != nil && r.Promise.CreatedAt != 4_000_000_000_000 {
		ts.Fatalf("created at %d", r.Promise.CreatedAt)
	}
}

// metrics LINE: checks that the metrics of the server that was started last have a line. The
// server has printed their address.
func metrics(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(durableKey{}).(map[string]*durableServer)["last"]
	response, err := http.Get(s.metrics(ts))
	ts.Check(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	ts.Check(err)
	if want := strings.Join(args, " "); !strings.Contains(string(text), "\n"+want+"\n") {
		ts.Fatalf("the metrics lack %s:\n%s", want, text)
	}
}

// breakstore DIR: deletes all tasks of a store.
func breakStore(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: breakstore DIR")
	}
	disk, err := store.Open(ts.MkAbs(args[0]), store.Options{})
	ts.Check(err)
	ts.Check(disk.Update(func(tx store.Tx) error {
		for _, table := range []core.Table{core.Tasks, core.TaskTimeouts} {
			var keys [][]byte
			for key := range tx.Ascend(table, nil) {
				keys = append(keys, bytes.Clone(key))
			}
			for _, key := range keys {
				tx.Delete(table, key)
			}
		}
		return tx.Err()
	}))
	ts.Check(disk.Close())
}
