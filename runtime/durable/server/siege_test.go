package server_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/child"
	"github.com/topogen/topogen/internal/test/siege"
	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/server"
	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/internal/loglimit"
)

func TestMain(m *testing.M) {
	child.Run(map[string]func() error{"server": serveBesieged})
	os.Exit(m.Run())
}

// certificates is the variable with the folder of the certificates of a besieged server. Without it
// clients need a token.
const certificates = "TOPOGEN_CERTIFICATES"

// serveBesieged is the child process: a server with all limits that users get.
func serveBesieged() error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	e, err := engine.Open(engine.Config{Store: store.NewMemory(), Logger: logger})
	if err != nil {
		return err
	}
	config := server.Config{Backend: e, Logger: logger, Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0"}
	if folder := os.Getenv(certificates); folder == "" {
		config.Tokens = []string{token}
	} else {
		pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "server"), filepath.Join(folder, "server"))
		if err != nil {
			return err
		}
		ca, err := os.ReadFile(filepath.Join(folder, "ca"))
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(ca)
		config.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	}
	s, err := server.Listen(config)
	if err != nil {
		return err
	}
	siege.Ready(s.Address(), s.MetricsAddress())
	return nil
}

// A target is a besieged server.
type target struct {
	*siege.Process
	tls *tls.Config // of its clients; nil: they have a token
}

func startTarget(t *testing.T) *target { return &target{Process: siege.Start(t, "server")} }

// startTLSTarget starts a server that clients need a certificate for.
func startTLSTarget(t *testing.T) *target {
	a, folder := newAuthority(t), t.TempDir()
	pair := a.issue(t, x509.ExtKeyUsageServerAuth)
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, blocks := range map[string][]*pem.Block{
		"server": {{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, {Type: "PRIVATE KEY", Bytes: key}},
		"ca":     {{Type: "CERTIFICATE", Bytes: a.certificate.Raw}},
	} {
		var text []byte
		for _, block := range blocks {
			text = append(text, pem.EncodeToMemory(block)...)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &target{
		Process: siege.Start(t, "server", certificates+"="+folder),
		tls:     &tls.Config{RootCAs: a.pool(), Certificates: []tls.Certificate{a.issue(t, x509.ExtKeyUsageClientAuth)}},
	}
}

func (s *target) address() string { return s.Addresses[0] }
func (s *target) metrics() string { return s.Addresses[1] }

func (s *target) url(address string) string {
	if s.tls != nil {
		return "https://" + address
	}
	return "http://" + address
}

// clients make requests with their connections, which stay open.
func (s *target) clients(t *testing.T) siege.Victim {
	c, err := client.New(s.url(s.address()), client.Options{Token: token, TLS: s.tls})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	var number atomic.Int64
	return siege.Victim{Name: "clients", Call: func(ctx context.Context) error {
		res, err := c.Do(ctx, protocol.PromiseCreate{ID: fmt.Sprint("victim", number.Add(1)), TimeoutAt: later()})
		if err == nil && res.Status != protocol.OK {
			err = fmt.Errorf("the status is %d: %s", res.Status, res.Error)
		}
		return err
	}}
}

// untilServed prepares an attack, and waits until clients are served. The bodies of the attack make room only
// when they are older than SlowBody: until then one burst may refuse the requests of others, as SECURITY.md says.
func (s *target) untilServed(t *testing.T, prepare func()) func() {
	call := s.clients(t).Call
	return func() {
		prepare()
		<-time.After(server.SlowBody) // the age of what was prepared
		until(t, "clients are served", func() bool { return call(t.Context()) == nil })
	}
}

// newcomers make each request with a new connection.
func (s *target) newcomers(t *testing.T, address, path string) siege.Victim {
	return s.getters(t, "new clients", address, path, &http.Transport{DisableKeepAlives: true, TLSClientConfig: s.tls})
}

// readers of metrics keep their connections.
func (s *target) readers(t *testing.T) siege.Victim {
	return s.getters(t, "readers", s.metrics(), "/metrics", &http.Transport{TLSClientConfig: s.tls, MaxConnsPerHost: 4})
}

func (s *target) getters(t *testing.T, name, address, path string, transport *http.Transport) siege.Victim {
	t.Cleanup(transport.CloseIdleConnections)
	return siege.Victim{Name: name, Rate: 20, Call: func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, "GET", s.url(address)+path, nil)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := transport.RoundTrip(r)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return err
		}
		if response.StatusCode != 200 {
			return errors.New(response.Status)
		}
		return nil
	}}
}

// victims are the other clients of the listener at an address.
func (s *target) victims(t *testing.T, address string) []siege.Victim {
	if address == s.metrics() {
		readers, newcomers := s.readers(t), s.newcomers(t, address, "/metrics")
		readers.Rate, newcomers.Rate = 5, 5 // few, because there are few connections
		return []siege.Victim{readers, newcomers}
	}
	return []siege.Victim{s.clients(t), s.newcomers(t, address, "/health")}
}

// crowd keeps n connections open that have each sent a text, and takes nothing of the answers unless
// reads is set. It opens a connection again when the server has closed it, one each time.
type crowd struct {
	address string
	n       int
	texts   []string
	reads   bool
	each    time.Duration // 0: 2 ms
}

func (a *crowd) attack(ctx context.Context) {
	pace := time.NewTicker(cmp.Or(a.each, 2*time.Millisecond))
	defer pace.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	for i := range a.n {
		all.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-pace.C:
					a.connect(ctx, a.texts[i%len(a.texts)])
				}
			}
		})
	}
}

// connect sends a text and waits until the server closes the connection.
func (a *crowd) connect(ctx context.Context, text string) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", a.address)
	if err != nil {
		return // the server has closed it
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if !a.reads {
		_ = c.(*net.TCPConn).SetReadBuffer(4096)
		_, _ = io.WriteString(c, text) // until the server has taken it or closes the connection
		pace := time.NewTicker(100 * time.Millisecond)
		defer pace.Stop()
		for one := make([]byte, 1); ctx.Err() == nil; <-pace.C { // finds out whether the connection is closed
			if _, err := c.Read(one); err != nil {
				return
			}
		}
		return
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.WriteString(c, text)
	}()
	_, _ = io.Copy(io.Discard, c)
	c.Close()
	<-written
}

// keep opens connections before the siege begins, each with a text. They are not opened again.
func keep(t *testing.T, address string, n int, texts ...string) func() {
	a := attack(t)
	return func() {
		for i := range n {
			a.send(address, texts[i%len(texts)])
		}
		a.sends.Wait()
	}
}

const host = "Host: localhost\r\n"

var bearer = "Authorization: Bearer " + token + "\r\n"

func post(header string, length int, body string) string {
	return fmt.Sprintf("POST / HTTP/1.1\r\n%s%sContent-Length: %d\r\n\r\n%s", host, header, length, body)
}

// stalled has requests of a length that arrive but for the last byte.
func stalled(header string, lengths ...int) (texts []string) {
	for _, n := range lengths {
		texts = append(texts, post(header, n, strings.Repeat(" ", n-1)))
	}
	return texts
}

// longHeader is a header that never ends.
func longHeader() string {
	return "GET /health HTTP/1.1\r\n" + host + strings.Repeat("X: "+strings.Repeat("x", 1000)+"\r\n", 15) + "Y: "
}

// besieged checks the figures of a cell, and runs the siege with the victims of the listener.
func besieged(t *testing.T, s *target, address string, memory int64, prepare func(), attack func(context.Context)) siege.Result {
	t.Helper()
	return siege.Run(t, siege.Siege{Server: s.Process, Victims: s.victims(t, address), Prepare: prepare, Attack: attack, MemoryMax: memory})
}

// strangersMemory is what strangers may add to the resident memory of a server: twice what the table
// says, because of garbage.
const strangersMemory = 2 * (4096*server.StrangerConnMemory + server.StrangersMax)

func TestSiegeOfRequests(t *testing.T) {
	siege.Cells(t, "durable", map[string]func(*testing.T, siege.Cell){
		"bytes/stranger": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, siege.Bytes(server.HeaderBytesMax), siege.Bytes(server.StrangerMax), siege.Bytes(server.StrangersMax), siege.Time(server.HeaderTimeoutDefault))
			s := startTarget(t)
			a := &crowd{address: s.address(), n: 200, texts: append(stalled("", 4_000_000, server.StrangerMax, server.StrangerMax, server.StrangerMax/2, 5000),
				"POST / HTTP/1.1\r\n"+host+"Transfer-Encoding: chunked\r\n\r\nf000\r\n"+strings.Repeat(" ", 0xefff), longHeader())}
			besieged(t, s, s.address(), 2*server.StrangersMax+8<<20, nil, a.attack)
		},
		"connections/stranger": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, siege.Count(server.ConnectionsMaxDefault))
			s := startTarget(t)
			a := &crowd{address: s.address(), n: 200, texts: texts(), reads: true}
			besieged(t, s, s.address(), strangersMemory, keep(t, s.address(), server.ConnectionsMaxDefault+100, ""), a.attack)
		},
		"memory/stranger": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, siege.Bytes(server.StrangerConnMemory))
			s := startTarget(t)
			besieged(t, s, s.address(), strangersMemory, keep(t, s.address(), server.ConnectionsMaxDefault+100, longHeader()), nil)
			s = startTLSTarget(t)
			a := &stalledHandshakes{address: s.address(), n: 1000, key: newAuthority(t).key}
			besieged(t, s, s.address(), strangersMemory/8, nil, a.attack)
		},
		"processor time/stranger": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, "1")
			s := startTLSTarget(t)
			refusedHandshakes(t, s, s.address())
		},
		"log keys/stranger": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t)
			for _, s := range []*target{startTarget(t), startTLSTarget(t)} {
				silent(t, s, s.address())
			}
		},
		"answers/stranger": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t)
			s := startTarget(t)
			a := &crowd{address: s.address(), n: 200, texts: []string{idle["unread answer"], strings.Repeat("GET /backup HTTP/1.1\r\n"+host+"\r\n", 1000), "GET /poll/g/p HTTP/1.1\r\n" + host + "\r\n"}}
			besieged(t, s, s.address(), 200*2*server.StrangerConnMemory, nil, a.attack)
		},
		"bytes/client": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, siege.Bytes(server.HeaderBytesMax), siege.Bytes(protocol.MaxBody), siege.Bytes(server.BodiesMaxDefault), siege.Time(server.BodyTimeoutDefault), siege.Time(server.SlowBody))
			s := startTarget(t)
			besieged(t, s, s.address(), 2*server.BodiesMaxDefault+16<<20, s.untilServed(t, keep(t, s.address(), 40, slowBodies(s).texts...)), slowBodies(s).attack)
		},
		"connections/client": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, siege.Count(server.ConnectionsMaxDefault))
			s := startTarget(t)
			siege.Run(t, siege.Siege{
				Server:  s.Process,
				Victims: []siege.Victim{s.getters(t, "connected clients", s.address(), "/health", &http.Transport{MaxConnsPerHost: 1})},
				Prepare: keep(t, s.address(), server.ConnectionsMaxDefault+100, "GET /health HTTP/1.1\r\n"+host+bearer+"\r\n"),
				Attack:  (&crowd{address: s.address(), n: 100, texts: []string{"GET /health HTTP/1.1\r\n" + host + bearer + "\r\n"}, reads: true}).attack,
			})
		},
		"memory/client": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, siege.Bytes(server.BodiesMaxDefault), siege.Bytes(server.ResponsesMaxDefault))
			s := startTarget(t)
			besieged(t, s, s.address(), 2*(server.BodiesMaxDefault+2*server.ResponsesMaxDefault), s.untilServed(t, createLarge(t, s)), both(slowBodies(s).attack, slowReaders(s).attack))
		},
		"processor time/client": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, siege.Count(server.RequestsMaxDefault))
			s := startTarget(t)
			search := s.clients(t)
			siege.Run(t, siege.Siege{Server: s.Process, Victims: s.victims(t, s.address()), Attackers: 2, Attack: func(ctx context.Context) {
				for ctx.Err() == nil {
					_ = search.Call(ctx)
				}
			}})
		},
		"log keys/client": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, "1", siege.Count(loglimit.KeysMax), "1")
			s := startTarget(t)
			siege.Run(t, siege.Siege{Server: s.Process, Victims: s.victims(t, s.address()), Attack: failingAddresses(t, s)})
			if n := strings.Count(s.Log(), "\n"); n == 0 || n > loglimit.KeysMax {
				t.Errorf("addresses that fail have caused %d lines, want 1 to %d", n, loglimit.KeysMax)
			}
		},
		"answers/client": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, siege.Bytes(server.ResponsesMaxDefault), siege.Time(server.WriteTimeoutDefault), siege.Time(server.SlowResponse), siege.Count(engine.ConnectionsMaxDefault))
			s := startTarget(t)
			besieged(t, s, s.address(), 0, s.untilServed(t, createLarge(t, s)), slowReaders(s).attack)
		},
	})
}

func TestSiegeOfMetrics(t *testing.T) {
	siege.Cells(t, "metrics", map[string]func(*testing.T, siege.Cell){
		"bytes/stranger": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, siege.Bytes(server.HeaderBytesMax), siege.Time(server.BodyTimeoutDefault))
			s := startTarget(t)
			a := &crowd{address: s.metrics(), n: 100, texts: append(stalled("", 4_000_000, 5000), longHeader())}
			besieged(t, s, s.metrics(), 2*server.ScrapesMax*server.StrangerConnMemory, nil, a.attack)
		},
		"connections/stranger": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, siege.Count(server.ScrapesMax))
			s := startTarget(t)
			a := &crowd{address: s.metrics(), n: 200, texts: texts(), reads: true}
			besieged(t, s, s.metrics(), 2*server.ScrapesMax*server.StrangerConnMemory, keep(t, s.metrics(), server.ScrapesMax+10, ""), a.attack)
		},
		"memory/stranger": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, siege.Bytes(server.StrangerConnMemory))
			s := startTarget(t)
			a := &crowd{address: s.metrics(), n: 100, texts: []string{longHeader()}, reads: true}
			besieged(t, s, s.metrics(), 2*server.ScrapesMax*server.StrangerConnMemory, nil, a.attack)
		},
		"processor time/stranger": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, "1")
			s := startTLSTarget(t)
			refusedHandshakes(t, s, s.metrics())
		},
		"log keys/stranger": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t)
			for _, s := range []*target{startTarget(t), startTLSTarget(t)} {
				silent(t, s, s.metrics())
			}
		},
		"answers/stranger": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t)
			s := startTarget(t)
			a := &crowd{address: s.metrics(), n: 100, texts: []string{strings.Repeat("GET /metrics HTTP/1.1\r\n"+host+"\r\n", 1000)}}
			besieged(t, s, s.metrics(), 2*server.ScrapesMax*server.StrangerConnMemory, nil, a.attack)
		},
		"bytes/client": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, siege.Bytes(server.HeaderBytesMax), siege.Time(server.BodyTimeoutDefault))
			s := startTarget(t)
			a := &crowd{address: s.metrics(), n: server.ScrapesMax / 2, texts: []string{strings.Replace(stalled(bearer, 4_000_000)[0], "POST /", "GET /metrics", 1)}, reads: true, each: 20 * time.Millisecond}
			besieged(t, s, s.metrics(), 32<<20, nil, a.attack)
		},
		"connections/client": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, siege.Count(server.ScrapesMax))
			s := startTarget(t)
			siege.Run(t, siege.Siege{
				Server:  s.Process,
				Victims: []siege.Victim{s.getters(t, "connected readers", s.metrics(), "/metrics", &http.Transport{MaxConnsPerHost: 1})},
				Prepare: keep(t, s.metrics(), server.ScrapesMax+10, "GET / HTTP/1.1\r\n"+host+bearer+"\r\n"),
				Attack:  (&crowd{address: s.metrics(), n: 100, texts: []string{"GET / HTTP/1.1\r\n" + host + bearer + "\r\n"}, reads: true}).attack,
			})
		},
		"memory/client": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, siege.Bytes(metricsMemory))
			s := startTarget(t)
			besieged(t, s, s.metrics(), 2*server.ScrapesMax*metricsMemory, nil, unreadMetrics(s).attack)
		},
		"processor time/client": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, "1")
			s := startTarget(t)
			reader := s.readers(t)
			siege.Run(t, siege.Siege{Server: s.Process, Victims: s.victims(t, s.metrics()), Attackers: 2, CPUMax: 1300 * time.Millisecond, Attack: func(ctx context.Context) {
				for ctx.Err() == nil {
					_ = reader.Call(ctx)
				}
			}})
		},
		"log keys/client": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t)
			s := startTarget(t)
			besieged(t, s, s.metrics(), 0, nil, unreadMetrics(s).attack)
			if s.Log() != "" {
				t.Errorf("a reader of metrics has caused lines in the log:\n%.2000s", s.Log())
			}
		},
		"answers/client": func(t *testing.T, cell siege.Cell) {
			cell.Figures(t, siege.Count(server.ScrapesMax))
			s := startTarget(t)
			besieged(t, s, s.metrics(), 0, nil, unreadMetrics(s).attack)
		},
	})
}

// metricsMemory is what a reader of metrics may add to the memory of a server: an answer.
const metricsMemory = 256 << 10

// unreadMetrics are readers that read nothing.
func unreadMetrics(s *target) *crowd {
	return &crowd{address: s.metrics(), n: server.ScrapesMax / 2, texts: []string{strings.Repeat("GET /metrics HTTP/1.1\r\n"+host+bearer+"\r\n", 2000)}}
}

// slowBodies are requests of clients of which all but the last byte arrives.
func slowBodies(s *target) *crowd {
	return &crowd{address: s.address(), n: 60, texts: stalled(bearer, 4_100_000, 1_000_000), reads: true, each: 100 * time.Millisecond}
}

// createLarge creates a promise whose record has 8 MB, for which readers ask that read only the header
// of the response.
func createLarge(t *testing.T, s *target) func() {
	c, err := client.New(s.url(s.address()), client.Options{Token: token, TLS: s.tls})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	a := attack(t)
	return func() {
		data := strings.Repeat("x", 4_000_000)
		do(t, c, 200, protocol.PromiseCreate{ID: "large", TimeoutAt: later(), Param: protocol.Value{Data: &data}})
		do(t, c, 200, protocol.PromiseSettle{ID: "large", State: protocol.Resolved, Value: protocol.Value{Data: &data}})
		const readers = 40 // more than fit
		for range readers {
			a.send(s.address(), slowReaders(s).texts[0])
		}
		for range readers {
			<-a.answers
		}
	}
}

// slowReaders ask for the large promise and read nothing.
func slowReaders(s *target) *crowd {
	text := envelope("promise.get", "1", "", `{"id":"large"}`)
	return &crowd{address: s.address(), n: 100, texts: []string{post(bearer, len(text), text)}, each: 200 * time.Millisecond} // each costs the server 20 ms
}

func both(attacks ...func(context.Context)) func(context.Context) {
	return func(ctx context.Context) {
		var all sync.WaitGroup
		for _, attack := range attacks {
			all.Go(func() { attack(ctx) })
		}
		all.Wait()
	}
}

// failingAddresses creates promises whose messages cannot be delivered, each to another address.
func failingAddresses(t *testing.T, s *target) func(context.Context) {
	c, err := client.New(s.url(s.address()), client.Options{Token: token, TLS: s.tls})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return func(ctx context.Context) {
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = c.Do(ctx, targeted(fmt.Sprint("attack", i), fmt.Sprintf("http://127.0.0.1:1/%d", i)))
		}
	}
}

// texts are what idle strangers send.
func texts() (all []string) {
	for _, text := range idle {
		all = append(all, text)
	}
	return all
}

// refusedHandshakes: certificates that strangers make cost little, and one processor at most.
func refusedHandshakes(t *testing.T, s *target, address string) {
	t.Helper()
	var refused atomic.Int64
	chains := []tls.Certificate{expensive(t, 5, 4096), expensive(t, 20, 8192), expensive(t, 100, 8192)}
	r := siege.Run(t, siege.Siege{
		Server: s.Process, Victims: s.victims(t, address), Attackers: 2, CPUMax: time.Second, MemoryMax: strangersMemory,
		Attack: func(ctx context.Context) {
			for i := 0; ctx.Err() == nil; i++ {
				c, err := tls.DialWithDialer(new(net.Dialer), "tcp", address, &tls.Config{
					InsecureSkipVerify:   true, // Certificates would send only a chain of an authority that the server names
					GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &chains[i%3], nil },
				})
				if err == nil {
					if _, err = c.Read(make([]byte, 1)); err == nil {
						t.Error("the server has accepted a certificate of another authority")
					}
					c.Close()
				}
				refused.Add(1)
			}
		},
	})
	const each, error = 20 * time.Millisecond, 200 * time.Millisecond // x509 takes 500 ms for the longer chain
	if n := refused.Load(); n == 0 || r.CPU > time.Duration(n)*each+error {
		t.Errorf("%d refused handshakes cost %v of processor time, want at most %v each", n, r.CPU, each)
	}
}

// expensive is a chain that costs the most to verify with x509 alone: all other certificates may
// have signed the first one.
func expensive(t *testing.T, n int, bits uint) tls.Certificate {
	t.Helper()
	signer, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	chain := tls.Certificate{PrivateKey: leaf}
	for i := range n {
		var public any = &leaf.PublicKey
		if i > 0 { // a modulus without a private key
			modulus := new(big.Int).SetBit(new(big.Int), int(bits)-1, 1)
			public = &rsa.PublicKey{N: modulus.Add(modulus, big.NewInt(int64(2*i+1))), E: 65537}
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, public, signer)
		if err != nil {
			t.Fatal(err)
		}
		var parts struct {
			TBS       asn1.RawValue
			Algorithm pkix.AlgorithmIdentifier
			Signature asn1.BitString
		}
		if _, err := asn1.Unmarshal(der, &parts); err != nil {
			t.Fatal(err)
		}
		parts.Signature = asn1.BitString{Bytes: make([]byte, bits/8), BitLength: int(bits)}
		parts.Signature.Bytes[9] = 1
		if der, err = asn1.Marshal(parts); err != nil {
			t.Fatal(err)
		}
		chain.Certificate = append(chain.Certificate, der)
	}
	return chain
}

// silent: whatever strangers send, the log has no line.
func silent(t *testing.T, s *target, address string) {
	t.Helper()
	a := &crowd{address: address, n: 200, texts: append(texts(), "\x16\x03\x01\x00\xa5\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"), reads: true}
	besieged(t, s, address, 0, nil, a.attack)
	if s.Log() != "" {
		t.Errorf("strangers have caused lines in the log:\n%.2000s", s.Log())
	}
}

// stalledHandshakes are connections of strangers who send the longest message of TLS, their certificates,
// but for its end.
type stalledHandshakes struct {
	address string
	n       int
	key     *ecdsa.PrivateKey
}

func (a *stalledHandshakes) attack(ctx context.Context) {
	pace := time.NewTicker(5 * time.Millisecond) // each handshake costs the attacker as much as the server
	defer pace.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	for range a.n {
		all.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-pace.C:
					a.connect(ctx, 245_000)
				}
			}
		})
	}
}

// connect sends a number of bytes of a handshake, and waits until the server closes the connection.
func (a *stalledHandshakes) connect(ctx context.Context, n int) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", a.address)
	if err != nil {
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	certificate := &tls.Certificate{Certificate: [][]byte{make([]byte, 250_000)}, PrivateKey: a.key}
	_ = tls.Client(&halting{Conn: c, left: n}, &tls.Config{
		InsecureSkipVerify:   true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil },
	}).HandshakeContext(ctx)
}

// A halting connection sends only a number of bytes, and then waits for the other end.
type halting struct {
	net.Conn
	left int
}

func (h *halting) Write(b []byte) (int, error) {
	n := min(h.left, len(b))
	h.left -= n
	if _, err := h.Conn.Write(b[:n]); err != nil {
		return 0, err
	}
	if n < len(b) {
		_, err := io.Copy(io.Discard, h.Conn)
		return 0, errors.Join(err, io.ErrUnexpectedEOF)
	}
	return n, nil
}
