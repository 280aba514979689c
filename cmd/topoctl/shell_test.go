package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/topogen/topogen/cmd/topoctl/internal/cli"
)

// shell is a process that runs the commands of a script one after the other. The scripts
// have 450 commands, and most of them take less time than a process needs to start.
type shell struct {
	in  *json.Encoder
	out *json.Decoder
}

type shellCommand struct {
	Dir  string
	Env  map[string]string
	Args []string
}

type shellResult struct {
	Code     int
	Out, Err []byte
}

// shellVariables are the environment variables that topoctl reads.
var shellVariables = []string{"RESONATE_URL", "RESONATE_TOKEN", "RESONATE_DEBUG", "TOPOGEN_REPLAY"}

func init() { commands["shell"] = runShell }

func runShell() {
	in, out := json.NewDecoder(os.NewFile(3, "commands")), json.NewEncoder(os.NewFile(4, "results"))
	for {
		var c shellCommand
		if in.Decode(&c) != nil {
			return // the script has ended
		}
		if err := os.Chdir(c.Dir); err != nil {
			panic(err)
		}
		for name, value := range c.Env {
			_ = os.Setenv(name, value) // fails for no valid name
		}
		var stdout, stderr bytes.Buffer
		code := cli.Run(context.Background(), c.Args, cli.Streams{Out: &stdout, Err: &stderr})
		if err := out.Encode(shellResult{code, stdout.Bytes(), stderr.Bytes()}); err != nil {
			return
		}
	}
}

type shellKey struct{}

// startShell starts the shell of a script, which ends with the script.
func startShell(e *testscript.Env) error {
	commandsOut, commandsIn, err := os.Pipe()
	if err != nil {
		return err
	}
	resultsOut, resultsIn, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command("shell")
	cmd.Env, cmd.Stderr, cmd.ExtraFiles = e.Vars, os.Stderr, []*os.File{commandsOut, resultsIn}
	if err := cmd.Start(); err != nil {
		return err
	}
	e.Defer(func() {
		_ = commandsIn.Close()
		_ = cmd.Wait()
		_ = resultsOut.Close()
	})
	_ = commandsOut.Close()
	_ = resultsIn.Close()
	e.Values[shellKey{}] = &shell{json.NewEncoder(commandsIn), json.NewDecoder(resultsOut)}
	return nil
}

// run runs a command as the script would, and returns its exit code.
func (s *shell) run(ts *testscript.TestScript, args []string) int {
	c := shellCommand{Dir: ts.MkAbs("."), Env: map[string]string{}, Args: args}
	for _, name := range shellVariables {
		c.Env[name] = ts.Getenv(name)
	}
	ts.Check(s.in.Encode(c))
	var r shellResult
	ts.Check(s.out.Decode(&r))
	_, _ = ts.Stdout().Write(r.Out) // a strings.Builder
	_, _ = ts.Stderr().Write(r.Err)
	return r.Code
}
