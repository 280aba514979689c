// Package quote has a type that only replies have.
package quote

type Quote struct{ Cents int }
