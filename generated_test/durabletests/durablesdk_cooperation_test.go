package durabletests_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestDurableSDKTwoLanguages runs one workflow in TypeScript and in Go: order in TypeScript calls
// payment in Go, which calls receipt in TypeScript. Both workers are killed while a step
// of payment runs. Their successors repeat this step and no other, and errors have
// arrived in both directions.
func TestDurableSDKTwoLanguages(t *testing.T) {
	t.Parallel()
	b := prepare(t, "")
	e := b.effects()
	payment := filepath.Join(t.TempDir(), "payment")
	if out, err := exec.Command("go", "build", "-o", payment, "../durablesdk/payment").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	inGo := func(variables ...string) *sdkProcess {
		cmd := exec.Command(payment)
		cmd.Env = append(os.Environ(), "RESONATE_URL=http://"+b.address, "EFFECTS="+e.path)
		cmd.Env = append(cmd.Env, variables...)
		return sdkStart(t, cmd)
	}
	inTypeScript := func() *sdkProcess { return b.node([]string{lease, "EFFECTS=" + e.path}, "worker.ts") }

	waits := b.begin("workers", "order-1", "order", `"tea"`)
	workers := []*sdkProcess{inGo("HANG=charge"), inTypeScript()}
	const interrupted = "reserve tea\ncharge 3 for tea\n"
	b.await("charge runs", func() bool { return e.text() == interrupted })
	for _, w := range workers {
		w.kill()
	}
	inGo()
	inTypeScript()
	waits.want("done: false\n" +
		`result: "paid 3, receipt tea/1 (without an item: nothing was bought), refused with RefusedError: the amount is -1"` + "\n")
	if got, want := e.text(), interrupted+"charge 3 for tea\nreceipt for tea\n"; got != want {
		t.Errorf("the effects are\n%s\nwant\n%s", got, want)
	}
}
