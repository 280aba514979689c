package nameclashprocess

import (
	"context"
	"errors"
	"fmt"
)

// Run sends messages along all edges until the topology ends. It returns what arrived at
// info and at outside. It is here because other packages cannot name the types of the messages.
func Run(ctx context.Context) (atInfo []string, atOutside int, err error) {
	top, err := New(Processors{})
	if err != nil {
		return nil, 0, err
	}
	asked := make(chan error, 1)
	go func() {
		defer top.Handler().Close()
		k, err := top.Handler().AskEdge(ctx, edge{"a"})
		if err == nil && k.Kind != "a" {
			err = fmt.Errorf("the answer is %+v", k)
		}
		_, failed := top.Handler().AskKind(ctx, Kind{1})
		asked <- errors.Join(err, failed)
	}()
	err = top.Run(ctx)
	return top.Info(0).got, top.Outside(0).got, errors.Join(err, <-asked)
}
