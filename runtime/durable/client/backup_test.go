package client

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// TestBackup: a backup that is refused, cut or silent is an error.
func TestBackup(t *testing.T) {
	t.Parallel() // it waits for timeouts
	content := bytes.Repeat([]byte("content "), 100_000)
	release := make(chan struct{})
	for _, test := range []struct {
		name    string
		answer  http.HandlerFunc
		opens   string // the error of Backup
		reading string // the error of Read
	}{
		{"complete", func(w http.ResponseWriter, r *http.Request) {
			if r.Method != "GET" || r.URL.Path != "/backup" || r.Header.Get("Authorization") != "Bearer s3cret" {
				t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
			}
			http.ServeContent(w, r, "backup", time.Time{}, bytes.NewReader(content))
		}, "", ""},
		{"refused", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(409)
			w.Write(protocol.AppendResponse(nil, &protocol.Request{}, &protocol.Result{Status: 409, Error: "another one"}))
		}, "client: backup: another one", ""},
		{"refused by another program", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "go away", http.StatusBadGateway) }, "502 Bad Gateway", ""},
		{"without a length", func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }, "has not announced the length", ""},
		{"cut", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			w.Write(content)
			panic(http.ErrAbortHandler)
		}, "", "unexpected EOF"},
		{"silent", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			w.Write(content)
			w.(http.Flusher).Flush()
			<-release
		}, "", "nothing for 1s"},
		{"silent at once", func(http.ResponseWriter, *http.Request) { <-release }, "nothing for 100ms", ""},
	} {
		timeout := patience
		switch test.name {
		case "silent":
			timeout = time.Second // the head of the answer must arrive in this time, on a busy computer too
		case "silent at once":
			timeout = 100 * time.Millisecond
		}
		c := serve(t, Options{Token: "s3cret", Timeout: timeout}, test.answer)
		b, err := c.Backup(t.Context())
		if test.opens != "" {
			if err == nil || !strings.Contains(err.Error(), test.opens) {
				t.Errorf("%s: %v", test.name, err)
			}
			if r, ok := errors.AsType[*Refusal](err); ok != strings.HasPrefix(test.name, "refused") || ok && r.Status < 400 {
				t.Errorf("%s: %#v", test.name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(test.name, err)
		}
		got, err := io.ReadAll(b)
		if test.reading == "" && (err != nil || !bytes.Equal(got, content) || b.Bytes != int64(len(content))) {
			t.Errorf("%s: %d bytes: %v", test.name, len(got), err)
		}
		if test.reading != "" && (err == nil || !strings.Contains(err.Error(), test.reading)) {
			t.Errorf("%s: %v", test.name, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	close(release)
}
