package wire

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Field numbers that protobuf allows: 19000 to 19999 are its own, and the highest
// of all is that of wire.Nil.
const (
	numberMax     = 1<<29 - 2
	ownNumbersMin = 19000
	ownNumbersMax = 19999
)

func usable(n int) bool {
	return n >= 1 && n <= numberMax && (n < ownNumbersMin || n > ownNumbersMax)
}

const numbersHead = `# The field numbers of messages that cross a border (docs/reference/wire.md).
# topogen adds to this file; commit it. The line of a field that is gone stays,
# so that nothing else gets its number. To rename a field, rename it here too,
# and remove the line with the sum of its message.
`

// Assign gives each field of a schema its number: that of its struct tag, else the
// one that it has in old, the content of the file of numbers, else the next one.
// It returns what the file is to hold, which is old where nothing changes or
// where anything is wrong. Neither old nor s is changed.
func Assign(s Schema, old []byte) (Schema, []byte, []Problem) {
	f, problems := parseNumbers(old)
	s.Messages = slices.Clone(s.Messages)
	for i := range s.Messages {
		m := &s.Messages[i]
		if m.Key == "" || m.Form != Struct {
			continue
		}
		m.Fields = slices.Clone(m.Fields)
		problems = append(problems, f.message(m.Key).assign(m)...)
	}
	if len(problems) > 0 {
		return s, old, problems
	}
	if text := f.bytes(); !bytes.Equal(text, old) && (len(f.messages) > 0 || len(old) > 0) {
		return s, text, nil
	}
	return s, old, nil
}

// numbers is the content of the file.
type numbers struct {
	messages map[string]*numbered
	end      []string // comments behind the last line
}

// numbered is what the file says of one message.
type numbered struct {
	key   string
	lines []numberLine // in order of their numbers
	head  []string     // comments before the sum
	sum   string       // of the lines; "": none
	sumAt int          // its line in the file
}

type numberLine struct {
	field  string
	number int
	at     int      // its line in the file; 0: new
	head   []string // comments before it
	tail   string   // comment behind it
}

func (f *numbers) message(key string) *numbered {
	if f.messages[key] == nil {
		f.messages[key] = &numbered{key: key}
	}
	return f.messages[key]
}

// assign numbers the fields of a message, those with a tag first.
func (n *numbered) assign(m *Message) (problems []Problem) {
	known, owner := make(map[string]*numberLine), make(map[int]string)
	for i := range n.lines {
		l := &n.lines[i]
		known[l.field], owner[l.number] = l, l.field
	}
	give := func(field *Field, number int) {
		field.Number = number
		if known[field.Name] == nil {
			owner[number] = field.Name
			n.lines = append(n.lines, numberLine{field: field.Name, number: number})
		}
	}
	for i := range m.Fields {
		field := &m.Fields[i]
		line, path := known[field.Name], m.Key+"."+field.Name
		switch {
		case !field.Tagged:
		case line != nil && line.number != field.Number:
			problems = append(problems, Problem{Path: path, Line: line.at,
				Message:    fmt.Sprintf("its tag says %d, and it has the number %d: what was written before would be misread", field.Number, line.number),
				Suggestion: fmt.Sprintf("`topo:\"%d\"`", line.number)})
		case line == nil && owner[field.Number] != "":
			problems = append(problems, Problem{Path: path,
				Message:    fmt.Sprintf("its number %d is that of %s.%s, %s", field.Number, m.Key, owner[field.Number], whether(m, owner[field.Number])),
				Suggestion: "choose one that was never given"})
		default:
			give(field, field.Number)
		}
	}
	next := 0
	for number := range owner {
		next = max(next, number)
	}
	for i := range m.Fields {
		field := &m.Fields[i]
		if field.Tagged {
			continue
		}
		if line := known[field.Name]; line != nil {
			field.Number = line.number
			continue
		}
		if next++; next == ownNumbersMin {
			next = ownNumbersMax + 1
		}
		if !usable(next) {
			problems = append(problems, Problem{Path: m.Key + "." + field.Name, Message: "no number is left for it"})
			continue
		}
		give(field, next)
	}
	m.Gone = nil
	for _, l := range n.lines {
		if l.at > 0 && !m.has(l.field) {
			m.Gone = append(m.Gone, Gone{l.field, l.number})
		}
	}
	return problems
}

func whether(m *Message, field string) string {
	if m.has(field) {
		return "which is there too"
	}
	return "which is gone: what was written before would be misread"
}

func (m *Message) has(field string) bool {
	return slices.ContainsFunc(m.Fields, func(f Field) bool { return f.Name == field })
}

// sumPrefix begins the value of the line that guards the others of a message.
const sumPrefix = "sum "

// checksum changes with every field and number of a message.
func (n *numbered) checksum() string {
	var text strings.Builder
	for _, l := range n.lines {
		fmt.Fprintf(&text, "%s: %d\n", l.field, l.number)
	}
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text.String())))
}

func (n *numbered) sort() {
	slices.SortFunc(n.lines, func(a, b numberLine) int { return a.number - b.number })
}

// bytes is the file anew: by message, and within one by number, so that two
// branches which both give a number touch the same lines.
func (f *numbers) bytes() []byte {
	var b bytes.Buffer
	b.WriteString(numbersHead)
	comments := func(lines []string) {
		for _, l := range lines {
			b.WriteString(l + "\n")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.messages)) {
		n := f.messages[key]
		n.sort()
		if len(n.lines) == 0 {
			continue
		}
		comments(n.head)
		fmt.Fprintf(&b, "%s: %s%s\n", key, sumPrefix, n.checksum())
		for _, l := range n.lines {
			comments(l.head)
			fmt.Fprintf(&b, "%s.%s: %d%s\n", key, l.field, l.number, l.tail)
		}
	}
	comments(f.end)
	return b.Bytes()
}

// numberLineForm is what all lines but comments are like. The key may hold almost
// anything: a type argument may be a struct with tags.
var numberLineForm = regexp.MustCompile(`^(.+): +(` + sumPrefix + `[0-9a-f]+|[0-9]+)((?: +#.*)?)$`)

// parseNumbers reads the file. It is YAML of the simplest kind.
func parseNumbers(text []byte) (*numbers, []Problem) {
	f := &numbers{messages: make(map[string]*numbered)}
	var problems []Problem
	wrong := func(at int, format string, args ...any) {
		problems = append(problems, Problem{Line: at, Message: fmt.Sprintf(format, args...)})
	}
	var comments []string
	text, ok := bytes.CutPrefix(text, []byte(numbersHead))
	offset := 0
	if ok {
		offset = strings.Count(numbersHead, "\n")
	}
	at := 0
	for line := range strings.Lines(string(text)) {
		at++
		number := at + offset
		line = strings.TrimRight(line, " \t\r\n")
		switch {
		case line == "":
			continue
		case strings.HasPrefix(line, "#"):
			comments = append(comments, line)
			continue
		case strings.HasPrefix(line, "<<<<<<<"), strings.HasPrefix(line, "======="), strings.HasPrefix(line, ">>>>>>>"):
			problems = append(problems, Problem{Line: number, Message: "two branches have given numbers",
				Suggestion: "keep the lines of both, give each field that is new a number of its own, and remove the lines with sums in between"})
			return f, problems
		}
		parts := numberLineForm.FindStringSubmatch(line)
		if parts == nil {
			wrong(number, "this is no line such as Order.Account: 3")
			continue
		}
		key, value, tail := parts[1], parts[2], parts[3]
		if sum, ok := strings.CutPrefix(value, sumPrefix); ok {
			n := f.message(key)
			if n.sumAt > 0 {
				wrong(number, "there are two lines with the sum of %s; remove both", key)
			}
			n.sum, n.sumAt, n.head = sum, number, comments
			comments = nil
			continue
		}
		dot := strings.LastIndexByte(key, '.')
		given, err := strconv.Atoi(value)
		switch {
		case dot <= 0 || dot == len(key)-1:
			wrong(number, "this is no line such as Order.Account: 3")
		case err != nil || !usable(given):
			wrong(number, "%s is no field number: one is from 1 to %d, without %d to %d", value, numberMax, ownNumbersMin, ownNumbersMax)
		default:
			message, field := key[:dot], key[dot+1:]
			n := f.message(message)
			for _, l := range n.lines {
				if l.field == field {
					wrong(number, "%s.%s has a number already, in line %d", message, field, l.at)
				} else if l.number == given {
					wrong(number, "%s.%s has the number %d already, in line %d", message, l.field, given, l.at)
				}
			}
			n.lines = append(n.lines, numberLine{field: field, number: given, at: number, head: comments, tail: tail})
		}
		comments = nil
	}
	f.end = comments
	if len(problems) > 0 {
		return f, problems
	}
	for _, key := range slices.Sorted(maps.Keys(f.messages)) {
		n := f.messages[key]
		n.sort()
		if n.sum != "" && n.sum != n.checksum() {
			problems = append(problems, Problem{Path: key, Line: n.sumAt,
				Message:    "its lines are not those that topogen wrote: a number was changed or removed, and what was written before would be misread",
				Suggestion: "restore them; if you mean it, remove this line too"})
		}
	}
	return f, problems
}
