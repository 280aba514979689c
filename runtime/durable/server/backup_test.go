package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/server"
	"github.com/topogen/topogen/runtime/durable/store"
)

// promises is the number of MiB in a store. They are more than the kernels of both sides hold.
const promises = 16

// withDisk starts a server with a store on disk that has promises of some MiB.
func withDisk(t *testing.T, config server.Config) (*server.Server, *engine.Engine) {
	t.Helper()
	disk, err := store.Open(filepath.Join(t.TempDir(), "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := openEngine(t, engine.Config{Store: disk})
	data := strings.Repeat("x", 1<<20)
	var puts sync.WaitGroup
	for i := range promises {
		puts.Go(func() { put(t, e, fmt.Sprint("p", i), data) }) // one commit has several
	}
	puts.Wait()
	config.Backend = e
	return listen(t, config), e
}

func put(t *testing.T, e *engine.Engine, id, data string) {
	t.Helper()
	r, err := e.Do(t.Context(), protocol.PromiseCreate{ID: id, TimeoutAt: protocol.MaxTime, Param: protocol.Value{Data: &data}})
	if err != nil || r.Status != protocol.OK {
		t.Error(r, err)
	}
}

// get fetches a backup.
func get(t *testing.T, s *server.Server, header http.Header) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/backup", nil)
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		r.Header = header
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() }) // it may be closed already
	return response
}

// text returns the body of a response.
func text(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestBackup: a backup has what was answered before, needs a token, and only one is made at a
// time. The server answers requests while it sends a backup.
func TestBackup(t *testing.T) {
	t.Parallel()
	s, e := withDisk(t, server.Config{Tokens: []string{token}})
	if r := get(t, s, nil); r.StatusCode != protocol.Unauthorized {
		t.Errorf("without a token: %s", r.Status)
	}
	access := http.Header{"Authorization": {"Bearer " + token}}
	first := get(t, s, access)
	if first.StatusCode != protocol.OK {
		t.Fatal(first.Status, text(t, first))
	}
	if r := get(t, s, access); r.StatusCode != protocol.Conflict || !strings.Contains(text(t, r), "another backup is being made") {
		t.Errorf("a second backup: %s", r.Status)
	}
	put(t, e, "later", "y")
	name := filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(name, []byte(text(t, first)), 0o600); err != nil {
		t.Fatal(err)
	}
	if report, err := store.VerifyFile(name); err != nil || len(report.Damage) > 0 || report.Records[1] != promises || report.Bytes != first.ContentLength {
		t.Errorf("%+v %v", report, err)
	}
	eventually(t, func() bool { return get(t, s, access).StatusCode == protocol.OK })
}

// eventually waits for a condition.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatal("the condition does not hold")
		}
	}
}

// TestBackupOfStoppedReader: a reader that takes nothing loses its backup, which is cut, and the
// next reader gets one.
func TestBackupOfStoppedReader(t *testing.T) {
	t.Parallel()
	s, _ := withDisk(t, server.Config{BackupStall: 200 * time.Millisecond})
	stopped := get(t, s, nil)
	eventually(t, func() bool {
		r := get(t, s, nil)
		defer r.Body.Close()
		return r.StatusCode == protocol.OK
	})
	if n, err := io.Copy(io.Discard, stopped.Body); err == nil || n >= stopped.ContentLength {
		t.Errorf("%d of %d bytes: %v", n, stopped.ContentLength, err)
	}
}

// TestBackupAtShutdown: a backup does not hold up the end of the server.
func TestBackupAtShutdown(t *testing.T) {
	t.Parallel()
	s, _ := withDisk(t, server.Config{})
	r := get(t, s, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, r.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

// TestBackupMethods: a backup is fetched with GET.
func TestBackupMethods(t *testing.T) {
	s := listen(t, server.Config{})
	for _, method := range []string{"HEAD", "POST", "DELETE"} {
		if got := status(t, s, http.DefaultTransport, method, "/backup", "", nil); got != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, got)
		}
	}
}

// TestBackupsOfManySizes: each backup is complete, whatever its last part is, and a connection
// can have many of them.
func TestBackupsOfManySizes(t *testing.T) {
	disk, err := store.Open(filepath.Join(memdir.Quick(t), "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := openEngine(t, engine.Config{Store: disk})
	s := listen(t, server.Config{Backend: e})
	sizes := map[int]bool{}
	least := speed.Pick(t, 10, 80, 80)
	for i := 0; i < least || len(sizes) < 8; i++ {
		if i == 500 {
			t.Fatalf("the sizes are %v pages after a multiple of 8: the test tests little", sizes)
		}
		put(t, e, fmt.Sprint("p", i), strings.Repeat("x", 3000))
		for range speed.Pick(t, 2, 10, 10) {
			r := get(t, s, nil)
			b, err := io.ReadAll(r.Body)
			if err != nil || int64(len(b)) != r.ContentLength {
				t.Fatalf("%d of %d bytes: %v", len(b), r.ContentLength, err)
			}
			sizes[len(b)/4096%8] = true
		}
	}
}
