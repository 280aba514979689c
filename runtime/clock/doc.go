// Package clock measures time without reading the clock in each call. It is for
// timers that are called millions of times per second, where reading the clock costs
// more than the work that is measured.
//
// [PeriodicTimer] returns the time since its last call, [StartFinishTimer] adds up the
// durations of an operation, [WaitingTimer] reports when a period has passed, and
// [PeriodicClock] returns the time of day.
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
// Zero values are ready to use, except that of WaitingTimer, which needs a period. All
// calls take constant time and do not allocate. Durations are nanoseconds of the
// monotonic clock, so setting the time of day does not change them.
//
// # Guarantees
//
// A call either reads the clock or extrapolates. The number of calls between two
// readings at most doubles from one reading to the next, and is at most 64. If calls are
// a millisecond or more apart, each call reads the clock and every result is exact.
//
// The sum of all results of a PeriodicTimer is never larger than the real time. At each
// reading the sum reaches the time of the previous reading. A WaitingTimer is never early,
// and a PeriodicClock never returns a time in the future. Their delay is limited in
// calls, not in time: if a timer is called often and then rarely, up to 64 calls pass
// before it reads the clock. If you know that there was a pause, for example because a
// worker was parked, call WindUp, and the next call reads the clock.
//
// If a wrong decision costs more than a reading, as with deadlines, read the clock.
//
// # Limits
//
// Timers are not safe for concurrent use. Use each timer in one place in the code,
// because it assumes that the next calls come as fast as the last ones. A duration
// that StartFinishTimer measures includes the cost of one reading, as with time.Now.
//
// # Design
//
// A timer that predicts the time of the next calls runs ahead of the real time when calls
// become faster, and must then correct its sum. The timers here do not predict. They
// distribute the time between two readings over the calls after the second reading. They
// only return time that has passed, so they never have to correct a result. If the clock
// does not advance, they return 0.
package clock
