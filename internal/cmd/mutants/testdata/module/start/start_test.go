package start

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if !ready {
		fmt.Println("not ready")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestReady(t *testing.T) {
	if !ready {
		t.Error("not ready")
	}
}
