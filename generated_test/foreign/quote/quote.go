// Package quote has a type that is only used in replies.
package quote

type Quote struct{ Cents int }
