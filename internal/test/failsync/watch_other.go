//go:build !(linux && (amd64 || arm64))

package failsync

import "errors"

func watch(Kind, func(Call) error, func()) error {
	return errors.New("it needs Linux on amd64 or arm64")
}
