package grpc

import (
	"log/slog"

	"github.com/topogen/topogen/runtime/internal/loglimit"
)

// logLimiter limits the lines about one kind of subject.
type logLimiter struct{ *loglimit.Limiter }

func newLogLimiter(l *slog.Logger, subject string) *logLimiter {
	return &logLimiter{loglimit.New(l, "transport", subject)}
}

func (n *logLimiter) log(level slog.Level, key, message string, args ...any) {
	n.Log(level, key, message, args...)
}
