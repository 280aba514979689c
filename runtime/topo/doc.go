// Package topo has the names that handlers use: the results of Ping, the errors of
// sends, and the values that constructors and timers pass to a processor.
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
