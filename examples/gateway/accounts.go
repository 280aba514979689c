package main

// Accounts keeps the accounts whose keys are routed to it, in memory and in a
// journal. Other instances keep other accounts; one goroutine is in each of them at
// any time, so there is nothing to lock.
type Accounts struct {
	balances map[string]int64
	journal  journal
}

// journal is where deposits are written before they are answered.
type journal interface {
	Append(Deposit) error
	Close() error
}

// OpenAccounts returns the accounts that the journal file at path holds, which it
// makes if there is none.
func OpenAccounts(path string, sync bool) (*Accounts, error) {
	balances := make(map[string]int64)
	file, err := openFile(path, sync, func(d Deposit) { balances[d.Account] += d.Amount })
	if err != nil {
		return nil, err
	}
	return &Accounts{balances, file}, nil
}

// ReceiveDeposit writes, then books, then answers. It may wait for the disk, since
// the topology says `blocking: true`. Its error would end the whole topology: with
// a journal that cannot be written nothing should go on.
func (a *Accounts) ReceiveDeposit(m Deposit, out *AccountsSender) (Balance, error) {
	if err := a.journal.Append(m); err != nil {
		return Balance{}, err
	}
	a.balances[m.Account] += m.Amount
	out.SendBooked(Booked{m.Amount})
	return a.balance(m.Account), nil
}

// ReceiveLookup answers from memory. That an account is unknown is an answer, not
// an error.
func (a *Accounts) ReceiveLookup(m Lookup) Balance { return a.balance(m.Account) }

// Close is called when everything has ended.
func (a *Accounts) Close() error { return a.journal.Close() }

func (a *Accounts) balance(account string) Balance {
	amount, known := a.balances[account]
	return Balance{account, amount, known}
}
