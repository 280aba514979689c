package engine

import (
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/store"
)

// refill hands stored unblock messages to connections that are new or had no room, and to
// the pusher. It runs in the committer, so that no message is deleted from the store in
// the meantime.
func (e *Engine) refill() {
	connections := e.hub.takeRefills()
	pushes := e.pusher.wantsRefill()
	if len(connections) == 0 && !pushes {
		return
	}
	err := e.config.Store.View(func(tx store.Tx) error {
		for _, c := range connections {
			if err := e.refillConnection(tx, c); err != nil {
				return err
			}
		}
		if pushes {
			return e.refillPusher(tx)
		}
		return nil
	})
	if err != nil {
		e.fail(err)
	}
}

func (e *Engine) refillConnection(tx store.Tx, c *Connection) error {
	for address, err := range core.UnblockAddresses(tx) {
		if err != nil {
			return err
		}
		if !parse(address).reaches(c.group, c.pid) {
			continue
		}
		for effect, err := range core.Unblocks(tx, address) {
			if err != nil {
				return err
			}
			if !e.hub.offer(c, effect) {
				return nil
			}
		}
	}
	return nil
}

// refillPusher hands stored messages to the pusher, until it has no room.
func (e *Engine) refillPusher(tx store.Tx) error {
	for address, err := range core.UnblockAddresses(tx) {
		if err != nil {
			return err
		}
		if !isPush(address) || !e.pusher.ready(address) {
			continue
		}
		for effect, err := range core.Unblocks(tx, address) {
			if err != nil {
				return err
			}
			if !e.hub.offerPush(effect) {
				break
			}
		}
	}
	return nil
}
