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

// Field numbers that protobuf allows. 19000 to 19999 are reserved for protobuf; wire.Nil has
// the highest number.
const (
	numberMax     = 1<<29 - 2
	ownNumbersMin = 19000
	ownNumbersMax = 19999
)

func usable(n int) bool {
	return n >= 1 && n <= numberMax && (n < ownNumbersMin || n > ownNumbersMax)
}

const numbersHead = `# The numbers of fields that are sent to processes or kept in logs (docs/reference/wire.md).
# topogen adds lines to this file. Commit it, and keep the lines of removed fields, so that
# no other field gets their numbers. To rename a field, rename it here too, and remove the
# line with the sum of its message.
`

// formerNumbersHead is the head in files of earlier versions. A new file replaces it.
const formerNumbersHead = `# The field numbers of messages that cross a border (docs/reference/wire.md).
# topogen adds to this file; commit it. The line of a field that is gone stays,
# so that nothing else gets its number. To rename a field, rename it here too,
# and remove the line with the sum of its message.
`

// Assign gives each field of a schema its number: the number in its struct tag, else its
// number in old, the contents of the file of numbers, else the next free number. It returns
// the new contents of the file, which are old if nothing changes or if there are problems.
// It changes neither old nor s.
func Assign(s Schema, old []byte) (Schema, []byte, []Problem) {
	onDisk := old
	old = bytes.ReplaceAll(old, []byte("\r\n"), []byte("\n")) // git's line ends on Windows
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
		return s, onDisk, problems
	}
	if text := f.bytes(); !bytes.Equal(text, old) && (len(f.messages) > 0 || len(old) > 0) {
		return s, text, nil
	}
	return s, onDisk, nil
}

// numbers has the contents of the file.
type numbers struct {
	messages map[string]*numbered
	end      []string // comments after the last line
}

// numbered has the lines of one message in the file.
type numbered struct {
	key   string
	lines []numberLine // in order of their numbers
	head  []string     // comments before the sum
	sum   string       // sum of the lines; "": none
	sumAt int          // its line in the file
}

type numberLine struct {
	field  string
	number int
	at     int      // line in the file; 0: new
	head   []string // comments before it
	tail   string   // comment after it
}

func (f *numbers) message(key string) *numbered {
	if f.messages[key] == nil {
		f.messages[key] = &numbered{key: key}
	}
	return f.messages[key]
}

// assign numbers the fields of a message, beginning with the fields that have a tag.
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
				Message:    fmt.Sprintf("its field number must stay %d, and its tag says %d: messages written before would be misread", line.number, field.Number),
				Suggestion: fmt.Sprintf("write `topo:\"%d\"`", line.number)})
		case line == nil && owner[field.Number] != "":
			problem := Problem{Path: path,
				Message:    fmt.Sprintf("its tag says %d, the number of %s.%s, %s", field.Number, m.Key, owner[field.Number], whether(m, owner[field.Number])),
				Suggestion: "choose a number that no field ever had"}
			if other := known[owner[field.Number]]; other != nil {
				problem.Line = other.at
			}
			problems = append(problems, problem)
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
			problems = append(problems, Problem{Path: m.Key + "." + field.Name, Message: "no field number is left for it"})
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
		return "which exists too"
	}
	return "which was removed: messages written before would be misread"
}

func (m *Message) has(field string) bool {
	return slices.ContainsFunc(m.Fields, func(f Field) bool { return f.Name == field })
}

// sumPrefix begins the value of the line with the checksum of a message's lines.
const sumPrefix = "sum "

// checksum covers every field and number of a message.
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

// bytes is the new file. It is sorted by message and then by number, so that two branches
// that both assign a number change the same lines and cause a merge conflict.
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

// numberLineForm matches all lines except comments. The key may contain almost anything,
// because a type argument may be a struct with tags.
var numberLineForm = regexp.MustCompile(`^(.+): +(` + sumPrefix + `[0-9a-f]+|[0-9]+)((?: +#.*)?)$`)

// problemsMax bounds the number of problems of a file, which may not be such a file at all.
const problemsMax = 20

// numbersParser reads the file line by line. The file is YAML of the simplest kind.
type numbersParser struct {
	numbers
	problems []Problem
	comments []string // since the previous line
	at       int      // the current line
	fields   map[string]int
	given    map[string]int // lines by message and number
}

func parseNumbers(text []byte) (*numbers, []Problem) {
	p := &numbersParser{numbers: numbers{messages: make(map[string]*numbered)}, fields: make(map[string]int), given: make(map[string]int)}
	for _, head := range []string{numbersHead, formerNumbersHead} {
		if rest, ok := bytes.CutPrefix(text, []byte(head)); ok {
			text, p.at = rest, strings.Count(head, "\n")
			break
		}
	}
	for line := range strings.Lines(string(text)) {
		p.at++
		if !p.line(strings.TrimRight(line, " \t\r\n")) || len(p.problems) == problemsMax {
			break
		}
	}
	p.end = p.comments
	if len(p.problems) == 0 {
		p.sums()
	}
	return &p.numbers, p.problems
}

func (p *numbersParser) wrong(suggestion, format string, args ...any) {
	p.problems = append(p.problems, Problem{Line: p.at, Message: fmt.Sprintf(format, args...), Suggestion: suggestion})
}

// line parses a line. It reports whether parsing should continue.
func (p *numbersParser) line(line string) bool {
	switch {
	case line == "":
		return true
	case strings.HasPrefix(line, "#"):
		p.comments = append(p.comments, line)
		return true
	case strings.HasPrefix(line, "<<<<<<<"), strings.HasPrefix(line, "|||||||"), strings.HasPrefix(line, "======="), strings.HasPrefix(line, ">>>>>>>"):
		p.wrong("keep the lines of both branches, give each new field its own number, and remove the conflict markers and the lines with sums between them",
			"the file must not have conflict markers: two branches added field numbers")
		return false
	}
	parts := numberLineForm.FindStringSubmatch(line)
	if parts == nil {
		p.wrong(noLine, "a line must have the form Order.Account: 3")
		return true
	}
	key, value, tail := parts[1], parts[2], parts[3]
	if sum, ok := strings.CutPrefix(value, sumPrefix); ok {
		p.sum(key, sum)
	} else {
		p.number(key, value, tail)
	}
	p.comments = nil
	return true
}

const noLine = "remove it, or make it a comment with #; this file holds the field numbers that topogen assigned"

func (p *numbersParser) sum(key, sum string) {
	n := p.message(key)
	if n.sumAt > 0 {
		p.wrong("remove both", "%s must have one sum, and line %d has one", key, n.sumAt)
		return
	}
	n.sum, n.sumAt, n.head = sum, p.at, p.comments
}

func (p *numbersParser) number(key, value, tail string) {
	dot := strings.LastIndexByte(key, '.')
	if dot <= 0 || dot == len(key)-1 {
		p.wrong(noLine, "a line must have the form Order.Account: 3")
		return
	}
	number, err := strconv.Atoi(value)
	if err != nil || !usable(number) {
		p.wrong("restore the number that topogen assigned", "a field number must be from 1 to %d without %d to %d, got %s", numberMax, ownNumbersMin, ownNumbersMax, value)
		return
	}
	n := p.message(key[:dot])
	used := fmt.Sprintf("%s: %d", n.key, number)
	switch {
	case p.fields[key] > 0:
		p.wrong("remove one of the two", "%s must have one number, and line %d has one", key, p.fields[key])
	case p.given[used] > 0:
		p.wrong("give the new field the next free number", "a number must be used once, and %d is in line %d too", number, p.given[used])
	default:
		p.fields[key], p.given[used] = p.at, p.at
		n.lines = append(n.lines, numberLine{field: key[dot+1:], number: number, at: p.at, head: p.comments, tail: tail})
	}
}

// sums compares the lines of each message with their sum.
func (p *numbersParser) sums() {
	for _, key := range slices.Sorted(maps.Keys(p.messages)) {
		n := p.messages[key]
		n.sort()
		if n.sum != "" && n.sum != n.checksum() {
			p.problems = append(p.problems, Problem{Path: key, Line: n.sumAt,
				Message:    "its lines must stay as topogen wrote them: a number was changed or removed, and messages written before would be misread",
				Suggestion: "restore them; to accept the change, remove this line too"})
		}
	}
}
