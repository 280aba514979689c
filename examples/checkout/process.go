package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// process is a process of the demonstration that is killed and started again.
type process struct {
	name    string
	args    []string
	environ []string
	log     string // a file

	mu      sync.Mutex
	command *exec.Cmd
	stdin   io.Closer
	exited  chan struct{}
}

func newProcess(dir, name string, environ []string, args ...string) *process {
	return &process{name: name, args: args, environ: environ, log: filepath.Join(dir, name+".log")}
}

// start starts the process.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own copy
	c := exec.Command(executable, p.args...)
	c.Env = append(os.Environ(), p.environ...)
	c.Stdout, c.Stderr = log, log
	if p.stdin, err = c.StdinPipe(); err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.command, p.exited = c, make(chan struct{})
	go func(exited chan struct{}) {
		_ = c.Wait() // a killed process ends with an error
		close(exited)
	}(p.exited)
	return nil
}

// kill kills the process with SIGKILL, and waits for its end. It returns an error if the process
// has ended by itself, with its log.
func (p *process) kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.exited:
		text, _ := os.ReadFile(p.log)
		return fmt.Errorf("%s has ended by itself; its log:\n%s", p.name, text[max(0, len(text)-logTail):])
	default:
	}
	err := p.command.Process.Kill()
	<-p.exited // Wait has closed stdin
	return err
}

const logTail = 4 << 10
