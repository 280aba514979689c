package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/server"
)

const token = "s3cret"

// endpoints has a request to each endpoint, with the status that a caller with access
// gets. URLs that begin with "metrics" are on the listener of the metrics.
var endpoints = []struct {
	method, path, body string
	status             int
}{
	{"POST", "/", envelope("promise.get", "1", "", `{"id":"a"}`), 404},
	{"POST", "/", envelope("debug.snap", "1", "", `{}`), 200},
	{"POST", "/", "not JSON", 400},
	{"GET", "/poll/g/p", "", 200},
	{"GET", "/backup", "", 501}, // the store is in memory
	{"GET", "/health", "", 200},
	{"GET", "/ready", "", 200},
	{"GET", "/promises", "", 404},
	{"GET", "/tasks/a", "", 404},
	{"GET", "/schedules?id=1", "", 404},
	{"GET", "/nothing", "", 404},
	{"GET", "metrics/metrics", "", 200},
	{"GET", "metrics/", "", 404},
}

// status sends a request and returns the status. It does not read the stream of messages.
func status(t *testing.T, s *server.Server, transport http.RoundTripper, method, path, body string, header http.Header) int {
	t.Helper()
	url := s.URL() + path
	if rest, ok := strings.CutPrefix(path, "metrics"); ok {
		url = strings.Replace(s.URL(), s.Address(), s.MetricsAddress(), 1) + rest
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for key, values := range header {
		r.Header[key] = values
	}
	if host := header.Get("Host"); host != "" {
		r.Host = host
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 400 && response.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s: a refusal has the Content-Type %q", method, path, response.Header.Get("Content-Type"))
	}
	return response.StatusCode
}

func TestTokens(t *testing.T) {
	s := listen(t, server.Config{Tokens: []string{"older", token}, Debug: true, MetricsListen: "127.0.0.1:0"})
	for _, e := range endpoints {
		for _, test := range []struct {
			authorization string
			access        bool
		}{
			{"Bearer " + token, true}, {"Bearer older", true}, {"bearer " + token, true},
			{"", false}, {"Bearer ", false}, {"Bearer", false}, {"Bearer wrong", false}, {"Bearer s3cre", false},
			{"Bearer s3crett", false}, {"Bearer S3CRET", false}, {"Basic " + token, false}, {token, false},
			{"Bearer " + strings.Repeat("x", 4000), false},
		} {
			header := http.Header{}
			if test.authorization != "" {
				header.Set("Authorization", test.authorization)
			}
			want := e.status
			if !test.access {
				want = 401
			}
			if got := status(t, s, http.DefaultTransport, e.method, e.path, e.body, header); got != want {
				t.Errorf("%s %s with %.40q: got status %d, want %d", e.method, e.path, test.authorization, got, want)
			}
		}
	}
}

// TestTokenInHead: the head of a request may have the token instead of the header.
func TestTokenInHead(t *testing.T) {
	s := listen(t, server.Config{Tokens: []string{token}})
	for _, test := range []struct {
		auth, header string
		status       int
	}{
		{token, "", 404}, {"wrong", "", 401}, {"", "", 401},
		{token, "Bearer wrong", 401}, // both are sent by the SDK, and they are the same
		{"wrong", "Bearer " + token, 404},
	} {
		header := http.Header{}
		if test.header != "" {
			header.Set("Authorization", test.header)
		}
		body := envelope("promise.get", "1", `,"auth":"`+test.auth+`"`, `{"id":"a"}`)
		if got := status(t, s, http.DefaultTransport, "POST", "/", body, header); got != test.status {
			t.Errorf("auth %q, header %q: got status %d, want %d", test.auth, test.header, got, test.status)
		}
	}
}

// TestRefusalNamesNoReason: a caller without access does not learn whether its request
// would be right.
func TestRefusalNamesNoReason(t *testing.T) {
	s := listen(t, server.Config{Tokens: []string{token}})
	_, body := exchange(t, "POST", s.URL(), envelope("promise.get", "7", "", `{"id":""}`), nil)
	if want := `{"kind":"promise.get","head":{"corrId":"7","status":401,"version":"2026-04-01"},"data":"a valid token is needed"}`; body != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

// TestDebugIsRefused is a known bug of the original: everyone could use the operations
// for tests.
func TestDebugIsRefused(t *testing.T) {
	s := listen(t, server.Config{Backend: openEngine(t, engine.Config{Debug: true})})
	for _, kind := range []string{"debug.start", "debug.stop", "debug.reset", "debug.snap"} {
		if got := status(t, s, http.DefaultTransport, "POST", "/", envelope(kind, "1", "", `{}`), nil); got != 403 {
			t.Errorf("%s: got status %d, want 403", kind, got)
		}
	}
	for _, body := range []string{
		envelope("debug.tick", "1", "", `{"time":1}`),
		envelope("promise.get", "1", `,"resonate:debug_time":1`, `{"id":"a"}`),
	} {
		if got := status(t, s, http.DefaultTransport, "POST", "/", body, nil); got != 403 {
			t.Errorf("%s: got status %d, want 403", body, got)
		}
	}
}

// TestPages: a web page that the user of this computer visits cannot use the server.
func TestPages(t *testing.T) {
	const page = "https://app.example.com"
	s := listen(t, server.Config{Origins: []string{page}, Hosts: []string{"promises.internal"}, Debug: true, MetricsListen: "127.0.0.1:0"})
	for _, test := range []struct {
		name   string
		header http.Header
		access bool
	}{
		{"the program of a user", nil, true},
		{"node", http.Header{"Sec-Fetch-Mode": {"cors"}}, true},
		{"a user who types the address", http.Header{"Sec-Fetch-Site": {"none"}}, true},
		{"the page that is allowed", http.Header{"Origin": {page}, "Sec-Fetch-Site": {"cross-site"}}, true},
		{"another page", http.Header{"Origin": {"https://evil.example.com"}}, false},
		{"a page in a frame", http.Header{"Origin": {"null"}}, false},
		{"a page with a similar name", http.Header{"Origin": {page + ".evil.com"}}, false},
		{"an image of another page", http.Header{"Sec-Fetch-Site": {"cross-site"}}, false},
		{"an image of a page on another port", http.Header{"Sec-Fetch-Site": {"same-site"}}, false},
		{"a page whose name was changed to point here", http.Header{"Host": {"evil.example.com:8001"}, "Sec-Fetch-Site": {"same-origin"}}, false},
		{"a name that looks like an address", http.Header{"Host": {"127.0.0.1.evil.com"}}, false},
		{"a name that ends like this computer's", http.Header{"Host": {"evil-localhost"}}, false},
		{"localhost", http.Header{"Host": {"localhost:8001"}}, true},
		{"localhost in another case", http.Header{"Host": {"LocalHost"}}, true},
		{"a name below localhost", http.Header{"Host": {"a.localhost:8001"}}, true},
		{"an address", http.Header{"Host": {"127.0.0.1"}}, true},
		{"an address of version 6", http.Header{"Host": {"[::1]:8001"}}, true},
		{"a configured name", http.Header{"Host": {"promises.internal:80"}}, true},
	} {
		for _, e := range endpoints {
			want := e.status
			if !test.access {
				want = 403
			}
			if got := status(t, s, http.DefaultTransport, e.method, e.path, e.body, test.header); got != want {
				t.Errorf("%s: %s %s: got status %d, want %d", test.name, e.method, e.path, got, want)
			}
		}
	}
	t.Run("preflight", func(t *testing.T) {
		response, _ := exchange(t, "OPTIONS", s.URL(), "", http.Header{"Origin": {page}, "Access-Control-Request-Method": {"POST"}})
		if response.StatusCode != 204 || response.Header.Get("Access-Control-Allow-Origin") != page || response.Header.Get("Vary") != "Origin" {
			t.Errorf("got status %d and %v", response.StatusCode, response.Header)
		}
		response, _ = exchange(t, "OPTIONS", s.URL(), "", http.Header{"Origin": {"https://evil.example.com"}})
		if response.StatusCode != 403 || response.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("another page: got status %d and %v", response.StatusCode, response.Header)
		}
	})
}

// TestNamesOfInsecureServers: a server that everyone may use can be reached by any name,
// but not if it listens only on this computer.
func TestNamesOfInsecureServers(t *testing.T) {
	for address, want := range map[string]int{"127.0.0.1:0": 403, "0.0.0.0:0": 200} {
		s := listen(t, server.Config{Listen: address, Insecure: true})
		if got := status(t, s, http.DefaultTransport, "GET", "/health", "", http.Header{"Host": {"promises.example.com"}}); got != want {
			t.Errorf("%s: got status %d, want %d", address, got, want)
		}
	}
}

// TestNamesOfOtherServers: with tokens, a web page cannot use the server under any name,
// so the name does not matter.
func TestNamesOfOtherServers(t *testing.T) {
	s := listen(t, server.Config{Tokens: []string{token}})
	header := http.Header{"Host": {"promises.example.com"}, "Authorization": {"Bearer " + token}}
	if got := status(t, s, http.DefaultTransport, "GET", "/health", "", header); got != 200 {
		t.Errorf("got status %d, want 200", got)
	}
}

func TestContentType(t *testing.T) {
	s := listen(t, server.Config{})
	body := envelope("promise.get", "1", "", `{"id":"a"}`)
	for _, test := range []struct {
		contentType string
		status      int
	}{
		{"application/json", 404}, {"application/json; charset=utf-8", 404}, {"Application/JSON", 404}, {"", 404},
		{"text/plain", 400}, {"application/x-www-form-urlencoded", 400}, {"multipart/form-data; boundary=x", 400}, {"json", 400},
	} {
		header := http.Header{}
		if test.contentType != "" {
			header.Set("Content-Type", test.contentType)
		}
		if got := status(t, s, http.DefaultTransport, "POST", "/", body, header); got != test.status {
			t.Errorf("%q: got status %d, want %d", test.contentType, got, test.status)
		}
	}
}

func TestMethods(t *testing.T) {
	s := listen(t, server.Config{})
	for _, test := range []struct {
		method, path, allow string
	}{
		{"GET", "/", "POST"}, {"PUT", "/", "POST"}, {"DELETE", "/", "POST"}, {"OPTIONS", "/", "POST"},
		{"POST", "/poll/g/p", "GET"}, {"POST", "/health", "GET"}, {"DELETE", "/ready", "GET"},
	} {
		response, _ := exchange(t, test.method, s.URL()+test.path, "", nil)
		if response.StatusCode != 405 || response.Header.Get("Allow") != test.allow {
			t.Errorf("%s %s: got status %d, Allow %q", test.method, test.path, response.StatusCode, response.Header.Get("Allow"))
		}
	}
	for _, path := range []string{"//", "/a/../", "/poll", "/poll/", "/poll/g", "/poll/g/", "/poll//p", "/poll/g/p/q", "/poll/g/%zz", "*"} {
		response := raw(t, s, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if response != 400 && response != 404 {
			t.Errorf("GET %s: got status %d, want 400 or 404", path, response)
		}
	}
}

// raw sends bytes and returns the status of the response.
func raw(t *testing.T, s *server.Server, text string) int {
	t.Helper()
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
