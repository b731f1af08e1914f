//go:build !linux

package runner

// EndsOrphans says that EndOrphans ends what is left of programs: here it does not.
const EndsOrphans = false

// AdoptOrphans does nothing here.
func AdoptOrphans() error { return nil }

// EndOrphans does nothing here.
func EndOrphans() error { return nil }
