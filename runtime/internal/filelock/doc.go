// Package filelock unlocks files that package fileutil of etcd has locked, and locks them for
// reading.
//
//	lock, err := fileutil.TryLockFile(path, os.O_RDWR|os.O_CREATE, 0o600)
//	filelock.Unlock(lock.File)
//	err = lock.Close()
//
// fileutil leaves the unlocking to the close of the file. That is too late while the
// process starts another process: the new process has copies of all open files for a
// moment, and they keep the file locked.
package filelock
