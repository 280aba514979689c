// Package upgradeolder is a program that package upgradenewer takes the place of.
package upgradeolder

// Accounts is what all have.
type Accounts struct {
	Cents map[string]int64
}

// Transfer adds to an account.
type Transfer struct {
	To    string
	Cents int64
}

// Update returns what the account has.
func (t *Transfer) Update(a *Accounts) (int64, error) {
	if a.Cents == nil {
		a.Cents = make(map[string]int64)
	}
	a.Cents[t.To] += t.Cents
	return a.Cents[t.To], nil
}
