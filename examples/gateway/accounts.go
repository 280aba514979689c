package main

// Accounts keeps the accounts whose keys are routed to it, in memory and in a journal.
// Other instances keep other accounts. Only one goroutine runs an instance at any time,
// so no locks are needed.
type Accounts struct {
	balances map[string]int64
	journal  journal
}

// journal stores deposits before they are answered.
type journal interface {
	Append(Deposit) error
	Close() error
}

// OpenAccounts returns the accounts in the journal file at path. It creates the file if
// it does not exist.
func OpenAccounts(path string, sync bool) (*Accounts, error) {
	balances := make(map[string]int64)
	file, err := openFile(path, sync, func(d Deposit) { balances[d.Account] += d.Amount })
	if err != nil {
		return nil, err
	}
	return &Accounts{balances, file}, nil
}

// ReceiveDeposit writes the deposit, then books it, then replies. It may wait for the
// disk, because the topology says `blocking: true`. If it returns an error, the whole
// topology ends: without a journal nothing should continue.
func (a *Accounts) ReceiveDeposit(m Deposit, out *AccountsSender) (Balance, error) {
	if err := a.journal.Append(m); err != nil {
		return Balance{}, err
	}
	a.balances[m.Account] += m.Amount
	out.SendBooked(Booked{m.Amount})
	return a.balance(m.Account), nil
}

// ReceiveLookup replies from memory. An unknown account is a reply, not an error.
func (a *Accounts) ReceiveLookup(m Lookup) Balance { return a.balance(m.Account) }

// Close is called when the topology has ended.
func (a *Accounts) Close() error { return a.journal.Close() }

func (a *Accounts) balance(account string) Balance {
	amount, known := a.balances[account]
	return Balance{account, amount, known}
}
