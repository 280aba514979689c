// Package clock measures time without reading the clock each time: timers that
// are called millions of times a second, where a reading costs more than what
// is measured.
//
// [PeriodicTimer] tells the time since its last call, [StartFinishTimer] adds up
// how long something takes, [WaitingTimer] says when a period is over, and
// [PeriodicClock] tells the time of day.
//
//	var busy clock.StartFinishTimer
//	for m := range messages {
//		busy.Start()
//		handle(m)
//		busy.Finish()
//	}
//	if n := busy.Count(); n > 0 {
//		fmt.Println(busy.Sum() / time.Duration(n))
//	}
//
// Zero values are ready to use, but for WaitingTimer, which has a period. All
// calls take constant time and allocate nothing. Durations are nanoseconds of
// the monotonic clock: setting the time of day does not change them.
//
// # Guarantees
//
// A call either reads the clock, which winds the timer up, or it extrapolates.
// From one reading to the next the number of calls at most doubles, it stays
// within 64, and it is one where calls are a millisecond or more apart: then
// every result is exact.
//
// What PeriodicTimer has returned in sum is never ahead of real time, and at each
// reading it has reached the reading before. A WaitingTimer is never early, and a
// PeriodicClock never shows the future. How late they are is bounded in calls,
// not in time: a timer that is called often and then hardly ever needs up to 64
// calls to notice. Whoever knows of a pause, such as a worker that was parked,
// says so with WindUp: the next call reads the clock.
//
// Where a wrong decision costs more than a reading, as with deadlines, read the
// clock.
//
// # Limits
//
// No timer is safe for concurrent use. Each belongs to one place in the code,
// because it takes the pace of the last calls for that of the next ones. A
// duration that StartFinishTimer measures includes the cost of one reading, as
// it does with time.Now.
//
// # Design
//
// The timers are modelled on rast.md 2.6 to 2.9 (docs/reference/rast.md). That
// text extrapolates forwards and balances what was too much or too little
// later, which makes the sum run ahead when calls become faster, and returns a
// pause again and again. Here an interval is paid out while the next one passes:
// only time that is over is ever returned, so nothing has to be taken back. The
// text also returns at least 1 from each call; here a clock that stands still
// gives 0, else the sum would not be the time.
package clock
