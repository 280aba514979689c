package clock_test

import (
	"fmt"
	"time"

	"github.com/topogen/topogen/runtime/clock"
)

func ExamplePeriodicTimer() {
	var timer clock.PeriodicTimer
	begun := time.Now()
	var sum time.Duration
	for range 1000 {
		sum += timer.Passed()
	}
	timer.WindUp() // the next call returns the rest of the time
	sum += timer.Passed()
	fmt.Println(0 < sum, sum <= time.Since(begun))
	// Output: true true
}

func ExampleStartFinishTimer() {
	var words clock.StartFinishTimer
	for range 1000 {
		words.Start()
		_ = fmt.Sprint("a", "word")
		words.Finish()
	}
	fmt.Println(words.Count(), "words,", words.Sum() > 0)
	// Output: 1000 words, true
}

func ExampleWaitingTimer() {
	report := clock.NewWaitingTimer(time.Millisecond)
	for reports := 0; reports < 3; {
		// … work …
		if report.Check() {
			report.Reset()
			reports++
			fmt.Println("report", reports)
		}
	}
	// Output:
	// report 1
	// report 2
	// report 3
}

func ExamplePeriodicClock() {
	var clock clock.PeriodicClock
	first := clock.Now()
	for !clock.Now().After(first) {
		// … work …
	}
	fmt.Println("time passes")
	// Output: time passes
}
