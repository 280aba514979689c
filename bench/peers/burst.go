package peers

import "sync"

// burstItem has 64 bytes.
type burstItem struct{ _ [8]int }

// ChannelBurst starts a goroutine with a channel for each of the nodes, sends each of them the
// same number of items, and ends them.
func ChannelBurst(nodes, each int) {
	var running sync.WaitGroup
	list := make([]chan burstItem, nodes)
	for i := range list {
		list[i] = make(chan burstItem, each)
		running.Go(func() {
			for range list[i] {
			}
		})
	}
	for _, c := range list {
		for range each {
			c <- burstItem{}
		}
		close(c)
	}
	running.Wait()
}
