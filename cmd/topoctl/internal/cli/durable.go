package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// Environment variables of the SDKs, which the commands read too.
const (
	environmentURL   = "RESONATE_URL"
	environmentToken = "RESONATE_TOKEN"
)

// defaultURL is where a server listens by default.
const defaultURL = "http://127.0.0.1:8001"

// durableTimeout bounds a command that sends one request. A request waits for a sync.
const durableTimeout = 30 * time.Second

// Server is the server of durable promises that a command calls.
type Server struct {
	URL       string
	TokenFile string
	Cert      string // files of a client's certificate; either all three or none
	Key       string
	CA        string
	Timeout   time.Duration // of the command
}

func newDurable(chosen *command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "durable",
		Short: "Run and operate a server of durable promises",
		Long: `Run a server of durable promises, and operate one that runs. The server is the same one
that a topology with a section "durable" contains, and speaks the protocol of Resonate.

The commands that call a server find it at --server, or at the value of RESONATE_URL, or
at http://127.0.0.1:8001. They send the token in the file --token-file, or the value of
RESONATE_TOKEN.

Values are shown and given as JSON. The SDKs store them as base64 of JSON; with --raw the
commands show and send the text as it is stored.`,
		Example: `  topoctl durable serve --store ./promises
  topoctl durable invoke order-17 --func checkout --arg '{"Item":"lamp"}' --target poll://any@shop --wait
  topoctl durable tree order-17`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return helpFirst(cmd) },
	}
	cmd.AddCommand(newDurableServe(chosen), newDurableDev(chosen), newDurablePromises(chosen), newDurableTasks(chosen),
		newDurableSchedules(chosen), newDurableInvoke(chosen), newDurableTree(chosen), newDurableCheck(chosen), newDurableReplay(chosen),
		newDurableBackup(chosen), newDurableRestore(chosen), newDurableClock(chosen))
	return cmd
}

// helpFirst prints the help of a command that needs a subcommand.
func helpFirst(cmd *cobra.Command) error {
	cmd.SetOut(cmd.ErrOrStderr())
	if err := cmd.Help(); err != nil {
		return err
	}
	return errNoCommand
}

// addFlags adds the flags that name the server.
func (s *Server) addFlags(flags *pflag.FlagSet) {
	flags.StringVarP(&s.URL, "server", "S", "", "the URL of the server")
	flags.StringVar(&s.TokenFile, "token-file", "", "the file with the token of the server")
	flags.StringVar(&s.Cert, "cert", "", "the client's certificate")
	flags.StringVar(&s.Key, "key", "", "the key of the client's certificate")
	flags.StringVar(&s.CA, "ca", "", "the authorities that sign the server's certificate")
	flags.DurationVar(&s.Timeout, "request-timeout", durableTimeout, "the time limit of the command")
}

// check reports contradicting flags.
func (s *Server) check() error {
	switch {
	case (s.Cert == "") != (s.Key == ""):
		return errors.New("--cert and --key must be given together")
	case s.Timeout <= 0:
		return fmt.Errorf("--request-timeout must be more than 0, got %v", s.Timeout)
	}
	return nil
}

// url returns the URL of the server. HOST:PORT is short for http://HOST:PORT.
func (s *Server) url() string {
	address := cmp.Or(s.URL, os.Getenv(environmentURL), defaultURL)
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	return address
}

// connect returns a client of the server. It does not connect yet.
func (s *Server) connect() (*client.Client, error) {
	options := client.Options{Token: os.Getenv(environmentToken), Timeout: s.Timeout}
	if s.TokenFile != "" {
		tokens, err := readTokens(s.TokenFile)
		if err != nil {
			return nil, err
		} else if len(tokens) > 1 {
			return nil, fmt.Errorf("%s must have one token, got %d", oneLine(s.TokenFile), len(tokens))
		}
		options.Token = tokens[0]
	}
	if files := (certs.Files{Cert: s.Cert, Key: s.Key, CA: s.CA}); files != (certs.Files{}) {
		var err error
		if options.Certificates, err = certs.Client(files, tls.VersionTLS12, slog.New(slog.DiscardHandler)); err != nil {
			return nil, errors.New(oneLine(err.Error()))
		}
	}
	c, err := client.New(s.url(), options)
	if err != nil {
		err = errors.New(oneLine(strings.TrimPrefix(err.Error(), "client: ")))
	}
	return c, err
}

// explain describes an error of the connection, and says what to do.
func (s *Server) explain(err error) error {
	text, advice := err.Error(), ""
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		text, advice = "no server listens there", "\nStart one with \"topoctl durable serve --store DIR\", or name the URL of yours with --server."
	case errors.As(err, &unknown):
		text, advice = "the server's certificate is signed by an unknown authority", "\nName the file with the authorities: --ca FILE."
	default:
		if e, ok := errors.AsType[*url.Error](err); ok {
			text = e.Err.Error() // the URL is in the message already
		}
		text = strings.TrimPrefix(text, "client: ")
	}
	return fmt.Errorf("%s: %s%s", oneLine(s.url()), oneLine(text), advice)
}

// readTokens reads a file with tokens, one per line.
func readTokens(name string) (tokens []string, err error) {
	text, err := certs.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		token := strings.TrimSpace(line)
		switch {
		case token == "":
			continue
		case strings.ContainsAny(token, " \t"):
			return nil, fmt.Errorf("each line of %s must be a token, which has no blanks", oneLine(name))
		case len(token) > protocol.MaxToken:
			return nil, fmt.Errorf("a token in %s must have at most %d bytes, got %d", oneLine(name), protocol.MaxToken, len(token))
		}
		tokens = append(tokens, token)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s must have a token, got an empty file", oneLine(name))
	}
	return tokens, nil
}

// A refusal is the answer of a server that refuses an operation.
type refusal struct {
	url    string
	status int
	text   string
}

func (r *refusal) Error() string {
	advice := ""
	switch r.status {
	case protocol.Unauthorized:
		advice = "\nName the file with the token of the server: --token-file FILE."
	case protocol.Forbidden:
		advice = "\nStart the server with --debug."
	case protocol.TooMany, protocol.Unavailable:
		advice = "\nTry again."
	}
	return fmt.Sprintf("%s: %s%s", oneLine(r.url), oneLine(r.text), advice)
}

// do carries out an operation. A refused operation is an error.
func (s *Server) do(ctx context.Context, b protocol.Backend, op protocol.Operation) (protocol.Result, error) {
	r, err := b.Do(ctx, op)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return r, fmt.Errorf("%s: no answer within %v", oneLine(s.url()), s.Timeout)
	case err != nil:
		return r, s.explain(err)
	case r.Status >= protocol.BadRequest:
		return r, &refusal{s.url(), r.Status, r.Error}
	}
	return r, nil
}
