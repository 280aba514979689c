package spec

import (
	"fmt"
	"go/token"
	"regexp"
	"strings"
	"unicode"

	"github.com/topogen/topogen/spec/finding"
)

var (
	processorNameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)*$`)
	messageNameForm   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
	packageNameForm   = messageNameForm
	notInNames        = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// Exported returns a name in exported camel case: split at "-" and "_", each
// part begins with a capital. No initialism is special: "http-api" is HttpApi,
// "line_parser" is LineParser, "lineParser" is LineParser.
func Exported(name string) string {
	var out strings.Builder
	begin := true
	for _, r := range name {
		switch {
		case r == '-' || r == '_':
			begin = true
			continue
		case begin && 'a' <= r && r <= 'z':
			r += 'A' - 'a'
		}
		begin = false
		out.WriteRune(r)
	}
	return out.String()
}

// Tick is the name of a timer's message: Tick, or TickPoll of a timer that is called poll.
func (e *Edge) Tick() string { return "Tick" + Exported(e.Timer.Value) }

// checkNames reports names that no Go can be made of, and names of which the
// same Go is made.
func (b *builder) checkNames() {
	t := b.topology
	b.checkForm("topology", t.Name, processorNameForm)
	if !b.checkPackage(t.Package) {
		t.Package.Value = "" // left out, it is right in all that follows
	}
	if !b.checkOutput(t.Output) {
		t.Output.Value = defaultOutput
	}
	processors, groups, messages := newNameTable("processor"), newNameTable("group"), newNameTable("message")
	for _, p := range t.Processors {
		processors.declare(b, p.Name, processorNameForm)
	}
	for _, g := range t.Groups {
		groups.declare(b, g.Name, processorNameForm)
	}
	declared := map[string]Text{}
	for _, m := range t.Messages {
		declared[m.Name.Value] = m.Name
		messages.declare(b, m.Name, messageNameForm)
	}
	for i := range t.Edges {
		b.checkForm("timer", t.Edges[i].Timer, processorNameForm)
		for _, name := range []Text{t.Edges[i].Message, t.Edges[i].Reply} {
			first, ok := declared[name.Value]
			switch {
			case name.Pointer == "" || b.found.exact[name.Pointer]:
			case ok && b.found.exact[first.Pointer]: // the name is wrong where it is declared
				b.found.follow(name.Pointer)
			case !ok && b.checkMessage(name):
				messages.add(b, name)
			}
		}
	}
}

// checkForm reports a name that is too long or has other characters than form
// allows.
func (b *builder) checkForm(what string, name Text, form *regexp.Regexp) bool {
	switch {
	case name.Pointer == "" || b.found.exact[name.Pointer]: // left out, or reported
		return false
	case name.Value == "":
		b.found.addText(finding.Name, name, "a "+what+" name must not be empty", "write a name")
	case len(name.Value) > nameMax:
		b.found.addText(finding.Name, name, fmt.Sprintf("a %s name must have at most %d characters, got more", what, nameMax), "shorten it")
	case !form.MatchString(name.Value):
		joined := "letters and digits joined by - or _"
		repaired := strings.Trim(notInNames.ReplaceAllString(name.Value, "-"), "-")
		switch what {
		case "message":
			joined, repaired = "letters, digits and _", Exported(repaired)
		case "package":
			joined, repaired = "letters, digits and _", strings.ReplaceAll(repaired, "-", "")
		}
		suggestion := ""
		if form.MatchString(repaired) && isASCII(name.Value) {
			suggestion = "write " + quoted(repaired)
		} else if what == "message" && isIdentifier(name.Value) && !isASCII(name.Value) {
			suggestion = fmt.Sprintf("write another name here, and under messages %s", quoted("Name: "+name.Value))
		}
		if !isASCII(name.Value) {
			joined = "ASCII " + joined // else "größe" would be told that ö is no letter
		}
		b.found.addText(finding.Name, name, fmt.Sprintf("a %s name must be %s, beginning with a letter, got %s", what, joined, quoted(name.Value)), suggestion)
	default:
		return true
	}
	return false
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// checkReserved reports a name that is a word of Go's own. Generated code has
// variables with such names in lower case, and so have handlers.
func (b *builder) checkReserved(what string, name Text) bool {
	word := name.Value
	if !token.IsKeyword(word) && !isPredeclared(word) && word != "init" && word != "main" {
		return true
	}
	b.found.addText(finding.Name, name, fmt.Sprintf("a %s name must not be a reserved word of Go, got %s", what, quoted(word)), "choose another name")
	return false
}

// checkMessage reports what an edge names and what cannot be a message's name;
// mostly it is a type for which messages should have a name.
func (b *builder) checkMessage(name Text) bool {
	t, err := ParseType(name.Value)
	if err != nil || t.Kind == NamedType && t.Import == "" && len(t.Args) == 0 && !t.Predeclared() {
		return b.checkForm("message", name, messageNameForm) && b.checkReserved("message", name)
	}
	b.found.addText(finding.Name, name, "an edge must carry the name of a message, got the type "+quoted(name.Value),
		fmt.Sprintf("write a name here, and under messages %s", quoted("Name: "+name.Value)))
	return false
}

func (b *builder) checkPackage(name Text) bool {
	if !b.checkForm("package", name, packageNameForm) {
		return false
	}
	switch {
	case token.IsKeyword(name.Value):
		b.found.addText(finding.Name, name, "a package name must not be a keyword of Go, got "+quoted(name.Value), "choose another name")
	case strings.HasSuffix(name.Value, "_test"):
		b.found.addText(finding.Name, name, "a package name must not end with _test, got "+quoted(name.Value), "choose another name")
	case name.Value == "documentation":
		b.found.addText(finding.Name, name, "a package name must not be documentation: the go command ignores the files of such a package", "choose another name")
	default:
		return true
	}
	return false
}

// nameTable finds names that are equal in Go, or equal but for case: of these
// files and methods are made that some systems and most readers confuse.
type nameTable struct {
	what  string
	names map[string]Text // by lower-case Go name
}

func newNameTable(what string) *nameTable {
	return &nameTable{what: what, names: map[string]Text{}}
}

func (t *nameTable) declare(b *builder, name Text, form *regexp.Regexp) {
	if b.checkForm(t.what, name, form) && b.checkReserved(t.what, name) {
		t.add(b, name)
	}
}

func (t *nameTable) add(b *builder, name Text) {
	ident := Exported(name.Value)
	first, ok := t.names[strings.ToLower(ident)]
	switch {
	case !ok:
		t.names[strings.ToLower(ident)] = name
	case first.Value == name.Value: // used again
	case Exported(first.Value) == ident:
		b.found.addText(finding.NamesCollide, name, fmt.Sprintf("two %ss must not have the same Go name, but %s and %s are both %s", t.what, quoted(first.Value), quoted(name.Value), ident), "rename one of them")
	default:
		b.found.addText(finding.NamesCollide, name, fmt.Sprintf("the Go names of two %ss must not differ only by case, but %s and %s are %s and %s",
			t.what, quoted(first.Value), quoted(name.Value), Exported(first.Value), ident), "rename one of them")
	}
}
