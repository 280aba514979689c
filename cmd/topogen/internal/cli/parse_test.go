package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParse: a command line becomes a value, which can be compared without running it.
func TestParse(t *testing.T) {
	topology := []string{"topology.yml"}
	for line, want := range map[string]command{
		"build":                                  Build{Files: topology, Format: "text"},
		"build a.yml b.yml":                      Build{Files: []string{"a.yml", "b.yml"}, Format: "text"},
		"build --check --format=sarif --strict":  Build{Files: topology, Check: true, Strict: true, Format: "sarif"},
		"build --scaffold a.yml --format github": Build{Files: []string{"a.yml"}, Scaffold: true, Format: "github"},
		"check":                                  Check{Files: topology, Format: "text"},
		"check --strict x.yml --format json":     Check{Files: []string{"x.yml"}, Strict: true, Format: "json"},
		"run":                                    Program{File: "topology.yml", Args: []string{}},
		"run -- x":                               Program{File: "topology.yml", Args: []string{"x"}},
		"graph":                                  Graph{File: "topology.yml", Format: "mermaid"},
		"proto":                                  Proto{File: "topology.yml"},
		"run a.yml":                              Program{File: "a.yml", Args: []string{}},
		"run a.yml -- --quiet x":                 Program{File: "a.yml", Args: []string{"--quiet", "x"}},
		"run -q a.yml --":                        Program{File: "a.yml", Args: []string{}, Quiet: true},
		"init orders":                            Init{Dir: "orders", Template: "pipeline"},
		"init . --template=feedback":             Init{Dir: ".", Template: "feedback"},
		"graph a.yml":                            Graph{File: "a.yml", Format: "mermaid"},
		"graph --format svg a.yml":               Graph{File: "a.yml", Format: "svg"},
		"schema":                                 Schema{},
		"explain":                                Explain{},
		"explain tg204":                          Explain{Code: "TG204"},
		"version":                                Version{},
		"completion zsh":                         Completion{Shell: "zsh"},
		"build --help":                           nil,
		"--help":                                 nil,
	} {
		got, err := parse(strings.Fields(line), Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)})
		if err != nil {
			t.Errorf("%s: %v", line, err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", line, d)
		}
	}
}

func TestRunCodes(t *testing.T) {
	for line, want := range map[string]int{"version": exitSuccess, "explain TG999": exitUsage, "": exitUsage, "check nowhere.yml": exitFindings} {
		var out, words bytes.Buffer
		if got := Run(t.Context(), strings.Fields(line), Streams{Out: &out, Err: &words}); got != want {
			t.Errorf("%q exits with %d, want %d", line, got, want)
		}
		if printed := words.Len() > 0; printed != (want != exitSuccess) {
			t.Errorf("%q prints %q to stderr", line, words.String())
		}
	}
}

// TestRunFails: a failed write is neither a finding nor wrong usage.
func TestRunFails(t *testing.T) {
	var words bytes.Buffer
	if got := Run(t.Context(), []string{"schema"}, Streams{Out: broken{}, Err: &words}); got != exitOther {
		t.Errorf("exits with %d, want %d", got, exitOther)
	}
	if want := "topogen: the disk is full\n"; words.String() != want {
		t.Errorf("stderr is %q, want %q", words.String(), want)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errFull{} }

type errFull struct{}

func (errFull) Error() string { return "the disk is full" }
