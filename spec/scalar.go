package spec

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// scalar decodes a scalar node. data is the value for the schema. complaint and
// suggestion are set where YAML reads something that a topology does not have:
// dates, numbers that are none, tags of an application.
func scalar(n *yaml.Node) (kind Kind, data any, complaint, suggestion string) {
	text := n.Value
	switch n.ShortTag() {
	case "!!str", "!!merge":
		return String, text, "", ""
	case "!!null":
		return Null, nil, "", ""
	case "!!bool":
		switch strings.ToLower(text) {
		case "true":
			return Bool, true, "", ""
		case "false":
			return Bool, false, "", ""
		}
	case "!!int":
		return integer(text)
	case "!!float":
		if strings.Contains(text, "_") {
			return underscored(text)
		}
		f, err := strconv.ParseFloat(text, 64)
		switch {
		case isSpecialFloat(text) || err == nil && (math.IsNaN(f) || math.IsInf(f, 0)):
			return String, text, fmt.Sprintf("%s is not a finite number", clip(text)), quoteIt(text)
		case err != nil:
			return String, text, fmt.Sprintf("the number %s is not written plainly", clip(text)), "write only digits, a point and an exponent, or put it in quotes"
		}
		return Float, f, "", ""
	case "!!timestamp":
		return String, text, fmt.Sprintf("%s is a date to YAML, and a topology has none", clip(text)), quoteIt(text)
	}
	return String, text, fmt.Sprintf("the tag %s has no meaning in a topology", clip(n.Tag)), "leave it out"
}

// integer decodes a whole number in the forms that Go has too. Refused are those that
// readers of YAML 1.1 and 1.2 read differently: a leading zero and underscores.
func integer(text string) (kind Kind, data any, complaint, suggestion string) {
	digits := strings.TrimLeft(text, "+-")
	if len(digits) > 1 && digits[0] == '0' && (isDigit(digits[1]) || digits[1] == '_') {
		return String, text, fmt.Sprintf("%s is octal to some readers of YAML and decimal to others", clip(text)),
			"write it without the leading zero, or put it in quotes"
	}
	if strings.Contains(text, "_") {
		return underscored(text)
	}
	if i, err := strconv.ParseInt(text, 0, 64); err == nil {
		return Int, i, "", ""
	}
	if u, err := strconv.ParseUint(text, 0, 64); err == nil {
		return Int, u, "", ""
	}
	return String, text, fmt.Sprintf("the number %s is not written plainly", clip(text)), "write only digits, or put it in quotes"
}

// underscored refuses a number with underscores, which YAML 1.2 does not have.
func underscored(text string) (kind Kind, data any, complaint, suggestion string) {
	return String, text, fmt.Sprintf("%s is a number to some readers of YAML and a text to others", clip(text)),
		"write it without underscores, or put it in quotes"
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isSpecialFloat(text string) bool {
	switch strings.ToLower(strings.TrimLeft(text, "+-")) {
	case ".nan", ".inf":
		return true
	}
	return false
}

func quoteIt(text string) string {
	return fmt.Sprintf("put it in quotes if a text is meant: %q", clip(text))
}

// clip shortens a text from the file for use in a message.
func clip(text string) string {
	runes := 0
	for i := range text {
		if runes++; runes > nameMax { // a name is shown whole
			return text[:i] + "…"
		}
	}
	return text
}
