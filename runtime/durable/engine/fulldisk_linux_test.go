package engine_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// TestFullDisk fills a small disk with promises: the engine refuses operations, keeps all
// that were answered, and accepts operations when there is space.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("needs permission to mount: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	s, err := store.Open(dir, store.Options{})
	must(t, err)
	e := start(t, engine.Config{Store: s, Logger: quiet})
	data := strings.Repeat("x", 1000)
	answered := 0
	for {
		p := create(fmt.Sprint("p", answered))
		p.Param.Data = &data
		r, err := e.Do(context.Background(), p)
		must(t, err)
		if r.Status == 503 && strings.Contains(r.Error, "no space") {
			break
		}
		if r.Status != 200 {
			t.Fatal(r)
		}
		answered++
	}
	for i := range answered {
		do(t, e, protocol.PromiseGet{ID: fmt.Sprint("p", i)}, 200)
	}
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=4m"))
	do(t, e, create("after"), 200)
	must(t, e.Close(context.Background()))
	s, err = store.Open(dir, store.Options{})
	must(t, err)
	check(t, s)
	e = start(t, engine.Config{Store: s})
	for i := range answered {
		do(t, e, protocol.PromiseGet{ID: fmt.Sprint("p", i)}, 200)
	}
	do(t, e, protocol.PromiseGet{ID: "after"}, 200)
	if answered < 200 {
		t.Errorf("only %d promises", answered)
	}
}
