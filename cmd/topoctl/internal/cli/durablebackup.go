package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// DurableBackup writes a store to a file.
type DurableBackup struct {
	Server
	File  string
	Dir   string // of a store without a server; "": of Server
	Force bool
}

func newDurableBackup(chosen *command) *cobra.Command {
	d := &DurableBackup{}
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the store of a server to a file",
		Long: `Write the store of a server, which goes on working, to FILE. The backup contains everything
that the server has answered before the command. "topoctl durable restore" makes a store of it.

FILE must not exist, unless --force replaces it. When the command returns, FILE is complete:
its pages and checksums were read from the file as "topoctl durable check" reads them. Until
then its name is FILE.tmp-N; delete that file if the command was killed.

With --store the command reads the folder of a store that no server has open. It changes
nothing there.

While the server sends a backup, its file grows by everything that is written, since no free
space is used again. So write the backup to a fast disk, and copy it to a slow one later. The
server sends one backup at a time. It ends a backup whose reader takes nothing for 30 s, or
takes less than 256 KiB per second on average. It also ends a backup if a commit would have
to wait for it (try again then), or if the store has no space left.

Promises on several nodes (--peers, or store: {raft: NAME}) are backed up with "topoctl raft
backup".`,
		Example: `  topoctl durable backup promises.backup
  topoctl durable backup promises.backup --server https://10.0.0.1:8001 --token-file token --ca ca.crt
  topoctl durable backup promises.backup --store ./promises`,
		Args: oneOf("the file for the backup"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.Dir != "" && d.URL != "" {
				return errors.New("--store is for a store without a server: omit --server")
			}
			d.File = args[0]
			*chosen = *d
			return d.check()
		},
	}
	flags := cmd.Flags()
	d.addFlags(flags)
	flags.Lookup("request-timeout").Usage = "the longest time without a byte from the server"
	flags.StringVar(&d.Dir, "store", "", "the folder of a store that no server has open")
	flags.BoolVar(&d.Force, "force", false, "replace FILE if it exists")
	return cmd
}

func (d DurableBackup) run(ctx context.Context, s Streams) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM) // so that the temporary file is removed
	defer stop()
	if err := d.free(); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(d.File), filepath.Base(d.File)+".tmp-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // fails after success, because the file was renamed
	p := &progress{file: file, to: s.Err}
	if err = d.fetch(ctx, p); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	report, err := store.VerifyFile(file.Name())
	if err == nil && len(report.Damage) > 0 {
		err = report.Damage[0]
	}
	if err == nil && report.Bytes != p.bytes {
		err = fmt.Errorf("the file has %d of %d bytes", report.Bytes, p.bytes)
	}
	if err != nil {
		return fmt.Errorf("the backup is not intact: %w\nIf another attempt fails too, check the store: stop its server and run \"topoctl durable check\"", err)
	}
	if err := d.free(); err != nil { // another command may have created it
		return err
	}
	if err := errors.Join(os.Rename(file.Name(), d.File), syncFolder(filepath.Dir(d.File))); err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "topoctl: %s contains %s: %d bytes, verified\n", oneLine(d.File), contents(&report), report.Bytes)
	return nil
}

// contents describes the commit of a backup.
func contents(r *store.Report) string {
	return fmt.Sprintf("commit %d of store %s with %d promises", r.Commits, r.ID, r.Records[core.Promises])
}

// free reports whether the file for the backup may be written.
func (d *DurableBackup) free() error {
	switch info, err := os.Lstat(d.File); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file: name another one", oneLine(d.File))
	case !d.Force:
		return fmt.Errorf("%s exists: name another file, or replace it with --force", oneLine(d.File))
	}
	return nil
}

// fetch writes the store of the server or of the folder to a file.
func (d *DurableBackup) fetch(ctx context.Context, to *progress) error {
	if d.Dir != "" {
		return d.read(ctx, to)
	}
	c, err := d.connect()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // it has no connection that is in use
	b, err := c.Backup(ctx)
	if err != nil {
		return d.explainBackup(ctx, errors.Unwrap(err)) // the command says that it is about a backup
	}
	defer func() { _ = b.Close() }() // everything that counts was read
	if err := to.Begin(ctx, b.Bytes); err != nil {
		return err
	}
	const block = 1 << 20
	if _, err = io.CopyBuffer(onlyWriter{to}, onlyReader{b}, make([]byte, block)); err != nil && to.err == nil {
		return d.explainBackup(ctx, fmt.Errorf("the server has ended the backup after %d of %d bytes: %w", to.written, b.Bytes, err))
	}
	return err
}

// onlyReader and onlyWriter hide other methods, so that CopyBuffer uses its buffer.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// read backs up a store that no server has open.
func (d *DurableBackup) read(ctx context.Context, to *progress) error {
	r, err := store.OpenReadOnly(d.Dir, store.Options{TrustFile: true}) // the backup is verified
	if err == nil {
		err = errors.Join(r.Backup(ctx, to), r.Close())
	}
	if errors.Is(err, store.ErrInUse) {
		return fmt.Errorf("%s\nOmit --store, and name the URL of the server that has the store: --server URL", oneLine(err.Error()))
	}
	return err
}

// explainBackup says what to do if a server does not send a backup.
func (d *DurableBackup) explainBackup(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted: there is no backup")
	}
	r, refused := errors.AsType[*client.Refusal](err)
	switch {
	case !refused:
		return d.explain(err)
	case r.Status == http.StatusNotFound:
		return fmt.Errorf("%s: the server has no backups: its version is older than this command, or a proxy answers", oneLine(d.url()))
	case r.Status == protocol.Conflict:
		return fmt.Errorf("%s: %s", oneLine(d.url()), oneLine(r.Reason))
	}
	return &refusal{d.url(), r.Status, r.Reason}
}

// backupInterval is the time between two lines of progress.
const backupInterval = 2 * time.Second

// progress writes a backup to a file, and reports its progress.
type progress struct {
	file           io.Writer
	to             io.Writer
	bytes, written int64
	begin, printed time.Time
	err            error // of file
}

// Begin implements store.Sink.
func (p *progress) Begin(_ context.Context, bytes int64) error {
	p.bytes, p.begin = bytes, time.Now()
	p.printed = p.begin
	return nil
}

func (p *progress) Write(b []byte) (int, error) {
	n, err := p.file.Write(b)
	p.written += int64(n)
	p.err = err
	if now := time.Now(); now.Sub(p.printed) >= backupInterval {
		p.printed = now
		rate := float64(p.written) / now.Sub(p.begin).Seconds()
		fmt.Fprintf(p.to, "topoctl: %d of %d bytes, %d%%, %.1f MB/s\n", p.written, p.bytes, p.written*100/max(p.bytes, 1), rate/1e6)
	}
	return n, err
}
