package protocol

import "fmt"

// element puts the index of an element before the field of an error.
func element(i int, err error) error {
	if err == nil {
		return nil
	}
	return in(fmt.Sprintf("[%d]", i), err)
}

func (s *scanner) promise() (p Promise, err error) {
	err = s.object(func(key []byte) (err error) {
		switch string(key) {
		case "id":
			p.ID, err = s.string()
		case "state":
			var state string
			state, err = s.string()
			p.State = PromiseState(state)
		case "param":
			p.Param, err = s.value()
		case "value":
			p.Value, err = s.value()
		case "tags":
			p.Tags, err = s.pairs(mostPairs)
		case "timeoutAt":
			p.TimeoutAt, err = s.anyTime()
		case "createdAt":
			p.CreatedAt, err = s.anyTime()
		case "settledAt":
			p.SettledAt, err = s.optionalTime()
		default:
			return s.skip()
		}
		return inKey(key, err)
	})
	if err == nil && p.State == "" {
		err = &Error{"state", "is missing"}
	}
	if err == nil {
		err = checkPromiseState(p.State)
	}
	return p, first(err, present("id", p.ID))
}

// mostPairs is how many tags a record may have: a schedule adds tags to the tags that its
// creator gave it.
const mostPairs = 2 * MaxTags

func (s *scanner) task() (t Task, err error) {
	err = s.object(func(key []byte) (err error) {
		switch string(key) {
		case "id":
			t.ID, err = s.string()
		case "state":
			var state string
			state, err = s.string()
			t.State = TaskState(state)
		case "version":
			t.Version, err = s.int(0, MaxVersion)
		case "resumes":
			t.Resumes, err = s.resumes()
		case "ttl":
			t.TTL, err = s.optionalTime()
		case "pid":
			if !s.null() {
				var pid string
				pid, err = s.string()
				t.PID = &pid
			}
		default:
			return s.skip()
		}
		return inKey(key, err)
	})
	if err == nil && t.State == "" {
		err = &Error{"state", "is missing"}
	}
	if err == nil {
		err = checkTaskState(t.State)
	}
	return t, first(err, present("id", t.ID))
}

// resumes reads the ids of promises. A server may also send their number, or whether
// there are any, which says too little to be kept.
func (s *scanner) resumes() ([]string, error) {
	if s.peek() == '[' {
		return list(s, s.string)
	}
	return nil, s.skip()
}

func (s *scanner) schedule() (c Schedule, err error) {
	err = s.object(func(key []byte) (err error) {
		switch string(key) {
		case "id":
			c.ID, err = s.string()
		case "cron":
			c.Cron, err = s.string()
		case "promiseId":
			c.PromiseID, err = s.string()
		case "promiseTimeout":
			c.PromiseTimeout, err = s.anyTime()
		case "promiseParam":
			c.PromiseParam, err = s.value()
		case "promiseTags":
			c.PromiseTags, err = s.pairs(mostPairs)
		case "createdAt":
			c.CreatedAt, err = s.anyTime()
		case "nextRunAt":
			c.NextRunAt, err = s.anyTime()
		case "lastRunAt":
			c.LastRunAt, err = s.optionalTime()
		default:
			return s.skip()
		}
		return inKey(key, err)
	})
	return c, first(err, present("id", c.ID))
}

func present(field, text string) error {
	if text == "" {
		return &Error{field, "is missing"}
	}
	return nil
}
