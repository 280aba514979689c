package protocol

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// An Error is the reason for which a request, a response or a message is refused. Its
// text is a sentence that names the field.
type Error struct {
	Field   string // such as data.tags; empty if the text itself is not JSON
	Problem string // such as "is missing"
}

func (e *Error) Error() string {
	if e.Field == "" {
		return e.Problem
	}
	return e.Field + " " + e.Problem
}

func problem(format string, args ...any) error { return &Error{Problem: fmt.Sprintf(format, args...)} }

// in puts the name of a field before the field of an error.
func in(name string, err error) error {
	e, ok := err.(*Error)
	if !ok {
		return err // nil, or a syntaxError
	}
	field := name
	switch {
	case e.Field == "":
	case e.Field[0] == '[':
		field += e.Field
	default:
		field += "." + e.Field
	}
	return &Error{Field: field, Problem: e.Problem}
}

// inKey is in for a key of the text. It makes a string of the key only if there is an
// error.
func inKey(key []byte, err error) error {
	if err == nil {
		return nil
	}
	return in(string(key), err)
}

// A syntaxError means that the text is not JSON, so nothing after it can be read. The
// functions at the top turn it into an [Error].
type syntaxError struct{ at int }

func (e syntaxError) Error() string { return fmt.Sprintf("the text is not JSON at byte %d", e.at) }

// A scanner reads JSON. It exists because encoding/json accepts text that this protocol
// must refuse: keys in another case, a key twice, lone surrogates, any depth. It is also
// several times as fast. The text must be valid UTF-8.
type scanner struct {
	text  []byte
	at    int
	depth int
}

// peek skips white space and returns the next character, or 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) syntax() error { return syntaxError{s.at} }

// end checks that nothing follows.
func (s *scanner) end() error {
	if s.peek(); s.at != len(s.text) {
		return s.syntax()
	}
	return nil
}

// object reads an object. It calls each for each key, and each reads the value. The key
// is valid until each returns.
func (s *scanner) object(each func(key []byte) error) error {
	if s.peek() != '{' {
		return s.wrongType("an object")
	}
	if err := s.enter(); err != nil {
		return err
	}
	if s.peek() == '}' {
		s.leave()
		return nil
	}
	for {
		if s.peek() != '"' {
			return s.syntax()
		}
		key, err := s.quoted()
		if err != nil {
			return err
		}
		if s.peek() != ':' {
			return s.syntax()
		}
		s.at++
		if err := each(key); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.at++
		case '}':
			s.leave()
			return nil
		default:
			return s.syntax()
		}
	}
}

// array reads an array. It calls each for each element, and each reads the element.
func (s *scanner) array(each func(i int) error) error {
	if s.peek() != '[' {
		return s.wrongType("an array")
	}
	if err := s.enter(); err != nil {
		return err
	}
	if s.peek() == ']' {
		s.leave()
		return nil
	}
	for i := 0; ; i++ {
		if err := each(i); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.at++
		case ']':
			s.leave()
			return nil
		default:
			return s.syntax()
		}
	}
}

func (s *scanner) enter() error {
	if s.depth == MaxDepth {
		return problem("is nested more than %d levels deep", MaxDepth)
	}
	s.depth++
	s.at++
	return nil
}

func (s *scanner) leave() {
	s.depth--
	s.at++
}

// null reads null, if it is next.
func (s *scanner) null() bool {
	if s.peek() != 'n' || !s.has("null") {
		return false
	}
	s.at += len("null")
	return true
}

func (s *scanner) has(word string) bool {
	return len(s.text)-s.at >= len(word) && string(s.text[s.at:s.at+len(word)]) == word
}

// wrongType is the error of a value of another type, or of a text that is not a value.
func (s *scanner) wrongType(want string) error {
	switch c := s.peek(); {
	case c == '{', c == '[', c == '"', c == '-', '0' <= c && c <= '9', s.has("true"), s.has("false"), s.has("null"):
		return problem("must be %s", want)
	}
	return s.syntax()
}

// skip reads a value of any type.
func (s *scanner) skip() error {
	switch c := s.peek(); {
	case c == '{':
		return s.object(func([]byte) error { return s.skip() })
	case c == '[':
		return s.array(func(int) error { return s.skip() })
	case c == '"':
		_, err := s.quoted()
		return err
	case c == '-', '0' <= c && c <= '9':
		_, _, err := s.number()
		return err
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if s.has(word) {
			s.at += len(word)
			return nil
		}
	}
	return s.syntax()
}

// string reads a string.
func (s *scanner) string() (string, error) {
	if s.peek() != '"' {
		return "", s.wrongType("a string")
	}
	b, err := s.quoted()
	return string(b), err
}

// quoted reads a string that begins at s.at. The result is a part of the text, unless
// the string contains escapes.
func (s *scanner) quoted() ([]byte, error) {
	for i := s.at + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			b := s.text[s.at+1 : i]
			s.at = i + 1
			return b, nil
		case c == '\\':
			return s.escaped(i)
		case c < ' ':
			return nil, syntaxError{i}
		}
	}
	return nil, syntaxError{len(s.text)}
}

// escaped reads the rest of a string from its first escape on, at i.
func (s *scanner) escaped(i int) ([]byte, error) {
	b := append([]byte(nil), s.text[s.at+1:i]...)
	for i < len(s.text) {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			return b, nil
		case c < ' ':
			return nil, syntaxError{i}
		case c != '\\':
			b = append(b, c)
			i++
		default:
			r, n, err := escape(s.text[i:])
			if n == 0 {
				return nil, syntaxError{i}
			}
			if err != nil {
				return nil, err
			}
			b = utf8.AppendRune(b, r)
			i += n
		}
	}
	return nil, syntaxError{i}
}

// escape returns the character of an escape and the length of the escape, or 0 if it is
// not an escape. Half of a surrogate pair is an error: Go has no string for it, so it
// could not be returned as it was sent.
func escape(b []byte) (rune, int, error) {
	if len(b) < 2 {
		return 0, 0, nil
	}
	switch c := b[1]; c {
	case '"', '\\', '/':
		return rune(c), 2, nil
	case 'b':
		return '\b', 2, nil
	case 'f':
		return '\f', 2, nil
	case 'n':
		return '\n', 2, nil
	case 'r':
		return '\r', 2, nil
	case 't':
		return '\t', 2, nil
	}
	r, ok := hex4(b)
	if !ok {
		return 0, 0, nil
	}
	if !utf16.IsSurrogate(r) {
		return r, 6, nil
	}
	if low, ok := hex4(b[6:]); ok {
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			return r, 12, nil
		}
	}
	return 0, 6, problem("contains half of a surrogate pair")
}

// hex4 reads an escape of the form \u0041.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// int reads a number that is an integer from low to high. The forms 1000, 1e3 and 1000.0
// are the same number in JSON.
func (s *scanner) int(low, high int64) (int64, error) { return s.rounded(low, high, false) }

// millis reads a time in milliseconds, and rounds a fraction up. The SDK for TypeScript
// sends fractions, for example for a sleep of 1000 / 3. A request that is refused for
// that would be sent again and again, because the worker runs its function again.
func (s *scanner) millis(low, high int64) (int64, error) { return s.rounded(low, high, true) }

func (s *scanner) rounded(low, high int64, up bool) (int64, error) {
	if c := s.peek(); c != '-' && (c < '0' || c > '9') {
		return 0, s.wrongType("an integer")
	}
	text, plain, err := s.number()
	if err != nil {
		return 0, err
	}
	n, ok := integer(text, plain, up)
	if !ok {
		return 0, problem("must be an integer")
	}
	if n < low || n > high {
		return 0, problem("must be from %d to %d", low, high)
	}
	return n, nil
}

// integer returns the value of a number that is an integer or may be rounded up. A number
// beyond int64 becomes math.MaxInt64 or math.MinInt64, which no range contains.
func integer(text []byte, plain, up bool) (int64, bool) {
	const longest = 64 // no number with more digits is meant as an integer
	if len(text) > longest {
		return 0, false
	}
	if plain {
		n, _ := strconv.ParseInt(string(text), 10, 64)
		return n, true
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(text)), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimRight(whole+fraction, "0")
	zeros := len(whole) - len(digits) // that follow the digits
	if exponent != "" {
		n, err := strconv.ParseInt(exponent, 10, 64)
		if err != nil {
			return 0, false
		}
		zeros += int(max(-2*longest, min(n, 2*longest))) // limited, so that the number fits into an int
	}
	const longestInt64 = 20 // the longest has 19 digits and a sign
	switch {
	case digits == "" || digits == "-":
		return 0, true
	case zeros < 0 && up:
		return roundUp(digits, len(digits)+zeros), true
	case zeros < 0:
		return 0, false
	case len(digits)+zeros > longestInt64:
		digits, zeros = digits[:1]+"9", longestInt64
	}
	n, _ := strconv.ParseInt(digits+strings.Repeat("0", zeros), 10, 64)
	return n, true
}

// roundUp rounds a number to the next integer. The first n of its digits, which may begin
// with a sign, are before the point.
func roundUp(digits string, n int) int64 {
	whole, _ := strconv.ParseInt(digits[:max(n, 0)], 10, 64) // 0 if there are none
	if digits[0] != '-' && whole < math.MaxInt64 {
		whole++
	}
	return whole
}

// number reads a number. It is plain if it has neither a fraction nor an exponent.
func (s *scanner) number() (text []byte, plain bool, err error) {
	from := s.at
	if s.text[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.text) && s.text[s.at] == '0' {
		s.at++
	} else if !s.digits() {
		return nil, false, s.syntax()
	}
	plain = true
	if s.at < len(s.text) && s.text[s.at] == '.' {
		plain = false
		s.at++
		if !s.digits() {
			return nil, false, s.syntax()
		}
	}
	if s.at < len(s.text) && s.text[s.at]|' ' == 'e' {
		plain = false
		s.at++
		if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		if !s.digits() {
			return nil, false, s.syntax()
		}
	}
	return s.text[from:s.at], plain, nil
}

// digits reads one or more digits.
func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}
