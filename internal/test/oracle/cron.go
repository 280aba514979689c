package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cron is an expression: for each of second, minute, hour, day, month and weekday the
// numbers that match.
type cron struct {
	seconds, minutes, hours, days, months, weekdays []int
	anyDay, anyWeekday                              bool // the field is a star
}

// parseCron reads an expression of five fields, or of six with the seconds first.
func parseCron(expression string) (cron, error) {
	f := strings.Fields(expression)
	if len(f) == 5 {
		f = append([]string{"0"}, f...)
	}
	if len(f) != 6 {
		return cron{}, fmt.Errorf("%q must have five or six fields", expression)
	}
	var c cron
	for i, field := range []struct {
		numbers         *[]int
		lowest, highest int
	}{
		{&c.seconds, 0, 59}, {&c.minutes, 0, 59}, {&c.hours, 0, 23}, {&c.days, 1, 31}, {&c.months, 1, 12}, {&c.weekdays, 0, 6},
	} {
		var err error
		if *field.numbers, err = parseField(f[i], field.lowest, field.highest); err != nil {
			return cron{}, err
		}
	}
	c.anyDay, c.anyWeekday = f[3] == "*" || f[3] == "?", f[5] == "*" || f[5] == "?"
	return c, nil
}

// parseField reads a list of *, N, N-M, each with an optional /STEP.
func parseField(text string, lowest, highest int) (numbers []int, err error) {
	for item := range strings.SplitSeq(text, ",") {
		span, stepText, hasStep := strings.Cut(item, "/")
		first, last, step := lowest, highest, 1
		if hasStep {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
				return nil, fmt.Errorf("%q is not a step", stepText)
			}
		}
		if span != "*" && span != "?" {
			from, to, isRange := strings.Cut(span, "-")
			if first, err = strconv.Atoi(from); err != nil {
				return nil, fmt.Errorf("%q is not a number", from)
			}
			switch {
			case isRange:
				if last, err = strconv.Atoi(to); err != nil {
					return nil, fmt.Errorf("%q is not a number", to)
				}
			case !hasStep:
				last = first
			}
		}
		if first < lowest || last > highest || first > last {
			return nil, fmt.Errorf("%q must be in %d-%d", item, lowest, highest)
		}
		for n := first; n <= last; n += step {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// onDay reports whether the day of t matches. If both days and weekdays are given, one of
// them is enough.
func (c cron) onDay(t time.Time) bool {
	day, weekday := slices.Contains(c.days, t.Day()), slices.Contains(c.weekdays, int(t.Weekday()))
	if !c.anyDay && !c.anyWeekday {
		day = day || weekday
	} else {
		day = day && weekday
	}
	return day && slices.Contains(c.months, int(t.Month()))
}

// next returns the first occurrence of an expression after an instant, in UTC. It looks
// at each second of the days that match, for eight years: no February has a 30th.
func next(expression string, after int64) int64 {
	c, err := parseCron(expression)
	if err != nil {
		panic(err) // it was parsed when the schedule was created
	}
	start := time.UnixMilli(after).UTC()
	const second, minute, hour = 1_000, 60_000, 3_600_000 // ms
	for i := range 8 * 366 {
		day := time.Date(start.Year(), start.Month(), start.Day()+i, 0, 0, 0, 0, time.UTC)
		if !c.onDay(day) {
			continue
		}
		midnight := day.UnixMilli()
		for _, h := range c.hours {
			for _, m := range c.minutes {
				for _, s := range c.seconds {
					if at := midnight + int64(h*hour+m*minute+s*second); at > after {
						return at
					}
				}
			}
		}
	}
	return 1<<63 - 1
}
