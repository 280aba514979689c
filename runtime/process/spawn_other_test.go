//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package process

import (
	"errors"
	"testing"
)

func TestUnsupported(t *testing.T) {
	TakeOver("test", "hash", nil)
	s := Settings{Info: Info{Topology: "test", Hash: "hash", Processor: "camera", Instances: 1}}
	if _, err := Start(t.Context(), s); !errors.Is(err, ErrUnsupported) {
		t.Errorf("%v", err)
	}
}
