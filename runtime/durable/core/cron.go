package core

import (
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

var cronParser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// parseCron reads an expression of five fields, or of six with seconds first. Times are
// in UTC: the expression must not name a time zone, because the rules of time zones
// differ between hosts and change.
func parseCron(expression string) (*cron.SpecSchedule, string) {
	const wanted = "cron must have five fields, or six with seconds first"
	if len(expression) > protocol.MaxCron || strings.Contains(expression, "=") {
		return nil, wanted
	}
	parsed, err := cronParser.Parse(expression)
	if err != nil {
		return nil, wanted + ": " + err.Error()
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, wanted
	}
	spec.Location = time.UTC
	return spec, ""
}

// cronYears is how many years in a row can be without an occurrence: 29 February occurs
// in 2096 and then in 2104.
const cronYears = 8

// lastOccurrence bounds occurrences to years that a time.Time can be computed with.
var lastOccurrence = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// nextOccurrence returns the first time of an expression after an instant, both in
// milliseconds. It returns false if there is none.
func nextOccurrence(spec *cron.SpecSchedule, after int64) (int64, bool) {
	if after >= lastOccurrence {
		return 0, false
	}
	from := time.UnixMilli(after).UTC()
	for limit := from.AddDate(cronYears+1, 0, 0); from.Before(limit); from = from.AddDate(4, 0, 0) {
		if t := spec.Next(from); !t.IsZero() { // the package looks five years ahead
			return t.UnixMilli(), true
		}
	}
	return 0, false
}
