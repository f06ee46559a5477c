package bus

import "errors"

// errLocked means that another process holds the lock.
var errLocked = errors.New("locked")
