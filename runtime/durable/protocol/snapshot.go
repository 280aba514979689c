package protocol

import "strconv"

func appendSnapshot(dst []byte, s *Snapshot) []byte {
	var o object
	dst = append(dst, '{')
	dst = appendList(o.key(dst, "promises"), s.Promises, appendPromise)
	dst = appendList(o.key(dst, "promiseTimeouts"), s.PromiseTimeouts, func(dst []byte, t *PromiseTimeout) []byte {
		dst = appendString(append(dst, `{"id":`...), t.ID)
		dst = strconv.AppendInt(append(dst, `,"timeout":`...), t.Timeout, 10)
		return append(dst, '}')
	})
	dst = appendList(o.key(dst, "callbacks"), s.Callbacks, func(dst []byte, c *RegisterCallback) []byte {
		dst = appendString(append(dst, `{"awaited":`...), c.Awaited)
		dst = appendString(append(dst, `,"awaiter":`...), c.Awaiter)
		return append(dst, '}')
	})
	dst = appendList(o.key(dst, "listeners"), s.Listeners, func(dst []byte, l *Listener) []byte {
		dst = appendString(append(dst, `{"id":`...), l.ID)
		dst = appendString(append(dst, `,"address":`...), l.Address)
		return append(dst, '}')
	})
	dst = appendList(o.key(dst, "tasks"), s.Tasks, appendTask)
	dst = appendList(o.key(dst, "taskTimeouts"), s.TaskTimeouts, func(dst []byte, t *TaskTimeout) []byte {
		dst = appendString(append(dst, `{"id":`...), t.ID)
		dst = strconv.AppendInt(append(dst, `,"type":`...), int64(t.Type), 10)
		dst = strconv.AppendInt(append(dst, `,"timeout":`...), t.Timeout, 10)
		return append(dst, '}')
	})
	dst = appendList(o.key(dst, "messages"), s.Messages, func(dst []byte, e *Envelope) []byte {
		dst = appendString(append(dst, `{"address":`...), e.Address)
		dst = AppendMessage(append(dst, `,"message":`...), &e.Message, "")
		return append(dst, '}')
	})
	return append(dst, '}')
}

func (s *scanner) snapshot() (snap Snapshot, err error) {
	err = s.object(func(key []byte) (err error) {
		switch string(key) {
		case "promises":
			snap.Promises, err = list(s, s.promise)
		case "promiseTimeouts":
			snap.PromiseTimeouts, err = list(s, s.promiseTimeout)
		case "callbacks":
			snap.Callbacks, err = list(s, s.callback)
		case "listeners":
			snap.Listeners, err = list(s, s.listener)
		case "tasks":
			snap.Tasks, err = list(s, s.task)
		case "taskTimeouts":
			snap.TaskTimeouts, err = list(s, s.taskTimeout)
		case "messages":
			snap.Messages, err = list(s, s.addressed)
		default:
			return s.skip()
		}
		return inKey(key, err)
	})
	return snap, err
}

func (s *scanner) promiseTimeout() (t PromiseTimeout, err error) {
	f, err := s.timeoutFields()
	return PromiseTimeout{ID: f.ID, Timeout: f.Timeout}, err
}

func (s *scanner) taskTimeout() (TaskTimeout, error) { return s.timeoutFields() }

func (s *scanner) timeoutFields() (t TaskTimeout, err error) {
	err = s.object(func(key []byte) (err error) {
		switch string(key) {
		case "id":
			t.ID, err = s.string()
		case "type":
			var n int64
			n, err = s.int(0, 1)
			t.Type = int(n)
		case "timeout":
			t.Timeout, err = s.anyTime()
		default:
			return s.skip()
		}
		return inKey(key, err)
	})
	return t, err
}

func (s *scanner) callback() (RegisterCallback, error) {
	var f fields
	err := s.fields(kinds["promise.register_callback"], &f)
	return RegisterCallback{Awaited: f.awaited, Awaiter: f.awaiter}, err
}

func (s *scanner) listener() (l Listener, err error) {
	err = s.object(func(key []byte) (err error) {
		switch string(key) {
		case "id":
			l.ID, err = s.string()
		case "address":
			l.Address, err = s.string()
		default:
			return s.skip()
		}
		return inKey(key, err)
	})
	return l, err
}

// addressed reads a message with its address.
func (s *scanner) addressed() (e Envelope, err error) {
	err = s.object(func(key []byte) (err error) {
		switch string(key) {
		case "address":
			e.Address, err = s.string()
		case "message":
			e.Message, err = s.message()
		default:
			return s.skip()
		}
		return inKey(key, err)
	})
	return e, err
}
