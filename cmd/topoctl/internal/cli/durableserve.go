package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/replicated"
	"github.com/topogen/topogen/runtime/durable/server"
	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// environmentDebug is the environment variable of the original for --debug.
const environmentDebug = "RESONATE_DEBUG"

// stopTimeout is the default of --stop-timeout, as in the original.
const stopTimeout = 10 * time.Second

// DurableServe runs a server of durable promises until it is interrupted.
type DurableServe struct {
	Dir       string // of the store; "": in memory
	TokenFile string
	Cert      string
	Key       string
	ClientCA  string
	Stop      time.Duration

	Server server.Config
	Engine engine.Config
	Store  store.Options
	Group  durableGroup
}

func newDurableServe(chosen *command) *cobra.Command {
	d := &DurableServe{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a server of durable promises",
		Long: `Run a server of durable promises with its store in the folder --store, until it gets an
interrupt or SIGTERM. When the server is ready, the command prints one line with its URL.
Only one process can have a store open.

The server listens on the loopback interface, where every program of the computer can use
it. On another address it needs --token-file, or --tls-cert, --tls-key and --tls-ca,
or --insecure. A file of tokens has one token per line, and each of them is valid.

With --peers the promises are kept on several nodes. Any node answers, and a majority of
them must run. The folder --store then holds the log of this node. --url is the URL of this
node's server for the other nodes, whose servers must accept the first token of the file
and the certificate of this server. The variables TOPOGEN_RAFT_TLS_CERT, TOPOGEN_RAFT_TLS_KEY
and TOPOGEN_RAFT_TLS_CA name the files that protect the connections between the addresses
in --peers; "topoctl certs" makes them for --topology durable --trust-domain durable.

On a signal the server accepts no more requests, answers the accepted ones, and closes the
store. A second signal ends it at once; nothing that was answered is lost.`,
		Example: `  topoctl durable serve --store ./promises
  topoctl durable serve --store ./n1 --node n1 --url http://127.0.0.1:8001 --peers n1=127.0.0.1:7401,n2=127.0.0.1:7402,n3=127.0.0.1:7403
  topoctl durable serve --store ./promises --listen 10.0.0.1:8001 --token-file token --tls-cert server.crt --tls-key server.key
  topoctl durable serve --store ./promises --metrics 127.0.0.1:9090`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if d.Dir == "" {
				return errors.New("name the folder of the store: --store DIR; \"topoctl durable dev\" keeps everything in memory")
			}
			*chosen = *d
			return d.check()
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&d.Dir, "store", "", "the folder of the store, which is created if it does not exist")
	flags.Int64Var(&d.Store.MaxBytes, "max-store", 0, "the largest size of the store in bytes; 0: no limit")
	flags.BoolVar(&d.Store.TrustFile, "trust-file", false, "open a store that was closed without checking its file first")
	d.Group.flags(flags)
	d.flags(flags)
	return cmd
}

func newDurableDev(chosen *command) *cobra.Command {
	d := &DurableServe{}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a server that keeps everything in memory",
		Long: `Run a server of durable promises that keeps everything in memory: when it ends, all
promises are gone. It is for development and for tests. The flags are those of
"topoctl durable serve".`,
		Example: `  topoctl durable dev
  topoctl durable dev --listen 127.0.0.1:0 --debug   # any free port, and a clock that tests set`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			*chosen = *d
			return d.check()
		},
	}
	d.flags(cmd.Flags())
	return cmd
}

// flags adds the flags of servers.
func (d *DurableServe) flags(flags *pflag.FlagSet) {
	s, e := &d.Server, &d.Engine
	flags.StringVar(&s.Listen, "listen", server.AddressDefault, "the address, HOST:PORT")
	flags.StringVar(&s.MetricsListen, "metrics", "", "the address of /metrics for Prometheus, HOST:PORT; without it there are none")
	flags.BoolVar(&s.Debug, "debug", false, "allow the operations debug.* and resonate:debug_time; RESONATE_DEBUG=true does the same")
	flags.StringVar(&d.TokenFile, "token-file", "", "the file with the tokens of clients")
	flags.StringVar(&d.Cert, "tls-cert", "", "the server's certificate")
	flags.StringVar(&d.Key, "tls-key", "", "the key of the server's certificate")
	flags.StringVar(&d.ClientCA, "tls-ca", "", "the authorities that sign the certificates of clients; clients then need one")
	flags.BoolVar(&s.Insecure, "insecure", false, "listen on any address without tokens and without certificates of clients")
	flags.StringArrayVar(&s.Origins, "origin", nil, "a web page that may use the server from a browser, such as https://app.example.com; repeat it for several pages")
	flags.StringArrayVar(&s.Hosts, "host", nil, "another name by which clients call a server that needs no token; repeat it for several names")
	flags.StringVar(&e.ServerURL, "url", "", "the URL of the server in messages that are pushed to http addresses")
	flags.Var(milliseconds64{&e.Core.RetryTimeout, core.RetryTimeoutDefault}, "retry-timeout", "the time after which a pending task is sent again")
	flags.BoolVar(&e.Core.Strict, "strict", false, "refuse promises with a timer and a target, which the sleep of the TypeScript SDK creates")
	flags.IntVar(&s.BodyMax, "max-body", protocol.MaxBody, "the largest request in bytes")
	flags.IntVar(&s.ConnectionsMax, "max-connections", server.ConnectionsMaxDefault, "the highest number of TCP connections")
	flags.IntVar(&s.RequestsMax, "max-requests", server.RequestsMaxDefault, "the highest number of requests that are carried out at a time")
	flags.IntVar(&e.ConnectionsMax, "max-streams", engine.ConnectionsMaxDefault, "the highest number of connected workers")
	flags.DurationVar(&d.Stop, "stop-timeout", stopTimeout, "how long a signal waits for running requests")
}

// milliseconds64 is a flag whose value is a duration in milliseconds.
type milliseconds64 struct {
	value *int64
	usual int64
}

func (m milliseconds64) String() string {
	if m.value == nil { // the help calls String of the zero value
		return ""
	}
	if *m.value == 0 {
		return milliseconds(m.usual)
	}
	return milliseconds(*m.value)
}

func (milliseconds64) Type() string { return "duration" }

func (m milliseconds64) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Millisecond {
		return errors.New("must be a duration of at least 1ms, such as 30s")
	}
	*m.value = d.Milliseconds()
	return nil
}

// check reports contradicting flags.
func (d *DurableServe) check() error {
	switch {
	case (d.Cert == "") != (d.Key == ""):
		return errors.New("--tls-cert and --tls-key must be given together")
	case d.ClientCA != "" && d.Cert == "":
		return errors.New("--tls-ca needs --tls-cert and --tls-key")
	case d.Stop < 0:
		return fmt.Errorf("--stop-timeout must not be negative, got %v", d.Stop)
	case d.Store.MaxBytes < 0:
		return fmt.Errorf("--max-store must not be negative, got %d", d.Store.MaxBytes)
	}
	if err := d.Group.check(d); err != nil {
		return err
	}
	for _, limit := range []struct {
		name  string
		value int
	}{
		{"max-body", d.Server.BodyMax}, {"max-connections", d.Server.ConnectionsMax},
		{"max-requests", d.Server.RequestsMax}, {"max-streams", d.Engine.ConnectionsMax},
	} {
		if limit.value < 1 {
			return fmt.Errorf("--%s must be at least 1, got %d", limit.name, limit.value)
		}
	}
	return nil
}

func (d DurableServe) run(ctx context.Context, s Streams) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once, also while the store is opened
	defer stop()
	logger := slog.New(slog.NewTextHandler(s.Err, nil))
	if err := d.configure(logger); err != nil {
		return err
	}
	e, err := d.open()
	if err != nil {
		return err
	}
	d.Server.Backend = e
	if n, ok := e.(*replicated.Node); ok {
		d.Server.Local = n.Local()
	}
	web, err := server.Listen(d.Server)
	if err != nil {
		return errors.Join(d.explain(err), e.Close(context.Background()))
	}
	if address := web.MetricsAddress(); address != "" {
		scheme, _, _ := strings.Cut(web.URL(), "://")
		fmt.Fprintf(s.Err, "topoctl: the metrics are at %s://%s/metrics\n", scheme, address)
	}
	fmt.Fprintf(s.Out, "serving durable promises at %s\n", web.URL())
	select {
	case <-ctx.Done():
	case err = <-web.Failed():
	case <-e.Stopped(): // Close returns its error
	}
	stop()
	end, cancel := context.WithTimeout(context.Background(), d.Stop)
	defer cancel()
	err = errors.Join(err, web.Close(end))
	return errors.Join(err, e.Close(context.Background()))
}

// configure reads the files and the environment variable that the flags name.
func (d *DurableServe) configure(logger *slog.Logger) (err error) {
	d.Server.Logger, d.Engine.Logger = logger, logger
	if text := os.Getenv(environmentDebug); text != "" && !d.Server.Debug {
		if d.Server.Debug, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%s must be true or false, got %q", environmentDebug, text)
		}
	}
	if err := d.Group.check(d); err != nil { // the variable is not a flag
		return err
	}
	d.Engine.Debug = d.Server.Debug
	if d.TokenFile != "" {
		if d.Server.Tokens, err = readTokens(d.TokenFile); err != nil {
			return err
		}
	}
	if d.Cert != "" {
		if d.Server.TLS, err = certs.Server(d.files(), tls.VersionTLS12, logger); err != nil {
			return errors.New(oneLine(err.Error()))
		}
	}
	return nil
}

// files are those of the server's certificate. With authorities, clients need certificates.
func (d *DurableServe) files() certs.Files {
	return certs.Files{Cert: d.Cert, Key: d.Key, CA: d.ClientCA}
}

// durableBackend is an engine, or a node of a group.
type durableBackend interface {
	protocol.Backend
	Stopped() <-chan struct{}
	Close(ctx context.Context) error
}

// open opens the store with its engine, or this node of a group.
func (d *DurableServe) open() (durableBackend, error) {
	if len(d.Group.Peers) > 0 {
		return d.Group.open(d)
	}
	if d.Dir == "" {
		d.Engine.Store = store.NewMemory()
	} else {
		disk, err := store.Open(d.Dir, d.Store)
		if err != nil {
			return nil, d.explain(err)
		}
		d.Engine.Store = disk
	}
	e, err := engine.Open(d.Engine)
	if err != nil {
		return nil, errors.Join(err, d.Engine.Store.Close())
	}
	return e, nil
}

// explain says what to do if the server cannot start.
func (d *DurableServe) explain(err error) error {
	advice := ""
	var damage *store.DamageError
	switch {
	case errors.Is(err, store.ErrInUse):
		advice = "\nOnly one process can have a store open. Stop the other one, or name another folder."
	case errors.As(err, &damage):
		advice = "\nRestore a backup with \"topoctl durable restore FILE --store DIR --keep-old\". \"topoctl durable check\" lists all damage."
	case errors.Is(err, syscall.EADDRINUSE):
		advice = "\nAnother program has the address. Name another one with --listen or --metrics."
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		advice = "\nThe folder of the store must be writable."
	}
	return fmt.Errorf("%s%s", oneLine(err.Error()), advice)
}
