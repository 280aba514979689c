package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/topo"
)

// TestSplitterSendsWordsInSmallLetters tests one handler without a topology: a recorder
// collects its messages.
func TestSplitterSendsWordsInSmallLetters(t *testing.T) {
	r := RecordSplitter()
	Splitter{}.ReceiveChunk(Chunk{Text: "Über 2 go-routines,\n\tgo!"}, r.Sender())
	want := []Word{{"über"}, {"go"}, {"routines"}, {"go"}}
	if !slices.Equal(r.Word, want) {
		t.Errorf("sent %v, want %v", r.Word, want)
	}
}

func TestFeedLosesNothingWhereItCuts(t *testing.T) {
	for name, text := range map[string]string{
		"empty":         "",
		"no line end":   "the end",
		"lines":         strings.Repeat("some words in a line\n", 10_000),
		"one long line": strings.Repeat("word ", 50_000),
		"one long word": strings.Repeat("ü", 50_000),
		"a full chunk":  strings.Repeat("x", chunkSize),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			write(t, path, text)
			r, feed := RecordFeed(), Feed{paths: []string{path}}
			if err := feed.Serve(t.Context(), r.Sender()); err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for i, chunk := range r.Chunk {
				if len(chunk.Text) > chunkSize || chunk.Number != i || !strings.HasPrefix(text[all.Len():], chunk.Text) {
					t.Fatalf("chunk %d is wrong: number %d, %d bytes", i, chunk.Number, len(chunk.Text))
				}
				if strings.ToValidUTF8(chunk.Text, "") != chunk.Text {
					t.Errorf("chunk %d was cut within a letter", i)
				}
				all.WriteString(chunk.Text)
			}
			if all.Len() != len(text) || feed.Bytes != int64(len(text)) {
				t.Errorf("%d bytes sent, %d counted, want %d", all.Len(), feed.Bytes, len(text))
			}
		})
	}
}

// TestEveryOrderGivesTheSameTable runs the topology in one goroutine. A seed always gives
// the same order of steps.
func TestEveryOrderGivesTheSameTable(t *testing.T) {
	folder, want := corpus(t, 200)
	for seed := range uint64(10) {
		var table bytes.Buffer
		topology := newTopology(t, folder, &table)
		if err := topology.Stepper(seed).Run(); err != nil {
			t.Fatal(err)
		}
		if table.String() != want {
			t.Fatalf("seed %d:\n%swant\n%s", seed, &table, want)
		}
	}
}

// TestRun runs the topology on real workers.
func TestRun(t *testing.T) {
	folder, want := corpus(t, 50_000)
	var table bytes.Buffer
	topology := newTopology(t, folder, &table)
	if err := topology.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if table.String() != want {
		t.Errorf("got\n%swant\n%s", &table, want)
	}
	if files := topology.Feed(0).Files; files != 3 {
		t.Errorf("got %d files, want 3: the binary file and .git must be skipped", files)
	}
}

func TestMissingFileIsAnError(t *testing.T) {
	err := run(t.Context(), []string{filepath.Join(t.TempDir(), "nothing")})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}

func BenchmarkWords(b *testing.B) {
	b.ReportAllocs()
	text := randomText(rand.New(rand.NewPCG(1, 2)), 1_000_000)
	path := filepath.Join(b.TempDir(), "file")
	write(b, path, text)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := newTopology(b, path, new(bytes.Buffer)).Run(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

func newTopology(t testing.TB, path string, table *bytes.Buffer) *Topology {
	t.Helper()
	topology, err := New(Processors{
		Feed: func(topo.Instance) (*Feed, error) { return &Feed{paths: []string{path}}, nil },
		Top:  func(topo.Instance) (*Top, error) { return &Top{rows: 5, out: table}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// corpus creates a folder with text and with files that must be skipped, and computes the
// table directly.
func corpus(t *testing.T, words int) (folder, table string) {
	folder = t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	times := make(map[string]int)
	for i := range 3 {
		text := randomText(random, words)
		write(t, filepath.Join(folder, fmt.Sprint("dir", i), "file"), text)
		for _, word := range strings.Fields(text) {
			times[word]++
		}
	}
	write(t, filepath.Join(folder, "binary"), "nothing of \x00 this")
	write(t, filepath.Join(folder, ".git", "config"), "nor of this")

	top := Top{rows: 5, out: new(bytes.Buffer)}
	for word, n := range times {
		top.ReceiveCount(Count{word, n})
		top.ReceiveTotal(Total{n, 1})
	}
	if err := top.Finish(); err != nil {
		t.Fatal(err)
	}
	return folder, top.out.(*bytes.Buffer).String()
}

// randomText contains few frequent and many rare words, like real text.
func randomText(random *rand.Rand, words int) string {
	zipf := rand.NewZipf(random, 1.1, 3, 20_000)
	var b strings.Builder
	for i := range words {
		n := zipf.Uint64()
		for ; n >= 26; n /= 26 {
			b.WriteByte('a' + byte(n%26))
		}
		b.WriteByte('a' + byte(n))
		if i%12 == 11 {
			b.WriteByte('\n')
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
