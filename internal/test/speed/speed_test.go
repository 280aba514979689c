package speed

import (
	"flag"
	"testing"
)

func TestPick(t *testing.T) {
	for text, want := range map[string]int{"": 1, "quick": 1, "landing": 2, "long": 3} {
		t.Setenv(Variable, text)
		if got := Pick(t, 1, 2, 3); got != want {
			t.Errorf("%s=%s: got %d, want %d", Variable, text, got, want)
		}
		if got := ForAll(1, 2, 3); got != want {
			t.Errorf("%s=%s: got %d for all tests, want %d", Variable, text, got, want)
		}
	}
}

func TestSkips(t *testing.T) {
	for _, c := range []struct {
		speed         string
		landing, long bool // whether a test of this speed runs
	}{{"quick", false, false}, {"landing", true, false}, {"long", true, true}} {
		t.Setenv(Variable, c.speed)
		if got := runs(t, Landing); got != c.landing {
			t.Errorf("%s: a test for landing runs: %v, want %v", c.speed, got, c.landing)
		}
		if got := runs(t, Long); got != c.long {
			t.Errorf("%s: a long test runs: %v, want %v", c.speed, got, c.long)
		}
	}
}

// runs reports whether a test that calls need goes on.
func runs(t *testing.T, need func(testing.TB)) (ran bool) {
	t.Run("test", func(t *testing.T) {
		need(t)
		ran = true
	})
	return ran
}

func TestSeeds(t *testing.T) {
	for _, c := range []struct {
		speed, one, all, begin string
		first, n               uint64 // first 0: random
	}{
		{"quick", "", "", "", 1, 10},
		{"landing", "", "", "", 0, 20},
		{"long", "", "", "", 0, 30},
		{"quick", "", "7", "", 1, 7},
		{"long", "", "7", "", 0, 7},
		{"landing", "42", "7", "", 42, 1},
		{"quick", "", "", "9", 1, 10},
		{"landing", "", "", "9", 9, 20},
		{"landing", "42", "", "9", 42, 1},
	} {
		t.Setenv(Variable, c.speed)
		t.Setenv(OneSeed, c.one)
		t.Setenv(AllSeeds, c.all)
		t.Setenv(FirstSeed, c.begin)
		first, end := Seeds(t, 10, 20, 30)
		if end-first != c.n || c.first != 0 && first != c.first {
			t.Errorf("%+v: got %d seeds from %d on", c, end-first, first)
		}
		if again, _ := Seeds(t, 10, 20, 30); c.first == 0 && again == first {
			t.Errorf("%+v: two runs have the same seeds", c)
		}
	}
}

// TestChecks: the flags of rapid depend on the speed until the test ends. A flag of the command stays.
func TestChecks(t *testing.T) {
	flags := flag.NewFlagSet("", flag.PanicOnError)
	checks, seed := flags.Int("rapid.checks", 100, ""), flags.Uint64("rapid.seed", 0, "")
	for text, wantSeed := range map[string]uint64{"quick": 1, "landing": 0, "long": 0} {
		t.Run(text, func(t *testing.T) {
			t.Setenv(Variable, text)
			t.Setenv(FirstSeed, "")
			if check(t, flags, 5); *checks != 5 || *seed != wantSeed {
				t.Errorf("%d checks with seed %d, want 5 with seed %d", *checks, *seed, wantSeed)
			}
		})
	}
	if *checks != 100 || *seed != 0 {
		t.Errorf("after the tests there are %d checks with seed %d, want 100 with seed 0", *checks, *seed)
	}
	t.Run("first seed", func(t *testing.T) {
		t.Setenv(Variable, "landing")
		t.Setenv(FirstSeed, "9")
		if check(t, flags, 5); *seed != 9 {
			t.Errorf("the seed is %d, want 9", *seed)
		}
	})
	if err := flags.Set("rapid.checks", "7"); err != nil {
		t.Fatal(err)
	}
	if check(t, flags, 5); *checks != 7 {
		t.Errorf("%d checks, want the 7 of the command", *checks)
	}
}

// TestTenth: with the race detector the amount is smaller, and never nothing.
func TestTenth(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 10: 1, 11: 2, 1000: 100} {
		if !raceDetector {
			want = n
		}
		if got := Tenth(t, n); got != want {
			t.Errorf("%d of %d, want %d", got, n, want)
		}
	}
}

// TestRepeat: the command has the speed unless it is quick, and the test without its subtest.
func TestRepeat(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "quick": "", "landing": "TOPOGEN_SPEED=landing ", "long": "TOPOGEN_SPEED=long ",
	} {
		want = "repeat with: " + want + "TOPOGEN_SEED=42 go test -run '^TestRepeat$' ./internal/test/speed"
		t.Run("at "+text, func(t *testing.T) {
			t.Setenv(Variable, text)
			if got := Repeat(t, 42); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
