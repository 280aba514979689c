// Package siege measures what others still get from a server while an attacker does his worst.
//
// # Usage
//
//	func TestMain(m *testing.M) {
//		child.Run(map[string]func() error{"server": runServer})
//		os.Exit(m.Run())
//	}
//
//	func TestSieges(t *testing.T) {
//		siege.Cells(t, "metrics", map[string]func(*testing.T, siege.Cell){
//			"connections/stranger": func(t *testing.T, c siege.Cell) {
//				c.Figures(t, siege.Count(64))
//				server := siege.Start(t, "server", "TOKEN=secret") // runServer calls siege.Ready(address)
//				siege.Run(t, siege.Siege{
//					Server:    server,
//					Victims:   []siege.Victim{{Name: "clients", Call: get(server.Addresses[0])}},
//					Attackers: 4, Attack: connect(server.Addresses[0]),
//					MemoryMax: 4 << 20,
//				})
//			},
//		})
//	}
//
// # Guarantees
//
// Victims make their calls at a constant rate, whether earlier calls have been answered or not. A
// call counts as served if it ends without an error within its deadline. The attack goes on until
// the last call has ended. A siege fails if less than 90 % of the calls are served, without the
// attack and with it, or if the memory of the server grows beyond the limit.
//
// The cells are those of the table of budgets in SECURITY.md: [Cells] fails for a cell without a test
// and for a test without a cell, and [Cell.Figures] compares each number of a cell with a
// constant of the code.
//
// # Limits
//
// A server must be a child process, so that its memory and its processor time do not contain those of
// the attacker. Both come from /proc, so sieges need Linux.
package siege
