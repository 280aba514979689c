// Package topo holds the few names that handlers touch: what Ping returns, what
// a send returns, and the values that constructors and timers hand over.
//
//	func (f *Feed) Ping(out *FeedSender) error {
//		line, ok := f.next()
//		if !ok {
//			return topo.Done
//		}
//		out.SendRaw(Raw(line))
//		return nil
//	}
package topo
