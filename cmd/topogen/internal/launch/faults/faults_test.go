package faults

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A storm is some lines a second and a count of the others, all of which add up.
func TestAStormIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		l := topogenLines{out: &out}
		for range 2500 { // 2.5 seconds
			l.say("again")
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		some := strings.Repeat("again\n", 10)
		want := some + "topogen: and 990 more\n" + some + "topogen: and 990 more\n" + some + "topogen: and 490 more\n"
		if out.String() != want {
			t.Errorf("got %q", out.String())
		}
	})
}

// What ends with the program is said before.
func TestFlush(t *testing.T) {
	var out strings.Builder
	l := topogenLines{out: &out}
	for range 13 {
		l.say("again")
	}
	l.flush()
	l.flush()
	if !strings.HasSuffix(out.String(), "again\ntopogen: and 3 more\n") || strings.Count(out.String(), "\n") != 11 {
		t.Errorf("got %q", out.String())
	}
}

func TestLines(t *testing.T) {
	var out strings.Builder
	f := topogenWatch(&out)
	log := slog.New(f)
	log.Warn("topogen: an instance has failed", "processor", "camera", "instance", 1, "error",
		errors.New("processor \"camera\", instance 1: Ping: \x1b[2Jno frame\ngoroutine 7 [running]:"))
	log.Error("topogen: an instance failed and is not restarted", "processor", "camera", "instance", 1, "error", errors.New("too often"))
	f.Failed("camera", 1, nil)
	f.GaveUp("camera", 1, nil)
	f.Restarted("camera", 1)
	log.Warn("topogen: an input is silent", "input", "camera -> planner: Frame", "instance", 0)
	f.InputBroken("planner", 0, "camera -> planner: Frame")
	f.InputRecovered("planner", 0, "camera -> planner: Frame")
	log.Warn(strings.Repeat("x", 1000))
	want := `topogen: an instance has failed: processor "camera", instance 1: Ping: ` + "\ufffd" + `[2Jno frame
topogen: an instance failed and is not restarted: processor "camera", instance 1: too often
topogen: an instance was restarted: processor "camera", instance 1
topogen: an input is silent: camera -> planner: Frame, instance 0
topogen: an input has recovered: camera -> planner: Frame, instance 0
` + strings.Repeat("x", 400) + "…\n"
	if out.String() != want {
		t.Errorf("got  %s\nwant %s", out.String(), want)
	}
	if f.gaveUp.Load() != 1 {
		t.Errorf("%d have given up", f.gaveUp.Load())
	}
}

// A program with a log of its own has all there, and in its form.
func TestALogOfTheProgram(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var out, theirs strings.Builder
	f := topogenWatch(&out)
	slog.SetDefault(slog.New(slog.NewTextHandler(&theirs, &slog.HandlerOptions{Level: slog.LevelWarn})))
	log := slog.New(f)
	log.Info("fault tolerance stats")
	log.Warn("topogen: an input is silent")
	log.With("more", 1).Warn("with more")
	log.WithGroup("g").Warn("in a group", "k", 2)
	if out.String() != "" || strings.Count(theirs.String(), "\n") != 3 {
		t.Errorf("we said %q, the program %s", out.String(), theirs.String())
	}
}
