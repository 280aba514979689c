package edges

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// TestReplayChangesNothing: a replay changes no byte and no time of the folder of a store.
func TestReplayChangesNothing(t *testing.T) {
	dir := memdir.Quick(t)
	disk, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := engine.Open(engine.Config{Store: disk})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Do(t.Context(), protocol.PromiseCreate{ID: "a", TimeoutAt: protocol.MaxTime}); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := describe(t, dir)
	e := &Carrier{replay: dir}
	o, err := e.openReplay()
	if err != nil {
		t.Fatal(err)
	}
	if r, err := o.Do(t.Context(), protocol.PromiseGet{ID: "a"}); err != nil || r.Status != protocol.OK {
		t.Error(r, err)
	}
	if err := o.close(t.Context()); err != nil {
		t.Error(err)
	}
	if after := describe(t, dir); !maps.Equal(before, after) {
		t.Errorf("the folder has changed: %v, was %v", after, before)
	}
}

// describe returns the modes, times and contents of a folder and its files.
func describe(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for _, path := range append(files, dir) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		var content []byte
		if !info.IsDir() {
			if content, err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		m[path] = fmt.Sprintf("%v %v %x", info.Mode(), info.ModTime(), content)
	}
	return m
}

// TestOneLine prints ids that would change the terminal.
func TestOneLine(t *testing.T) {
	text := "order \n\x1b[31m\u2028 \"ü\": ☕"
	if got, want := oneLine(text), `order \n\x1b[31m\u2028 "ü": ☕`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
