package protocol

import (
	"strconv"
	"unicode/utf8"
)

// AppendMessage appends a message: JSON without a line break. A serverURL that is not
// empty tells the receiver where to send requests. A receiver behind an http address may
// not know it.
func AppendMessage(dst []byte, m *Message, serverURL string) []byte {
	if m.Execute != nil {
		dst = append(dst, `{"kind":"execute","head":{`...)
	} else {
		dst = append(dst, `{"kind":"unblock","head":{`...)
	}
	if serverURL != "" {
		dst = appendString(append(dst, `"serverUrl":`...), serverURL)
	}
	dst = append(dst, `},"data":{`...)
	switch {
	case m.Execute != nil:
		dst = appendString(append(dst, `"task":{"id":`...), m.Execute.ID)
		dst = strconv.AppendInt(append(dst, `,"version":`...), m.Execute.Version, 10)
		dst = append(dst, '}')
	case m.Unblock != nil:
		dst = appendPromise(append(dst, `"promise":`...), m.Unblock)
	}
	return append(dst, "}}"...)
}

// DecodeMessage decodes a message. An error is an [*Error].
func DecodeMessage(text []byte) (Message, error) {
	if !utf8.Valid(text) {
		return Message{}, problem("the message is not valid UTF-8")
	}
	s := scanner{text: text}
	m, err := s.message()
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return Message{}, top("the message", err)
	}
	return m, nil
}

func (s *scanner) message() (m Message, err error) {
	e, err := s.envelope()
	switch {
	case err != nil:
		return m, err
	case e.has&hasKind == 0:
		return m, &Error{"kind", "is missing"}
	case e.kind != "execute" && e.kind != "unblock":
		return m, &Error{"kind", "must be execute or unblock"}
	case e.has&hasData == 0:
		return m, &Error{"data", "is missing"}
	}
	after, depth := s.at, s.depth
	s.at, s.depth = e.data, s.depth+1
	err = s.object(func(key []byte) error {
		switch {
		case e.kind == "execute" && string(key) == "task":
			t, err := s.taskRef()
			m.Execute = &t
			return in("task", err)
		case e.kind == "unblock" && string(key) == "promise":
			p, err := s.promise()
			m.Unblock = &p
			return in("promise", err)
		}
		return s.skip()
	})
	if err == nil && m.Execute == nil && m.Unblock == nil {
		err = problem("has neither a task nor a promise")
	}
	s.at, s.depth = after, depth
	return m, in("data", err)
}

func (s *scanner) taskRef() (TaskRef, error) {
	var f fields
	err := s.fields(&taskRef, &f)
	return TaskRef{ID: f.id, Version: f.version}, err
}
