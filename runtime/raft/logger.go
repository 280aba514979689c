package raft

import (
	"fmt"
	"log/slog"
)

// LogLevel is a level of package slog.
type LogLevel = slog.Level

// logger passes on the messages of the engine. The engine calls Panic if its state is
// impossible; Core.recoverPanic turns the panic into ErrEngine.
type logger struct {
	log func(level LogLevel, text string)
}

func (l logger) print(level LogLevel, text string) {
	if l.log != nil {
		l.log(level, text)
	}
}

func (l logger) Debug(v ...any)                 {}
func (l logger) Debugf(format string, v ...any) {}
func (l logger) Info(v ...any)                  { l.print(slog.LevelDebug, fmt.Sprint(v...)) }
func (l logger) Warning(v ...any)               { l.print(slog.LevelWarn, fmt.Sprint(v...)) }
func (l logger) Error(v ...any)                 { l.print(slog.LevelError, fmt.Sprint(v...)) }
func (l logger) Fatal(v ...any)                 { panic(fmt.Sprint(v...)) }
func (l logger) Panic(v ...any)                 { panic(fmt.Sprint(v...)) }

func (l logger) Infof(format string, v ...any) {
	if l.log != nil {
		l.print(slog.LevelDebug, fmt.Sprintf(format, v...))
	}
}

func (l logger) Warningf(format string, v ...any) {
	if l.log != nil {
		l.print(slog.LevelWarn, fmt.Sprintf(format, v...))
	}
}

func (l logger) Errorf(format string, v ...any) {
	if l.log != nil {
		l.print(slog.LevelError, fmt.Sprintf(format, v...))
	}
}

func (l logger) Fatalf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
func (l logger) Panicf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
