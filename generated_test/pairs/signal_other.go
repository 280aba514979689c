//go:build !unix

package pairs

func signal(Failure) { panic("this system has no signals") }
