package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/server"
)

// An attacker opens connections and sends no token. It closes them after the test.
type attacker struct {
	t       *testing.T
	conns   []net.Conn
	sends   sync.WaitGroup
	answers chan int // the statuses of responses; 0: the server has closed a connection without one
}

func attack(t *testing.T) *attacker {
	a := &attacker{t: t, answers: make(chan int, 10_000)}
	t.Cleanup(func() {
		for _, c := range a.conns {
			c.Close()
		}
	})
	return a
}

// send sends text over a new connection, in the background. The answer is in answers.
func (a *attacker) send(address, text string) {
	a.t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		a.t.Fatal(err)
	}
	a.conns = append(a.conns, c)
	a.sends.Go(func() {
		io.WriteString(c, text) // the server may have closed the connection
	})
	go func() {
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			a.answers <- 0
			return
		}
		a.answers <- response.StatusCode
	}()
}

// TestBodiesOfStrangers: bodies without a token do not use the memory for the bodies of clients, and
// little of their own.
func TestBodiesOfStrangers(t *testing.T) {
	t.Parallel()
	s := listen(t, server.Config{Tokens: []string{token}, BodyTimeout: patience, HeaderTimeout: patience})
	defer closeAtOnce(t, s)
	a := attack(t)
	for part := 2_200_000; part > 1000; part /= 2 { // smaller ones fill what the larger ones leave
		for range 40 {
			a.send(s.Address(), "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n"+strings.Repeat(" ", part))
		}
	}
	until(t, "short bodies use up the memory for bodies of strangers", func() bool {
		a.send(s.Address(), "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65536\r\n\r\n"+strings.Repeat(" ", 65_000))
		a.send(s.Address(), "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2000\r\n"+strings.Repeat(" ", 5000))
		return s.BodyBytes() > 3<<20
	})
	a.sends.Wait()
	c := connect(t, s, client.Options{Token: token})
	data := strings.Repeat("x", 3_000_000)
	for i := range 10 {
		do(t, c, 200, protocol.PromiseCreate{ID: fmt.Sprint("large", i), TimeoutAt: later(), Param: protocol.Value{Data: &data}})
		do(t, c, 200, protocol.PromiseCreate{ID: fmt.Sprint("small", i), TimeoutAt: later()})
	}
	until(t, "the bodies of strangers have at most 4 MiB", func() bool { return s.StrangerBytes() <= 4<<20 })
}

// TestLongBodiesWithTokenInHead: a long request needs its token in the header. A short one of a
// client that has it in the head counts as one of a client as soon as the token is known.
func TestLongBodiesWithTokenInHead(t *testing.T) {
	t.Parallel()
	s := listen(t, server.Config{Tokens: []string{token}})
	defer closeAtOnce(t, s)
	for _, test := range []struct {
		auth, header string
		length       int
		status       int
	}{
		{token, "", 64 << 10, 404},
		{token, "", 64<<10 + 1, 401},
		{token, "", 3 << 20, 401},
		{"wrong", "", 64 << 10, 401},
		{token, "Bearer " + token, 3 << 20, 404},
	} {
		text := envelope("promise.get", "1", `,"auth":"`+test.auth+`"`, `{"id":"a"}`)
		text += strings.Repeat(" ", test.length-len(text))
		for name, body := range map[string]io.Reader{"announced": strings.NewReader(text), "in pieces": io.MultiReader(strings.NewReader(text))} {
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL(), body)
			if err != nil {
				t.Fatal(err)
			}
			if test.header != "" {
				r.Header.Set("Authorization", test.header)
			}
			response, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				if test.length > 1<<20 && test.status == 401 { // the server closes the connection while the client still sends
					continue
				}
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if response.StatusCode != test.status {
				t.Errorf("%d bytes %s, auth %q, header %q: got status %d, want %d: %s", test.length, name, test.auth, test.header, response.StatusCode, test.status, answer)
			}
			if explained := strings.Contains(string(answer), "header Authorization"); explained != (test.length > 64<<10 && test.status == 401) {
				t.Errorf("%d bytes %s, auth %q: the answer is %s", test.length, name, test.auth, answer)
			}
		}
	}
}
