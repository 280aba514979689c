// Package other has message types for another package.
package other

import "errors"

// Page is generic.
type Page[T any] struct {
	Items []T
	Next  *Page[T]
}

// Money has methods for its encoding.
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

// Key has an unexported field.
type Key struct{ inner int }

// Inner is the field.
func (k Key) Inner() int { return k.inner }

// Hidden has a field of an unexported type.
type Hidden struct{ Part part }

type part struct{ A int }
