package bind

import (
	"fmt"
	"strconv"
	"strings"
)

// splitFlags splits the value of GOFLAGS as the go command does: at spaces. A field that
// begins with a quote ends at the next such quote.
func splitFlags(text string) (fields []string, err error) {
	const space = " \t\n\r"
	for {
		text = strings.TrimLeft(text, space)
		if text == "" {
			return fields, nil
		}
		if quote := text[:1]; quote == `'` || quote == `"` {
			field, rest, ok := strings.Cut(text[1:], quote)
			if !ok {
				return nil, fmt.Errorf("unterminated %s string", quote)
			}
			fields, text = append(fields, field), rest
			continue
		}
		end := strings.IndexAny(text, space)
		if end < 0 {
			end = len(text)
		}
		fields, text = append(fields, text[:end]), text[end:]
	}
}

// joinFlags is the value of GOFLAGS that splitFlags splits into fields.
func joinFlags(fields []string) string {
	quoted := make([]string, len(fields))
	for i, field := range fields {
		quote := ""
		if strings.ContainsAny(field, " \t\n\r") {
			quote = `"`
			if strings.Contains(field, quote) {
				quote = `'`
			}
		}
		quoted[i] = quote + field + quote
	}
	return strings.Join(quoted, " ")
}

// flagValue is the value of a flag of the go command, written with one hyphen or two.
func flagValue(flag, name string) (value string, ok bool) {
	flag = strings.TrimPrefix(strings.TrimPrefix(flag, "-"), "-")
	return strings.CutPrefix(flag, name+"=")
}

// boolFlag returns the value of a boolean flag, such as -race or --race=false. ok reports whether
// flag sets it.
func boolFlag(flag, name string) (value, ok bool) {
	if text, ok := flagValue(flag, name); ok {
		value, err := strconv.ParseBool(text)
		return value, err == nil
	}
	return true, flag == "-"+name || flag == "--"+name
}

// tagsOf splits the value of -tags as the go command does: at commas, or like GOFLAGS if
// the value contains a space or an apostrophe.
func tagsOf(value string) []string {
	if strings.ContainsAny(value, " '") {
		tags, _ := splitFlags(value) // the go command reports the error
		return tags
	}
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' })
}
