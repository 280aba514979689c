package spec

import (
	"fmt"
	"go/token"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/topogen/topogen/spec/finding"
)

var (
	processorNameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)*$`)
	messageNameForm   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
	packageNameForm   = messageNameForm
	notInNames        = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// Exported returns a name in exported camel case. The name is split at "-" and "_", and each
// part begins with a capital: "line_parser" and "lineParser" become LineParser. Initialisms
// are not special: "http-api" becomes HttpApi.
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

// Tick returns the name of the message of a timer: Tick, or TickPoll for a timer called poll.
func (e *Edge) Tick() string { return "Tick" + Exported(e.Timer.Value) }

// checkNames reports names without a valid Go form, and names with the same Go form.
func (b *builder) checkNames() {
	t := b.topology
	b.checkForm("topology", t.Name, processorNameForm)
	if !b.checkPackage(t.Package) {
		t.Package.Value = "" // the later checks use the default
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
			case ok && b.found.exact[first.Pointer]: // the declaration of the name has the finding
				b.found.follow(name.Pointer)
			case !ok && b.checkMessage(name):
				messages.add(b, name)
			}
		}
	}
}

// checkForm reports a name that is empty, too long or does not match form.
func (b *builder) checkForm(what string, name Text, form *regexp.Regexp) bool {
	switch {
	case name.Pointer == "" || b.found.exact[name.Pointer]: // not in the file, or reported
		return false
	case name.Value == "":
		b.found.addText(finding.Name, name, "a "+what+" name must not be empty", "write a name")
	case utf8.RuneCountInString(name.Value) > nameMax:
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
			joined = "ASCII " + joined // ö is a letter, so the message for "größe" must say ASCII
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

// checkReserved reports a name that is a keyword or predeclared name of Go, init or main.
// Generated code and stubs have variables with these names in lower case.
func (b *builder) checkReserved(what string, name Text) bool {
	word := name.Value
	if !token.IsKeyword(word) && !isPredeclared(word) && word != "init" && word != "main" {
		return true
	}
	b.found.addText(finding.Name, name, fmt.Sprintf("a %s name must not be a reserved word of Go, got %s", what, quoted(word)), "choose another name")
	return false
}

// checkMessage reports an invalid message name on an edge. Usually it is a type, which needs a
// name under messages.
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

// nameTable finds names whose Go forms are equal or differ only by case. Some file systems do not
// distinguish files whose names differ only by case, and readers confuse such methods.
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
