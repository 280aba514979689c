package stateunfitforlog

import (
	"sync"

	"github.com/topogen/topogen/runtime/topo"
)

type Accounts struct {
	Cents map[string]int
	lock  sync.Mutex
	done  chan struct{}
	cache map[string]int `topo:"-"`
}

type Transfer struct {
	Cents int
	Then  func()
}

func (*Transfer) Update(*Accounts) error { return nil }
func (*Transfer) Revert(*Accounts) error { return nil }

type Other struct{ Any any }

func (*Other) Update(*Accounts) error { return nil }
func (*Other) Revert(*Accounts) error { return nil }

type Bank struct{}

func (Bank) ReceiveTick(topo.Tick) {}
