// Package upgradeolder is an older program; package upgradenewer is its newer version.
package upgradeolder

// Accounts has the balances.
type Accounts struct {
	Cents map[string]int64
}

// Transfer adds to an account.
type Transfer struct {
	To    string
	Cents int64
}

// Update returns the balance of the account.
func (t *Transfer) Update(a *Accounts) (int64, error) {
	if a.Cents == nil {
		a.Cents = make(map[string]int64)
	}
	a.Cents[t.To] += t.Cents
	return a.Cents[t.To], nil
}
