package member

import (
	"fmt"
	"strings"
)

// describe prints a message for transcripts.
func describe(payload []byte) string {
	m, err := decodeMessage(payload)
	if err != nil {
		return err.Error()
	}
	text := kindNames[m.kind]
	switch m.kind {
	case kindPing:
		if m.sequence > 0 {
			text += fmt.Sprintf(" %d", m.sequence)
		}
	case kindAck, kindNack, kindLeave:
		text += fmt.Sprintf(" %d", m.sequence)
	case kindPingRequest:
		text += fmt.Sprintf(" %d for %s within %v", m.sequence, m.target, m.within)
	case kindSync:
		if m.want {
			text += " wanted"
		}
	}
	if m.knownBoot > 0 && m.knownStatus != statusAlive {
		text += fmt.Sprintf(", you are %v/%d", m.knownStatus, m.knownIncarnation)
	}
	if m.cutOff {
		text += ", cut off"
	}
	var claims []string
	for _, r := range m.records {
		claims = append(claims, r.String())
	}
	if len(claims) > 0 {
		text += ": " + strings.Join(claims, ", ")
	}
	return text
}

func (r *record) String() string {
	text := fmt.Sprintf("%s %v/%d", r.name, r.status, r.incarnation)
	if r.status == statusSuspect {
		text += fmt.Sprintf(" by %d", len(r.accusers))
	}
	return text
}

func (s status) String() string {
	return [...]string{"alive", "suspect", "dead", "left"}[s]
}

func describeEvent(e Event) string {
	switch e.Kind {
	case EventFenced, EventUnfenced, EventReplaced:
		return e.Kind.String()
	}
	return e.Member.Name + " " + e.Kind.String()
}
