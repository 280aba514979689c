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

// refillConnection hands stored messages to a connection, until it has no room.
func (e *Engine) refillConnection(tx store.Tx, c *Connection) error {
	group := "poll://any@" + c.group
	for _, address := range [...]string{"poll://uni@" + c.group + "/" + c.pid, group} {
		if room, err := e.offerAll(tx, address, c.offer); err != nil || !room {
			return err
		}
	}
	for address, err := range core.UnblockAddresses(tx, group+"/") {
		if err != nil {
			return err
		}
		if room, err := e.offerAll(tx, address, c.offer); err != nil || !room {
			return err
		}
	}
	return nil
}

// offerAll offers the stored messages of an address. It reports false if one was refused.
func (e *Engine) offerAll(tx store.Tx, address string, offer func(core.Effect) bool) (bool, error) {
	for effect, err := range core.Unblocks(tx, address) {
		if err != nil || !offer(effect) {
			return false, err
		}
	}
	return true, nil
}

// refillPusher hands stored messages to the pusher. An address that is full or fails does
// not hold up the others.
func (e *Engine) refillPusher(tx store.Tx) error {
	for address, err := range core.UnblockAddresses(tx, "http") {
		if err != nil {
			return err
		}
		if !isPush(address) || !e.pusher.ready(address) {
			continue
		}
		if _, err := e.offerAll(tx, address, e.hub.offerPush); err != nil {
			return err
		}
	}
	return nil
}
