package protocol

import "unicode/utf8"

// A Request is a request as a server receives it. Op is nil if the request was refused.
// Kind and Head contain everything that could be read, so that a response to a refused
// request can repeat its kind and corrId.
type Request struct {
	Kind string
	Head Head
	Op   Operation
	// ActionCorrID is the corrId of the action of a task.fence. The response to the
	// action repeats it.
	ActionCorrID string
}

// A Head is the head of a request.
type Head struct {
	CorrID  string // the response repeats it
	Version string // of the protocol; [Version] in a request that was not refused
	Auth    string // a token, or ""
	Origin  string // of a promise that the request creates, or "" if its id says it
	// DebugTime is the time of the request in milliseconds since 1970, if the server is in
	// debug mode, or nil.
	DebugTime *int64
}

// DecodeRequest decodes and checks a request. An error is an [*Error]; the response is
// then status 400 with the text of the error. The strings of the request do not share
// memory with text.
//
// Fields that the protocol does not have are ignored. A field of the protocol, a tag or a
// header that is given twice is refused, because programs differ in which one they use.
// An optional field may be null. The fields param, value and tags may be absent, but not
// null.
func DecodeRequest(text []byte) (Request, error) {
	var r Request
	if !utf8.Valid(text) {
		return r, problem("the request is not valid UTF-8")
	}
	s := scanner{text: text}
	e, err := s.envelope()
	if err == nil {
		err = s.end()
	}
	r.Kind, r.Head = e.kind, e.head
	if err != nil {
		return r, top("the request", err)
	}
	if err := e.check(); err != nil {
		return r, err
	}
	if r.Head.Version != Version {
		return r, &Error{"head.version", "must be " + Version}
	}
	k, ok := kinds[r.Kind]
	if !ok {
		return r, problem("kind %q does not exist", r.Kind)
	}
	s.at, s.depth = e.data, 1
	f := fields{origin: r.Head.Origin}
	if err := s.fields(k, &f); err != nil {
		return r, top("the request", in("data", err))
	}
	op := k.build(&f)
	if err := Check(op); err != nil {
		return r, in("data", err)
	}
	r.Op, r.ActionCorrID = op, f.actionCorrID
	return r, nil
}

// top completes an error of a whole text.
func top(text string, err error) error {
	switch e := err.(type) {
	case syntaxError:
		return problem("%s is not JSON at byte %d", text, e.at)
	case *Error:
		if e.Field == "" {
			return &Error{text, e.Problem}
		}
	}
	return err
}

// An envelope is what requests, their actions, responses and messages have in common: a
// kind, a head and data.
type envelope struct {
	kind   string
	head   Head
	status int64 // in the head of a response
	data   int   // where the data begins
	has    partSet
}

// A partSet is a set of the parts of an envelope.
type partSet uint16

const (
	hasKind partSet = 1 << iota
	hasHead
	hasData
	hasCorrID
	hasVersion
	hasAuth
	hasOrigin
	hasDebugTime
	hasStatus
)

// envelope reads an envelope and finds its data. It reads on after a value of a wrong
// type, so that it finds the kind and the corrId after it.
func (s *scanner) envelope() (e envelope, err error) {
	var first error
	err = s.object(func(key []byte) error {
		return s.tolerate(&first, func() error { return s.part(key, &e) })
	})
	if err == nil {
		err = first
	}
	return e, err
}

// tolerate reads a value. If the value is wrong, but JSON, it skips the value and keeps
// the first such error.
func (s *scanner) tolerate(first *error, read func() error) error {
	at, depth := s.at, s.depth
	err := read()
	if _, broken := err.(syntaxError); broken || err == nil {
		return err
	}
	if *first == nil {
		*first = err
	}
	s.at, s.depth = at, depth
	return s.skip()
}

func (s *scanner) part(key []byte, e *envelope) (err error) {
	switch string(key) {
	case "kind":
		err = s.short(&e.kind, MaxKind)
		return in("kind", e.once(hasKind, err))
	case "head":
		var first error
		err = s.object(func(key []byte) error {
			return s.tolerate(&first, func() error { return s.headPart(key, e) })
		})
		if err == nil {
			err = first
		}
		return in("head", e.once(hasHead, err))
	case "data":
		s.peek()
		at := s.at
		if err = e.once(hasData, s.skip()); err == nil {
			e.data = at
		}
		return in("data", err)
	}
	return s.skip()
}

func (s *scanner) headPart(key []byte, e *envelope) error {
	h := &e.head
	switch string(key) {
	case "corrId":
		return in("corrId", e.once(hasCorrID, s.short(&h.CorrID, MaxCorrID)))
	case "version":
		return in("version", e.once(hasVersion, s.short(&h.Version, MaxKind)))
	case "auth":
		if s.null() {
			return nil
		}
		return in("auth", e.once(hasAuth, s.short(&h.Auth, MaxToken)))
	case "resonate:origin":
		if s.null() {
			return nil
		}
		return in("resonate:origin", e.once(hasOrigin, s.short(&h.Origin, MaxID)))
	case "resonate:debug_time":
		if s.null() {
			return nil
		}
		t, err := s.int(0, MaxTime)
		h.DebugTime = &t
		return in("resonate:debug_time", e.once(hasDebugTime, err))
	case "status":
		var err error
		e.status, err = s.int(0, 999)
		return in("status", e.once(hasStatus, err))
	}
	return s.skip()
}

// short reads a string of at most max bytes. It keeps the first one if there are two.
func (s *scanner) short(to *string, max int) error {
	text, err := s.string()
	if err == nil && len(text) > max {
		err = problem("is longer than %d bytes", max)
	}
	if err == nil && *to == "" {
		*to = text
	}
	return err
}

// once notes that a part was read.
func (e *envelope) once(part partSet, err error) error {
	if err == nil && e.has&part != 0 {
		err = problem("is given twice")
	}
	e.has |= part
	return err
}

// check checks that the fields that a request must have are there, in the order of the
// guards of the protocol.
func (e *envelope) check() error {
	switch {
	case e.has&hasKind == 0:
		return &Error{"kind", "is missing"}
	case e.kind == "":
		return &Error{"kind", "is empty"}
	case e.has&hasData == 0:
		return &Error{"data", "is missing"}
	case e.has&hasHead == 0:
		return &Error{"head", "is missing"}
	case e.has&hasCorrID == 0:
		return &Error{"head.corrId", "is missing"}
	case e.has&hasVersion == 0:
		return &Error{"head.version", "is missing"}
	}
	return nil
}
