package durabletests_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDurableSDKPrograms runs each program whose last comment is its output, at the same time,
// with two workers.
func TestDurableSDKPrograms(t *testing.T) {
	t.Parallel()
	b := prepare(t, "")
	for range 2 {
		b.node([]string{"EFFECTS=" + filepath.Join(t.TempDir(), "effects.txt")}, "worker.ts")
	}
	t.Run("programs", func(t *testing.T) {
		for name, want := range outputs(t) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				own := *b
				own.T = t
				own.node(nil, name).want(want)
			})
		}
	})
}

// TestDurableSDKReference compares the server with the reference server that the SDK contains.
func TestDurableSDKReference(t *testing.T) {
	t.Parallel()
	b := prepare(t, "", "--debug")
	out, err := b.node(nil, "compare.ts", "1", "40").result()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, outcome := range []string{"task.suspend 200", "task.suspend 300", "task.fence 200", "task.fulfill 200", "task.acquire 200"} {
		if !strings.Contains(out, outcome+":") {
			t.Errorf("no request had the outcome %s:\n%s", outcome, out)
		}
	}
}

// outputs returns the output of each program that has a comment "Output:" at its end.
func outputs(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(sdkPrograms + "/*.ts")
	if err != nil {
		t.Fatal(err)
	}
	list := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, comment, ok := strings.Cut(string(text), "\n// Output:\n"); ok {
			list[filepath.Base(file)] = strings.TrimPrefix(strings.ReplaceAll("\n"+strings.TrimSuffix(comment, "\n"), "\n// ", "\n"), "\n") + "\n"
		}
	}
	if len(list) < 12 {
		t.Fatalf("%d programs have an output, want at least 12", len(list))
	}
	return list
}

// TestDurableSDKToken runs programs with the token of a server, and with others.
func TestDurableSDKToken(t *testing.T) {
	t.Parallel()
	b := prepare(t, "open-sesame")
	for _, wrong := range []string{"", "open", "open-sesame!"} {
		p := b.node([]string{"RESONATE_TOKEN=" + wrong}, "begin.ts", "refused", "add", "1", "2")
		if out, err := p.result(); err == nil || out != "" || !strings.Contains(p.errors.String(), "HTTP 401") {
			t.Errorf("with the token %q the program ends with %v and prints\n%s%s", wrong, err, out, p.errors.String())
		}
	}
	b.node(nil, "worker.ts") // its stream needs the token too
	b.node(nil, "begin.ts", "accepted", "add", "1", "2").want("began accepted\n")
	out, err := b.node(nil, "result.ts", "accepted").result()
	if err != nil || !strings.HasSuffix(out, "\nresult: 3\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := b.node(nil, "result.ts", "refused").result(); err == nil {
		t.Errorf("a refused call exists: %s", out)
	}
}
