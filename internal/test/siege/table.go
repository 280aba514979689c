package siege

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
)

// A Cell is a cell of the table of budgets: what one identity may use of one budget of a listener.
type Cell struct {
	Listener, Budget, Identity string
	Text                       string
}

// none is the text of a cell whose identity does not exist at the listener.
const none = "—"

// header begins the first line of the table.
const header = "| listener | budget |"

// Cells runs the test of each cell of a listener, in parallel. The names of tests are BUDGET/IDENTITY.
// A cell without a test fails, and so does a test without a cell.
func Cells(t *testing.T, listener string, tests map[string]func(*testing.T, Cell)) {
	speed.Landing(t)
	speed.NoRace(t)
	cells := read(t, listener)
	for name := range tests {
		if _, ok := cells[name]; !ok {
			t.Errorf("the table of budgets in SECURITY.md has no cell %s of the listener %q", name, listener)
		}
	}
	for name, cell := range cells {
		test, ok := tests[name]
		if !ok {
			t.Errorf("the cell %s of the listener %q in SECURITY.md has no test", name, listener)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, cell)
		})
	}
}

// read returns the cells of a listener by BUDGET/IDENTITY.
func read(t testing.TB, listener string) map[string]Cell {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	cells := parse(string(text))
	of := make(map[string]Cell)
	for _, c := range cells {
		if c.Listener == listener {
			of[c.Budget+"/"+c.Identity] = c
		}
	}
	if len(of) == 0 {
		t.Fatalf("SECURITY.md has no budgets of the listener %q", listener)
	}
	return of
}

// parse returns the cells of the table in a text, without those whose identity does not exist.
func parse(text string) (cells []Cell) {
	_, text, found := strings.Cut(text, "\n"+header)
	if !found {
		return nil
	}
	first := true
	var identities []string
	for line := range strings.Lines(header + text) {
		fields := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			return cells
		case first:
			identities, first = fields[2:len(fields)-1], false
		case strings.HasPrefix(fields[0], "-"): // below the header
		default:
			for i, identity := range identities {
				if fields[2+i] != none {
					cells = append(cells, Cell{Listener: fields[0], Budget: fields[1], Identity: identity, Text: fields[2+i]})
				}
			}
		}
	}
	return cells
}

// root returns the folder of the module.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the test is not in a module")
		}
		dir = filepath.Dir(dir)
	}
}

var figure = regexp.MustCompile(`\d[\d,]*(\.\d+)?( (B|KiB|MiB|GiB|ms|s|minutes?|hours?|%))?\b`)

// Figures compares the numbers in the text of a cell with constants, in the order of the text.
func (c Cell) Figures(t *testing.T, want ...string) {
	t.Helper()
	if got := figure.FindAllString(c.Text, -1); !slices.Equal(got, want) {
		t.Errorf("the cell %s/%s of the listener %q in SECURITY.md has the figures %q, want %q", c.Budget, c.Identity, c.Listener, got, want)
	}
}

// Bytes returns a size as the table has it, such as 64 KiB.
func Bytes[N int | int64](n N) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if size := N(1) << (30 - 10*i); n >= size || -n >= size {
			return strconv.FormatFloat(float64(n*10/size)/10, 'f', -1, 64) + " " + unit
		}
	}
	return fmt.Sprintf("%d B", n)
}

// Count returns a number as the table has it, such as 4,096.
func Count[N int | int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Time returns a length of time as the table has it, such as 5 s, 2 minutes.
func Time(d time.Duration) string {
	switch {
	case d == time.Minute:
		return "1 minute"
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d minutes", d/time.Minute)
	case d >= time.Second:
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return fmt.Sprintf("%d ms", d/time.Millisecond)
}
