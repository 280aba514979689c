package faults

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAStormIsBounded: of many failures, ten lines per second are printed, and the number
// of the others.
func TestAStormIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		l := topogenLines{out: &out}
		for range 2500 { // 2.5 seconds
			l.print("again")
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		some := strings.Repeat("again\n", 10)
		want := some + "topogen: 990 more lines were not printed\n" + some + "topogen: 990 more lines were not printed\n" + some + "topogen: 490 more lines were not printed\n"
		if out.String() != want {
			t.Errorf("got %q", out.String())
		}
	})
}

// TestFlush: flush prints the number of lines that were not printed, once.
func TestFlush(t *testing.T) {
	var out strings.Builder
	l := topogenLines{out: &out}
	for range 13 {
		l.print("again")
	}
	l.flush()
	l.flush()
	if !strings.HasSuffix(out.String(), "again\ntopogen: 3 more lines were not printed\n") || strings.Count(out.String(), "\n") != 11 {
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

// TestALogOfTheProgram: if the program has its own logger, this logger gets all records.
func TestALogOfTheProgram(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var out, programLog strings.Builder
	f := topogenWatch(&out)
	slog.SetDefault(slog.New(slog.NewTextHandler(&programLog, &slog.HandlerOptions{Level: slog.LevelWarn})))
	log := slog.New(f)
	log.Info("fault tolerance stats")
	log.Warn("topogen: an input is silent")
	log.With("more", 1).Warn("with more")
	log.WithGroup("g").Warn("in a group", "k", 2)
	if out.String() != "" || strings.Count(programLog.String(), "\n") != 3 {
		t.Errorf("stderr has %q, the log of the program %s", out.String(), programLog.String())
	}
}

// TestPlaceOfAPanic checks that the line of a failure names the file and the line of the panic, also if
// the runtime of Go has called panic, or if the stack is part of the error.
func TestPlaceOfAPanic(t *testing.T) {
	stackOf := func(fails func()) (stack string) {
		defer func() { recover(); stack = string(debug.Stack()) }()
		fails()
		return ""
	}
	var none *slog.Record
	for name, stack := range map[string]string{
		"panic":   stackOf(func() { panic("bug") }),
		"pointer": stackOf(func() { none.AddAttrs() }),
		"none":    "",
	} {
		for _, attrs := range [][]slog.Attr{
			{slog.Any("error", "processor \"p\": panic: bug"), slog.String("stack", stack)},
			{slog.Any("error", "processor \"p\": panic: bug\n"+stack)},
		} {
			r := slog.NewRecord(time.Time{}, slog.LevelWarn, "topogen: an instance has failed", 0)
			r.AddAttrs(attrs...)
			line, _, _ := strings.Cut(topogenLine(r), "\n")
			want := `topogen: an instance has failed: processor "p": panic: bug`
			if name == "none" && line != want || name != "none" && !(strings.HasPrefix(line, want+" (/") && strings.Contains(line, ".go:") && strings.HasSuffix(line, ")")) {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
	r := slog.NewRecord(time.Time{}, slog.LevelWarn, "x", 0)
	r.AddAttrs(slog.String("stack", stackOf(func() { panic("bug") })))
	if line := topogenLine(r); !strings.Contains(line, "faults_test.go:") {
		t.Error(line)
	}
}
