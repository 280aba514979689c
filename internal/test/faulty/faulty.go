// Package faulty has errors whose methods panic, for tests.
package faulty

// Error is an error whose method of the same name panics: "Error", "Is", "As" or
// "Unwrap". The error "itself" wraps itself.
type Error string

func (e Error) method(name string) {
	if string(e) == name {
		panic("no " + name)
	}
}

func (e Error) Error() string { e.method("Error"); return "faulty" }
func (e Error) Is(error) bool { e.method("Is"); return false }
func (e Error) As(any) bool   { e.method("As"); return false }

func (e Error) Unwrap() error {
	e.method("Unwrap")
	if e == "itself" {
		return e
	}
	return nil
}
