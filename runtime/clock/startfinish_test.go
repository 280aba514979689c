package clock

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// take makes a pair that lasts d, followed by a pause.
func take(timer *StartFinishTimer, d, pause time.Duration) {
	timer.Start()
	time.Sleep(d)
	timer.Finish()
	time.Sleep(pause)
}

// TestEqualDurations: n equal durations add up to n times the duration, at any time, with
// any pauses between them.
func TestEqualDurations(t *testing.T) {
	type input struct {
		d      time.Duration
		bursts []burst
	}
	inputs := rapid.Custom(func(t *rapid.T) input { return input{pauses().Draw(t, "d"), bursts().Draw(t, "bursts")} })
	check(t, inputs, func(in input) error {
		var timer StartFinishTimer
		n := 0
		for _, b := range in.bursts {
			for range b.calls {
				take(&timer, in.d, b.pause)
				n++
				if timer.Count() != uint64(n) || timer.Sum() != in.d*time.Duration(n) {
					return fmt.Errorf("%d durations of %v: count %d, sum %v", n, in.d, timer.Count(), timer.Sum())
				}
			}
			switch b.then {
			case windUp:
				timer.WindUp()
			case reset:
				timer.Reset()
				if n = 0; timer.Count() != 0 || timer.Sum() != 0 {
					return fmt.Errorf("after Reset: count %d, sum %v", timer.Count(), timer.Sum())
				}
			}
		}
		return nil
	})
}

// TestSumNeverFalls: the sum never falls, whatever the durations, and measurements are as
// frequent as documented.
func TestSumNeverFalls(t *testing.T) {
	check(t, bursts(), func(bursts []burst) error {
		var timer StartFinishTimer
		var sum time.Duration
		var measured uint64
		for _, b := range bursts {
			for range b.calls {
				take(&timer, b.pause, b.pause/3)
				if timer.Sum() < sum {
					return fmt.Errorf("the sum is %v after %v", timer.Sum(), sum)
				}
				sum = timer.Sum()
				if timer.measuredAt == timer.count {
					measured = timer.count
				} else if timer.count-measured >= maxSteps {
					return fmt.Errorf("%d pairs without a measurement", timer.count-measured)
				}
			}
			if b.then == windUp {
				timer.WindUp()
			}
		}
		return nil
	})
}

// TestRarePairsAreExact: if pairs are a millisecond apart, each is measured.
func TestRarePairsAreExact(t *testing.T) {
	check(t, rapid.SliceOf(pauses()), func(durations []time.Duration) error {
		var timer StartFinishTimer
		var sum time.Duration
		for _, d := range durations {
			time.Sleep(period)
			take(&timer, d, 0)
			if sum += d; timer.Sum() != sum {
				return fmt.Errorf("got %v, want %v", timer.Sum(), sum)
			}
		}
		return nil
	})
}

// TestSumHasNoBias: over many runs the mean error is statistically zero. The durations
// include patterns in which a timer that measures every n-th pair would always measure
// the same kind, and durations that depend on each other.
func TestSumHasNoBias(t *testing.T) {
	speed.NoRace(t)
	const pairs = 63 + 32*20 // the end of a block: 1, 2, 4, 8, 16, then 32 pairs each
	random := rand.New(rand.NewPCG(1, 2))
	for name, duration := range map[string]func(i int) time.Duration{
		"rising with a block":  func(i int) time.Duration { return time.Duration(i % maxBlock) },
		"falling with a block": func(i int) time.Duration { return time.Duration(maxBlock - i%maxBlock) },
		"one of 64":            func(i int) time.Duration { return time.Duration(1 + 500*(i%64/63)) },
		"every second one":     func(i int) time.Duration { return time.Duration(1 + 50*(i%2)) },
		"first ones long":      func(i int) time.Duration { return time.Duration(1 + 1000/(i+1)) },
		"bursts of long ones":  func(i int) time.Duration { return time.Duration(1 + 200*(i/100%2)) },
		"random":               func(i int) time.Duration { return time.Duration(random.IntN(300)) },
		"random, few are long": func(i int) time.Duration { return time.Duration(random.ExpFloat64() * 100) },
		"blocks of all sizes":  func(i int) time.Duration { return time.Duration(random.ExpFloat64() * float64(period) / 5) },
	} {
		t.Run(name, func(t *testing.T) {
			runs := speed.Pick(t, 60, 300, 300)
			var sum, squares float64
			err := virtually(t, func() error {
				for range runs {
					var timer StartFinishTimer
					var real time.Duration
					for i := range pairs {
						d := duration(i)
						real += d
						take(&timer, d, 7)
					}
					off := float64(timer.Sum()-real) / float64(real)
					sum += off
					squares += off * off
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			n := float64(runs)
			mean := sum / n
			deviation := math.Sqrt((squares/n - mean*mean) / n) // standard deviation of the mean
			if math.Abs(mean) > 6*deviation {
				t.Errorf("the error is %.2f %%, with a standard deviation of %.2f %%", 100*mean, 100*deviation)
			}
		})
	}
}

// TestWindUpMeasuresTheNextPair includes a WindUp within a pair.
func TestWindUpMeasuresTheNextPair(t *testing.T) {
	const short, long = 10 * time.Nanosecond, time.Microsecond
	check(t, rapid.IntRange(1, 500), func(pairs int) error {
		for _, within := range []bool{false, true} {
			var timer StartFinishTimer
			for range pairs - 1 {
				take(&timer, short, 0)
			}
			timer.Start()
			time.Sleep(short)
			if within {
				timer.WindUp()
			}
			timer.Finish()
			if !within {
				timer.WindUp()
			}
			take(&timer, long, 0)
			if want := time.Duration(pairs)*short + long; timer.Sum() != want {
				return fmt.Errorf("got %v, want %v; WindUp within a pair: %v", timer.Sum(), want, within)
			}
		}
		return nil
	})
}

// TestInvalidPairs: incomplete pairs do not count.
func TestInvalidPairs(t *testing.T) {
	err := virtually(t, func() error {
		var timer StartFinishTimer
		for range 200 {
			timer.Finish() // no Start
			timer.Start()
			time.Sleep(time.Second) // the pair is abandoned
			take(&timer, 10, 10)
			timer.Finish()
		}
		if timer.Count() != 200 || timer.Sum() != 2000 {
			return fmt.Errorf("%d, %v", timer.Count(), timer.Sum())
		}
		timer.Start()
		timer.Reset()
		timer.Finish()
		if timer.Count() != 0 || timer.Sum() != 0 {
			return fmt.Errorf("a pair begun before Reset: count %d, sum %v", timer.Count(), timer.Sum())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
