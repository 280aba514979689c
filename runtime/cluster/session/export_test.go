package session

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
)

// Describe returns a frame as text.
func Describe(frame []byte) string {
	switch frame[0] {
	case kindHello:
		h, err := parseHello(frame)
		if err != nil {
			return err.Error()
		}
		s := fmt.Sprintf("hello of %d to %d", h.from, h.to)
		if h.echo != 0 {
			s += " with its nonce"
		}
		if h.accepted {
			s += ", accepted"
		}
		if h.knows {
			s += ", knows"
		}
		return s
	case kindRefusal:
		r, err := parseRefusal(frame)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("refusal of %d: %v: %s", r.to, r.reason, r.text)
	}
	var h header
	body, err := parseHeader(frame, &h)
	if err != nil {
		return err.Error()
	}
	var parts []string
	if h.hasData {
		parts = append(parts, fmt.Sprintf("data %d: %s", h.number, describeItems(body)))
	}
	if h.hasAck {
		s := fmt.Sprintf("ack %d", h.ack.last)
		n := 0
		for _, b := range h.ack.bitmap {
			n += bits.OnesCount8(b)
		}
		if n > 0 {
			s += fmt.Sprintf(" and %d more", n)
		}
		parts = append(parts, s)
	}
	if h.ackNow {
		parts = append(parts, "answer at once")
	}
	return fmt.Sprintf("%d to %d, %s", h.from, h.to, strings.Join(parts, ", "))
}

func describeItems(body []byte) string {
	var parts []string
	for len(body) > 0 {
		head, n := binary.Uvarint(body)
		body = body[n:]
		number := int(head >> 2)
		switch head & 3 {
		case itemLane:
			s := fmt.Sprintf("slot %d", number>>1)
			if number&itemAnnounce != 0 {
				s += fmt.Sprintf(" is lane %d", binary.LittleEndian.Uint64(body))
				body = body[8:]
			}
			parts = append(parts, s)
		case itemWhole:
			parts = append(parts, fmt.Sprintf("%d bytes", number))
			body = body[number:]
		case itemFirst:
			size, n := binary.Uvarint(body)
			parts = append(parts, fmt.Sprintf("first %d of %d bytes", number, size))
			body = body[n+number:]
		case itemNext:
			parts = append(parts, fmt.Sprintf("next %d bytes", number))
			body = body[number:]
		}
	}
	return strings.Join(parts, "; ")
}
