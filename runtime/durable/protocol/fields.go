package protocol

import "fmt"

// fields holds the data of a request of any kind. A field has the same name and type in
// every kind that has it.
type fields struct {
	has            fieldSet
	id             string
	awaited        string
	awaiter        string
	address        string
	state          string
	pid            string
	cursor         string
	cron           string
	promiseID      string
	timeoutAt      int64
	ttl            int64
	version        int64
	promiseTimeout int64
	time           int64
	limit          int64
	param          Value
	value          Value
	tags           map[string]string
	action         Operation
	actions        []RegisterCallback
	tasks          []TaskRef

	origin       string // from the head
	actionCorrID string // from the head of the action
}

// A fieldSet is a set of fields.
type fieldSet uint32

const (
	fieldID fieldSet = 1 << iota
	fieldAwaited
	fieldAwaiter
	fieldAddress
	fieldState
	fieldPID
	fieldCursor
	fieldCron
	fieldPromiseID
	fieldTimeoutAt
	fieldTTL
	fieldVersion
	fieldPromiseTimeout
	fieldTime
	fieldLimit
	fieldParam
	fieldValue
	fieldTags
	fieldAction
	fieldActions
	fieldTasks
	fieldPromiseParam
	fieldPromiseTags
)

// fieldNamed returns the field with a name, or 0.
func fieldNamed(name []byte) fieldSet {
	switch string(name) {
	case "id":
		return fieldID
	case "awaited":
		return fieldAwaited
	case "awaiter":
		return fieldAwaiter
	case "address":
		return fieldAddress
	case "state":
		return fieldState
	case "pid":
		return fieldPID
	case "cursor":
		return fieldCursor
	case "cron":
		return fieldCron
	case "promiseId":
		return fieldPromiseID
	case "timeoutAt":
		return fieldTimeoutAt
	case "ttl":
		return fieldTTL
	case "version":
		return fieldVersion
	case "promiseTimeout":
		return fieldPromiseTimeout
	case "time":
		return fieldTime
	case "limit":
		return fieldLimit
	case "param":
		return fieldParam
	case "value":
		return fieldValue
	case "tags":
		return fieldTags
	case "action":
		return fieldAction
	case "actions":
		return fieldActions
	case "tasks":
		return fieldTasks
	case "promiseParam":
		return fieldPromiseParam
	case "promiseTags":
		return fieldPromiseTags
	}
	return 0
}

// required lists fields in the order in which their absence is reported.
var required = []struct {
	field fieldSet
	name  string
}{
	{fieldID, "id"}, {fieldAwaited, "awaited"}, {fieldAwaiter, "awaiter"}, {fieldAddress, "address"},
	{fieldPID, "pid"}, {fieldTTL, "ttl"}, {fieldVersion, "version"}, {fieldTimeoutAt, "timeoutAt"},
	{fieldState, "state"}, {fieldAction, "action"}, {fieldActions, "actions"}, {fieldTasks, "tasks"},
	{fieldCron, "cron"}, {fieldPromiseID, "promiseId"}, {fieldPromiseTimeout, "promiseTimeout"},
	{fieldTime, "time"},
}

// fields reads the data of a request of kind k.
func (s *scanner) fields(k *kind, f *fields) error {
	err := s.object(func(key []byte) error {
		field := fieldNamed(key) & (k.need | k.may)
		switch {
		case field == 0:
			return s.skip()
		case f.has&field != 0:
			return inKey(key, problem("is given twice"))
		case k.null && s.null():
			return nil
		}
		f.has |= field
		return inKey(key, s.field(field, k, f))
	})
	if err != nil {
		return err
	}
	for _, r := range required {
		if r.field&k.need&^f.has != 0 {
			return &Error{r.name, "is missing"}
		}
	}
	return nil
}

func (s *scanner) field(field fieldSet, k *kind, f *fields) (err error) {
	switch field {
	case fieldID:
		f.id, err = s.string()
	case fieldAwaited:
		f.awaited, err = s.string()
	case fieldAwaiter:
		f.awaiter, err = s.string()
	case fieldAddress:
		f.address, err = s.string()
	case fieldState:
		f.state, err = s.string()
	case fieldPID:
		f.pid, err = s.string()
	case fieldCursor:
		f.cursor, err = s.string()
	case fieldCron:
		f.cron, err = s.string()
	case fieldPromiseID:
		f.promiseID, err = s.string()
	case fieldTimeoutAt:
		f.timeoutAt, err = s.millis(0, MaxTime)
	case fieldTTL:
		f.ttl, err = s.millis(1, MaxTime)
	case fieldVersion:
		f.version, err = s.int(0, MaxVersion)
	case fieldPromiseTimeout:
		f.promiseTimeout, err = s.millis(0, MaxTime)
	case fieldTime:
		f.time, err = s.int(0, MaxTime)
	case fieldLimit:
		f.limit, err = s.int(1, MaxSearch)
	case fieldParam, fieldPromiseParam:
		f.param, err = s.value()
	case fieldValue:
		f.value, err = s.value()
	case fieldTags, fieldPromiseTags:
		f.tags, err = s.pairs(MaxTags)
	case fieldAction:
		f.action, f.actionCorrID, err = s.action(k, f.origin)
	case fieldActions:
		err = s.actions(k, f)
	case fieldTasks:
		err = s.taskRefs(f)
	}
	return err
}

// value reads the parameter or the result of a promise.
func (s *scanner) value() (v Value, err error) {
	const headers, data = 1, 2
	has := 0
	err = s.object(func(key []byte) (err error) {
		switch {
		case string(key) == "headers" && has&headers == 0:
			has |= headers
			if !s.null() {
				v.Headers, err = s.pairs(MaxTags)
			}
		case string(key) == "data" && has&data == 0:
			has |= data
			if !s.null() {
				var text string
				text, err = s.string()
				v.Data = &text
			}
		case string(key) == "headers" || string(key) == "data":
			err = problem("is given twice")
		default:
			return s.skip()
		}
		return inKey(key, err)
	})
	return v, err
}

// pairs reads an object whose values are strings.
func (s *scanner) pairs(most int) (map[string]string, error) {
	pairs := make(map[string]string)
	err := s.object(func(key []byte) error {
		if _, ok := pairs[string(key)]; ok {
			return in(fmt.Sprintf("[%.40q]", key), problem("is given twice"))
		}
		if len(pairs) == most {
			return problem("has more than %d entries", most)
		}
		value, err := s.string()
		if err != nil {
			return in(fmt.Sprintf("[%.40q]", key), err)
		}
		pairs[string(key)] = value
		return nil
	})
	return pairs, err
}

// action reads the request inside a request of kind k.
func (s *scanner) action(k *kind, origin string) (Operation, string, error) {
	e, err := s.envelope()
	if err != nil {
		return nil, "", err
	}
	if e.has&hasKind == 0 {
		return nil, "", &Error{"kind", "is missing"}
	}
	if e.has&hasData == 0 {
		return nil, "", &Error{"data", "is missing"}
	}
	inner, ok := kinds[e.kind]
	if !ok || e.kind != k.action && e.kind != k.orAction {
		return nil, "", &Error{"kind", k.actionProblem()}
	}
	f := fields{origin: origin}
	if e.head.Origin != "" {
		f.origin = e.head.Origin
	}
	after, depth := s.at, s.depth
	s.at, s.depth = e.data, s.depth+1
	if err := s.fields(inner, &f); err != nil {
		return nil, "", in("data", err)
	}
	s.at, s.depth = after, depth
	return inner.build(&f), e.head.CorrID, nil
}

func (s *scanner) actions(k *kind, f *fields) error {
	return s.array(func(i int) error {
		if i == MaxActions {
			return problem("has more than %d elements", MaxActions)
		}
		op, _, err := s.action(k, f.origin)
		if err != nil {
			return in(fmt.Sprintf("[%d]", i), err)
		}
		f.actions = append(f.actions, op.(RegisterCallback))
		return nil
	})
}

func (s *scanner) taskRefs(f *fields) error {
	return s.array(func(i int) error {
		if i == MaxActions {
			return problem("has more than %d elements", MaxActions)
		}
		t, err := s.taskRef()
		if err != nil {
			return in(fmt.Sprintf("[%d]", i), err)
		}
		f.tasks = append(f.tasks, t)
		return nil
	})
}
