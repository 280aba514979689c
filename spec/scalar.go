package spec

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// scalar returns the kind of the value of a scalar node. problem and suggestion are set for values
// that a topology cannot have: dates, numbers that are not finite, tags of applications.
func scalar(n *yaml.Node) (kind Kind, problem, suggestion string) {
	text := n.Value
	switch n.ShortTag() {
	case "!!str", "!!merge":
		return String, "", ""
	case "!!null":
		return Null, "", ""
	case "!!bool":
		if lower := strings.ToLower(text); lower == "true" || lower == "false" {
			return Bool, "", ""
		}
	case "!!int":
		return integer(text)
	case "!!float":
		return float(text)
	case "!!timestamp":
		return String, "a value must not be a date, got " + clip(text), quoteHint(text)
	}
	return String, fmt.Sprintf("a value must not have the tag %s", clip(n.Tag)), "remove the tag"
}

// integer accepts an integer in the forms of Go. It rejects forms that YAML 1.1 and 1.2 define
// differently: a leading zero and underscores.
func integer(text string) (kind Kind, problem, suggestion string) {
	digits := strings.TrimLeft(text, "+-")
	if len(digits) > 1 && digits[0] == '0' && (isDigit(digits[1]) || digits[1] == '_') {
		return String, "a number must not have a leading zero, got " + clip(text) + ": some YAML readers take it as octal", "write it without the leading zero, or put it in quotes"
	}
	if strings.Contains(text, "_") {
		return underscored(text)
	}
	_, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		_, err = strconv.ParseUint(text, 0, 64)
	}
	if err != nil {
		return String, fmt.Sprintf("an integer must be written in digits, got %s", clip(text)), "write only digits, or put it in quotes"
	}
	return Int, "", ""
}

func float(text string) (kind Kind, problem, suggestion string) {
	if strings.Contains(text, "_") {
		return underscored(text)
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case isSpecialFloat(text) || err == nil && (math.IsNaN(f) || math.IsInf(f, 0)):
		return String, "a number must be finite, got " + clip(text), quoteHint(text)
	case err != nil:
		return String, fmt.Sprintf("a number must be written in digits, got %s", clip(text)), "write only digits, a point and an exponent, or put it in quotes"
	}
	return Float, "", ""
}

// underscored rejects a number with underscores, which YAML 1.2 does not have.
func underscored(text string) (kind Kind, problem, suggestion string) {
	return String, "a number must not have underscores, got " + clip(text) + ": some YAML readers take it as a string", "write it without underscores, or put it in quotes"
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isSpecialFloat(text string) bool {
	text = strings.TrimLeft(text, "+-")
	return strings.EqualFold(text, ".nan") || strings.EqualFold(text, ".inf")
}

func quoteHint(text string) string {
	return fmt.Sprintf("put it in quotes if you mean a string: %q", clip(text))
}

// clip shortens a text of the file for a message.
func clip(text string) string {
	runes := 0
	for i := range text {
		if runes++; runes > nameMax { // a valid name is never clipped
			return text[:i] + "…"
		}
	}
	return text
}
