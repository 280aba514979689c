package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/gen/wire"
	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/internal/test/speed"
	"pgregory.net/rapid"
)

// order is a schema of one message. A field is a name, with its tag after a colon.
func order(fields ...string) wire.Schema {
	m := wire.Message{Name: "Order", Key: "shop.Order"}
	for _, f := range fields {
		field := wire.Field{Name: f}
		if name, tag, ok := strings.Cut(f, ":"); ok {
			field.Name, field.Tagged = name, true
			fmt.Sscan(tag, &field.Number)
		}
		m.Fields = append(m.Fields, field)
	}
	return wire.Schema{Messages: []wire.Message{m}}
}

// given are the numbers of a schema's fields.
func given(s wire.Schema) string {
	var list []string
	for _, f := range s.Messages[0].Fields {
		list = append(list, fmt.Sprint(f.Name, "=", f.Number))
	}
	for _, g := range s.Messages[0].Gone {
		list = append(list, fmt.Sprint("-", g.Name, "=", g.Number))
	}
	return strings.Join(list, " ")
}

// assign assigns numbers and fails at a problem.
func assign(t *testing.T, s wire.Schema, old string) (numbers, file string) {
	t.Helper()
	s, text, problems := wire.Assign(s, []byte(old))
	for _, p := range problems {
		t.Error(p)
	}
	return given(s), string(text)
}

// TestNumbers changes a message step by step.
func TestNumbers(t *testing.T) {
	file := ""
	for _, step := range []struct {
		what string
		s    wire.Schema
		want string
	}{
		{"it begins", order("Account", "Cents"), "Account=1 Cents=2"},
		{"a field is added in front", order("Note", "Account", "Cents"), "Note=3 Account=1 Cents=2"},
		{"fields change places", order("Cents", "Account", "Note"), "Cents=2 Account=1 Note=3"},
		{"one goes", order("Account", "Note"), "Account=1 Note=3 -Cents=2"},
		{"one is added: it does not get that number", order("Account", "Note", "Paid"), "Account=1 Note=3 Paid=4 -Cents=2"},
		{"one has a tag", order("Account", "Note", "Paid", "At:10"), "Account=1 Note=3 Paid=4 At=10 -Cents=2"},
		{"the next is behind it", order("Account", "Note", "Paid", "At:10", "By"), "Account=1 Note=3 Paid=4 At=10 By=11 -Cents=2"},
		{"its tag goes", order("Account", "Note", "Paid", "At", "By"), "Account=1 Note=3 Paid=4 At=10 By=11 -Cents=2"},
		{"the removed field comes back", order("Cents", "Account", "Note", "Paid", "At", "By"), "Cents=2 Account=1 Note=3 Paid=4 At=10 By=11"},
		{"protobuf's own numbers are left out", order("Account", "X:18999", "Y"), "Account=1 X=18999 Y=20000 -Cents=2 -Note=3 -Paid=4 -At=10 -By=11"},
	} {
		var got, again string
		if got, file = assign(t, step.s, file); got != step.want {
			t.Errorf("%s: %s, want %s", step.what, got, step.want)
		}
		if got, again = assign(t, step.s, file); got != step.want || again != file {
			t.Errorf("%s, and again: %s\n%s", step.what, got, again)
		}
	}
}

const kept = `shop.Order: sum %s
shop.Order.Account: 1
shop.Order.Cents: 2
shop.Order.Note: 3
`

// TestNumbersFindings checks the findings for edits of the file or of a tag.
func TestNumbersFindings(t *testing.T) {
	_, file := assign(t, order("Account", "Cents", "Note"), "")
	edit := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(file) }
	for _, c := range []struct {
		what string
		s    wire.Schema
		file string
		want string // of the first problem; "": none
	}{
		{"nothing", order("Account", "Cents", "Note"), file, ""},
		{"a comment behind a line, and one before", order("Account", "Cents"), edit("Cents: 2", "Cents: 2 # in euros", "shop.Order.Note", "# theirs\nshop.Order.Note"), ""},
		{"a number was changed", order("Account", "Cents", "Note"), edit("Cents: 2", "Cents: 4"), "its lines must stay as topogen wrote them"},
		{"a line was removed", order("Account", "Cents", "Note"), edit("shop.Order.Cents: 2\n", ""), "its lines must stay as topogen wrote them"},
		{"that of a field which is gone, too", order("Account", "Cents"), edit("shop.Order.Note: 3\n", ""), "its lines must stay as topogen wrote them"},
		{"a field was renamed with its line, and the sum removed", order("Account", "Euros", "Note"), edit("Cents", "Euros", strings.Split(file[strings.Index(file, "shop.Order: "):], "\n")[0]+"\n", ""), ""},
		{"a number stands twice", order("Account"), edit("Cents: 2", "Cents: 1"), "a number must be used once, and 1 is in line 6 too"},
		{"a field stands twice", order("Account"), edit("Cents: 2", "Account: 2"), "shop.Order.Account must have one number"},
		{"a tag says another number", order("Account:7", "Cents", "Note"), file, "its field number must stay 1, and its tag says 7"},
		{"a tag says that of another field", order("Account", "Cents", "Note", "More:2"), file, "its tag says 2, the number of shop.Order.Cents, which exists too"},
		{"a tag says that of a field which was removed", order("Account", "Note", "More:2"), file, "its tag says 2, the number of shop.Order.Cents, which was removed"},
		{"two tags say the same", order("Account", "A:9", "B:9"), file, "its tag says 9, the number of shop.Order.A, which exists too"},
		{"a merge", order("Account"), edit("shop.Order.Cents", "<<<<<<< ours\nshop.Order.Cents"), "the file must not have conflict markers"},
		{"its base too", order("Account"), edit("shop.Order.Cents", "||||||| base\nshop.Order.Cents"), "the file must not have conflict markers"},
		{"a checkout on Windows", order("Account", "Cents", "Note"), edit("\n", "\r\n"), ""},
		{"two sums", order("Account"), file + "shop.Order: sum 00000000\n", "shop.Order must have one sum, and line 5 has one"},
		{"something else", order("Account"), file + "shop\n", "a line must have the form Order.Account: 3"},
		{"no number", order("Account"), file + "shop.Order.B: b\n", "a line must have the form Order.Account: 3"},
		{"a wrong number", order("Account"), file + "shop.Order.B: 19000\n", "a field number must be from 1 to 536870910 without 19000 to 19999, got 19000"},
		{"no number is left", order("A:536870910", "B"), "", "no field number is left for it"},
	} {
		_, text, problems := wire.Assign(c.s, []byte(c.file))
		got := ""
		if len(problems) > 0 {
			got = problems[0].Message
			if string(text) != c.file {
				t.Errorf("%s: the file changes though something is wrong", c.what)
			}
		}
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// TestNumbersKeepComments checks that comments in the file remain, and also the lines of
// removed messages.
func TestNumbersKeepComments(t *testing.T) {
	_, file := assign(t, order("Account", "Cents"), "")
	file = strings.Replace(file, "shop.Order.Cents: 2", "# in cents\nshop.Order.Cents: 2 # not euros", 1) + "Zebra.Stripes: 3\n# the end\n"
	_, got := assign(t, order("Account", "Cents", "Note"), file)
	for _, want := range []string{"# in cents\nshop.Order.Cents: 2 # not euros\nshop.Order.Note: 3\n", "Zebra.Stripes: 3\n", "\n# the end\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the file lacks %q:\n%s", want, got)
		}
	}
}

// TestFormerHead checks that a file with an earlier head gets the present head, and not
// two heads.
func TestFormerHead(t *testing.T) {
	const former = `# The field numbers of messages that cross a border (docs/reference/wire.md).
# topogen adds to this file; commit it. The line of a field that is gone stays,
# so that nothing else gets its number. To rename a field, rename it here too,
# and remove the line with the sum of its message.
`
	_, file := assign(t, order("Account"), "")
	_, rest, _ := strings.Cut(file, "sum of its message.\n")
	_, got := assign(t, order("Account", "Cents"), former+rest)
	if _, want := assign(t, order("Account", "Cents"), file); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestBranchesMeet checks that two branches that add a number to the same message change the
// same lines, so that a merge has a conflict.
func TestBranchesMeet(t *testing.T) {
	_, base := assign(t, order("Account"), "")
	_, ours := assign(t, order("Account", "Aaa"), base)
	_, theirs := assign(t, order("Account", "Zzz"), base)
	lines := func(text string) []string { return strings.Split(text, "\n") }
	at := slices.Index(lines(base), "shop.Order.Account: 1")
	for _, branch := range []string{ours, theirs} {
		if changed := lines(branch); changed[at-1] == lines(base)[at-1] || !strings.HasSuffix(changed[at+1], ": 2") {
			t.Errorf("a branch has\n%s", branch)
		}
	}
}

// TestNumbersStay checks that after any changes of a message no number means two fields.
func TestNumbersStay(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		file, meant := []byte(nil), make(map[int]string)
		for range rapid.IntRange(1, 6).Draw(t, "builds") {
			fields := rapid.SliceOfDistinct(rapid.StringMatching("[A-F](:[1-9])?"), func(s string) string { return s[:1] }).Draw(t, "fields")
			s, text, problems := wire.Assign(order(fields...), file)
			if len(problems) > 0 {
				continue
			}
			file = text
			for _, f := range s.Messages[0].Fields {
				if name := meant[f.Number]; name != "" && name != f.Name || f.Number == 0 {
					t.Fatalf("%d is %s, and was %s", f.Number, f.Name, name)
				}
				meant[f.Number] = f.Name
			}
		}
	})
}

// TestNumbersOnWindows checks that a file with CRLF line ends has the same numbers, and is
// only written again if numbers are added.
func TestNumbersOnWindows(t *testing.T) {
	_, file := assign(t, order("Account"), "")
	windows := strings.ReplaceAll(file, "\n", "\r\n")
	if _, got := assign(t, order("Account"), windows); got != windows {
		t.Errorf("%q became %q", windows, got)
	}
	_, want := assign(t, order("Account", "Cents"), file)
	if _, got := assign(t, order("Account", "Cents"), windows); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestHostileNumbers checks that a file of the largest size is read quickly, and that a file
// with other contents gives few findings.
func TestHostileNumbers(t *testing.T) {
	var many, other strings.Builder
	n := speed.Pick(t, 20_000, 200_000, 200_000)
	for i := range n {
		fmt.Fprintf(&many, "shop.Order.F%d: %d\n", i, 20_000+i)
		other.WriteString("- {a: &x [*x]}\n")
	}
	if s, _, problems := wire.Assign(order("Account"), []byte(many.String())); len(problems) > 0 || s.Messages[0].Fields[0].Number != 20_000+n {
		t.Errorf("%v, %v", s.Messages[0].Fields[0], problems)
	}
	if _, _, problems := wire.Assign(order("Account"), []byte(other.String())); len(problems) != 20 {
		t.Errorf("%d problems", len(problems))
	}
}

func FuzzNumbers(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(kept, "00000000")))
	f.Add([]byte("a.b: 1\na.c: 2 # c\n"))
	f.Fuzz(func(t *testing.T, old []byte) {
		s := order("Account", "Cents:7")
		var text []byte
		var problems []wire.Problem
		allocated.Within(t, 64<<10+400*len(old), func() { _, text, problems = wire.Assign(s, old) }) // 64 KiB for the schema; each line may be a problem
		if len(problems) > 0 {
			return
		}
		if _, again, problems := wire.Assign(s, text); len(problems) > 0 || string(again) != string(text) {
			t.Fatalf("%q became %q, %v, and then %q", old, text, problems, again)
		}
	})
}
