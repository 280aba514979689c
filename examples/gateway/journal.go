package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// fileJournal is a journal with one line for each deposit: the quoted account and the
// amount.
type fileJournal struct {
	file *os.File
	sync bool // wait for the disk after each deposit
}

// openFile opens or creates a journal and calls replay for each deposit in it. An
// incomplete last line is removed: the program ended while it wrote the line, so it never
// answered the deposit.
func openFile(path string, sync bool, replay func(Deposit)) (_ *fileJournal, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	whole := int64(0) // bytes of complete lines
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		var d Deposit
		if _, err := fmt.Sscanf(line, "%q %d\n", &d.Account, &d.Amount); err != nil {
			return nil, fmt.Errorf("%s: the line at byte %d: %w", path, whole, err)
		}
		replay(d)
		whole += int64(len(line))
	}
	if err := file.Truncate(whole); err != nil {
		return nil, err
	}
	if _, err := file.Seek(whole, io.SeekStart); err != nil {
		return nil, err
	}
	return &fileJournal{file, sync}, nil
}

// Append writes a deposit at the end.
func (j *fileJournal) Append(d Deposit) error {
	if _, err := fmt.Fprintf(j.file, "%q %d\n", d.Account, d.Amount); err != nil {
		return err
	}
	if j.sync {
		return j.file.Sync()
	}
	return nil
}

// Close closes the file.
func (j *fileJournal) Close() error { return j.file.Close() }
