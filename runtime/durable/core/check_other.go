package core

import "github.com/topogen/topogen/runtime/durable/protocol"

func (c *checker) scheduleEntry(key, body []byte) {
	id := string(key)
	s, bad := decodeSchedule(id, body)
	if bad == "" {
		_, bad = parseCron(s.Cron)
	}
	if bad != "" {
		panic(corrupt(Schedules, key, "%s", bad))
	}
	c.check(c.has(ScheduleTimes, timeKey(nil, s.NextRunAt, id)), "schedule_unindexed", id, "has no entry for its next occurrence %d", s.NextRunAt)
	c.check(s.CreatedAt <= s.NextRunAt, "well_formed_schedule_created_at_lte_next_run_at", id, "was created at %d, and its next occurrence is %d", s.CreatedAt, s.NextRunAt)
	if s.LastRunAt != nil {
		c.check(s.CreatedAt <= *s.LastRunAt, "well_formed_schedule_created_at_lte_last_run_at", id, "was created at %d, and its last occurrence was %d", s.CreatedAt, *s.LastRunAt)
		c.check(*s.LastRunAt < s.NextRunAt, "well_formed_schedule_last_run_at_lt_next_run_at", id, "occurred at %d, and its next occurrence is %d", *s.LastRunAt, s.NextRunAt)
	}
}

func (c *checker) scheduleTime(key, _ []byte) {
	e := c.time(ScheduleTimes, key)
	s := c.schedule(e.id)
	c.check(s != nil && s.NextRunAt == e.at, "stale_schedule_time", e.id, "has an entry at %d that does not belong to it", e.at)
}

func (c *checker) message(key, body []byte) {
	address, _ := c.pair(Outbox, key)
	u := readUndelivered(key, body)
	sequence, rest, ok := splitTime(key[len(address)+1:])
	if !ok || len(rest) > 0 {
		panic(corrupt(Outbox, key, "the key has no sequence number"))
	}
	c.messages[address]++
	p, ok := c.promiseHead(u.promise)
	c.check(ok && p.state != pending, "consistent_outbox_unblock_names_settled_promise", u.promise, "has a message for %s but is not settled", quote(protocol.Redacted(address)))
	c.check(badAddress("", address) == "", "consistent_outbox_unblock_address_deliverable", u.promise, "has a message for %s", quote(protocol.Redacted(address)))
	c.check(c.has(OutboxAges, timeKey(nil, u.expiry, address)), "message_without_expiry", protocol.Redacted(address), "has a message that would be kept for ever")
	size := c.outboxSize(address)
	c.check(sequence < size.next && u.expiry <= size.expiry, "outbox_size_mismatch", protocol.Redacted(address), "has a message with the number %d, and %d is the next", sequence, size.next)
}

func (c *checker) outboxSizeEntry(key, _ []byte) {
	address := string(key)
	size := c.outboxSize(address)
	c.check(size.count == c.messages[address], "outbox_size_mismatch", protocol.Redacted(address), "has %d messages, and %d are counted", c.messages[address], size.count)
	delete(c.messages, address)
	c.check(c.has(OutboxAges, timeKey(nil, size.expiry, address)), "message_without_expiry", protocol.Redacted(address), "has a count that would be kept for ever")
}

func (c *checker) outboxAge(key, _ []byte) {
	e := c.time(OutboxAges, key)
	size := c.outboxSize(e.id)
	c.check(size.expiry >= e.at, "stale_outbox_age", protocol.Redacted(e.id), "has an expiry at %d but no message that needs it", e.at)
}

// uncounted checks that all addresses with messages have a count.
func (c *checker) uncounted() {
	for address, n := range c.messages {
		c.check(false, "outbox_size_mismatch", protocol.Redacted(address), "has %d messages, and they are not counted", n)
	}
}
