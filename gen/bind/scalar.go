package bind

import (
	"go/types"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
)

// scalar is v as a literal of a basic type, or of a type declared as one.
func (b *binder) scalar(t types.Type, u *types.Basic, v *spec.Value) plan.Literal {
	text, problem := "", ""
	info := u.Info()
	switch {
	case v.Kind == spec.Null:
		return b.misplaced(v, "", "the value%s must not be empty", b.forType(t))
	case info&types.IsString != 0 && v.Kind == spec.String:
		text = strconv.Quote(v.Text)
	case info&types.IsBoolean != 0 && v.Kind == spec.Bool:
		text = strconv.FormatBool(strings.EqualFold(v.Text, "true"))
	case info&types.IsInteger != 0 && v.Kind == spec.Int:
		text, problem = integer(v.Text, bits(u), info&types.IsUnsigned != 0)
	case info&types.IsFloat != 0 && (v.Kind == spec.Int || v.Kind == spec.Float):
		text, problem = number(v.Text, bits(u))
	case info&(types.IsString|types.IsBoolean|types.IsInteger|types.IsFloat) == 0:
		return b.misplaced(v, "", "a configuration cannot hold a value of type %s", b.typeText(t))
	default:
		suggestion := ""
		if info&types.IsString != 0 && v.Text != "" {
			suggestion = "write " + strconv.Quote(v.Text)
		}
		return b.misplaced(v, suggestion, "the value%s must be %s, got %s", b.forType(t), wants(info), spec.Describe(v))
	}
	if problem != "" {
		return b.misplaced(v, "", "%s %s", v.Text, problem+b.typeText(t))
	}
	return b.typed(v, plan.Literal{Text: text}, t)
}

// forType returns " for " and the name of t. It returns "" for a predeclared type, whose name
// would repeat the expected kind of value.
func (b *binder) forType(t types.Type) string {
	if _, ok := t.(*types.Basic); ok {
		return ""
	}
	return " for " + b.typeText(t)
}

func wants(info types.BasicInfo) string {
	switch {
	case info&types.IsString != 0:
		return "a string"
	case info&types.IsBoolean != 0:
		return "true or false"
	case info&types.IsInteger != 0:
		return "an integer"
	}
	return "a number"
}

// bits is the size of a number. int and uint count as 64 bits.
func bits(u *types.Basic) int { return int(8 * types.SizesFor("gc", "amd64").Sizeof(u)) }

// integer turns a YAML integer of any base into decimal digits.
func integer(text string, bits int, unsigned bool) (digits, problem string) {
	if unsigned {
		n, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), 0, bits)
		if err != nil {
			return "", "is out of range for "
		}
		return strconv.FormatUint(n, 10), ""
	}
	n, err := strconv.ParseInt(text, 0, bits)
	if err != nil {
		return "", "is out of range for "
	}
	return strconv.FormatInt(n, 10), ""
}

func number(text string, bits int) (digits, problem string) {
	n, err := strconv.ParseFloat(text, bits)
	if err != nil {
		if i, intErr := strconv.ParseInt(text, 0, 64); intErr == nil {
			n, err = float64(i), nil
		}
	}
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return "", "is not a valid "
	}
	return strconv.FormatFloat(n, 'g', -1, bits), ""
}

func isDuration(t types.Type) bool { return isNamed(t, "time", "Duration") }

// duration accepts the values of time.ParseDuration. A number without a unit is invalid.
func (b *binder) duration(t types.Type, v *spec.Value) plan.Literal {
	d, err := time.ParseDuration(v.Text)
	if v.Kind == spec.List || v.Kind == spec.Map || v.Kind == spec.Null || err != nil {
		return b.misplaced(v, `write it like "1m30s"`, "the value must be a duration, got %s", spec.Describe(v))
	}
	return b.typed(v, plan.Literal{Text: strconv.FormatInt(int64(d), 10)}, t)
}
