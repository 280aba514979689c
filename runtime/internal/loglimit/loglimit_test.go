package loglimit

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestKeys(t *testing.T) {
	var log bytes.Buffer
	n := New(slog.New(slog.NewTextHandler(&log, nil)), "area", "peers")
	now := time.Now()
	for i := range KeysMax {
		if !n.fresh(fmt.Sprint(i), now) || n.fresh(fmt.Sprint(i), now) {
			t.Fatal("the first entry of a key was not logged")
		}
	}
	if len(n.last) != KeysMax || n.fresh("one more", now) {
		t.Errorf("%d keys are remembered", len(n.last))
	}
	if now = now.Add(Interval); !n.fresh("one more", now) || !n.fresh("0", now) || n.fresh("0", now) {
		t.Error("after a minute, keys must be logged again")
	}
	n.Log(slog.LevelInfo, "a", "b")
	n.Log(slog.LevelInfo, "a", "b")
	n.Report()
	if text := log.String(); strings.Count(text, "area: b") != 1 || strings.Count(text, "area: events were not logged") != 1 || !strings.Contains(text, "number=1") {
		t.Error(text)
	}
}
