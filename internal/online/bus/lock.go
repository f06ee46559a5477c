package bus

import "errors"

// errLocked says that another holds the lock.
var errLocked = errors.New("locked")
