// Package other has types of messages that another package sends.
package other

import "errors"

// Page is generic.
type Page[T any] struct {
	Items []T
	Next  *Page[T]
}

// Money has methods of its own in place of its fields.
type Money struct{ cents int64 }

// Cents makes Money.
func Cents(n int64) Money { return Money{n} }

func (m Money) MarshalBinary() ([]byte, error) {
	if m.cents < 0 {
		return nil, errors.New("a debt")
	}
	return []byte{byte(m.cents >> 8), byte(m.cents)}, nil
}

func (m *Money) UnmarshalBinary(b []byte) error {
	if len(b) != 2 {
		return errors.New("no money")
	}
	m.cents = int64(b[0])<<8 | int64(b[1])
	return nil
}

// Level is a number with a name.
type Level int8

// Key has a field that others cannot see.
type Key struct{ inner int }

// Inner is the field.
func (k Key) Inner() int { return k.inner }

// Hidden has a field whose type others cannot name.
type Hidden struct{ Part part }

type part struct{ A int }
