package core

import (
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/wire"
)

func appendSchedule(b []byte, s *protocol.Schedule) []byte {
	b = append(b, recordVersion)
	b = wire.AppendString(b, s.Cron)
	b = wire.AppendString(b, s.PromiseID)
	b = wire.AppendUint(b, uint64(s.PromiseTimeout))
	b = appendValue(b, s.PromiseParam)
	b = appendTexts(b, s.PromiseTags)
	b = wire.AppendUint(b, uint64(s.CreatedAt))
	b = wire.AppendUint(b, uint64(s.NextRunAt))
	if s.LastRunAt == nil {
		return append(b, 0)
	}
	return wire.AppendUint(append(b, 1), uint64(*s.LastRunAt))
}

func decodeSchedule(id string, body []byte) (*protocol.Schedule, string) {
	d := decoder{rest: string(body)}
	if v := d.byte(); v != recordVersion {
		d.fail("the record has an unknown version")
	}
	s := &protocol.Schedule{
		ID: id, Cron: d.text(), PromiseID: d.text(), PromiseTimeout: d.number(), PromiseParam: d.value(),
		PromiseTags: d.texts(), CreatedAt: d.number(), NextRunAt: d.number(),
	}
	if s.PromiseTags == nil {
		s.PromiseTags = map[string]string{}
	}
	switch d.byte() {
	case 0:
	case 1:
		at := d.number()
		s.LastRunAt = &at
	default:
		d.fail("the schedule has neither run nor not run")
	}
	return s, d.end()
}
