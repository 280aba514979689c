package speed

import (
	"flag"
	"strconv"
	"testing"
)

// Checks sets how often rapid.Check calls the property of a test. All quick runs have the same
// inputs. Other runs have the same inputs if they have the same TOPOGEN_FIRST_SEED. The flags
// -rapid.checks and -rapid.seed on the command line have priority.
func Checks(t testing.TB, inQuick, inLanding, inLong int) {
	t.Helper()
	check(t, flag.CommandLine, Pick(t, inQuick, inLanding, inLong))
}

func check(t testing.TB, flags *flag.FlagSet, n int) {
	t.Helper()
	set(t, flags, "rapid.checks", strconv.Itoa(n))
	if of(t) == quick {
		set(t, flags, "rapid.seed", "1")
	} else if seed, ok := number(t, FirstSeed); ok {
		set(t, flags, "rapid.seed", strconv.FormatUint(seed, 10))
	}
}

// set sets a flag until the test ends, unless the command has set it.
func set(t testing.TB, flags *flag.FlagSet, name, value string) {
	t.Helper()
	f := flags.Lookup(name)
	if f == nil {
		t.Fatalf("the test must import rapid, which has the flag -%s", name)
	}
	given := false
	flags.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return
	}
	before := f.Value.String()
	t.Cleanup(func() { _ = f.Value.Set(before) })
	if err := f.Value.Set(value); err != nil { // Set of the flags would count as given
		t.Fatal(err)
	}
}
