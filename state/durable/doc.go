// Package durable replaces files atomically and durably: a reader, also after a power loss, sees either the complete
// old content or the complete new one.
//
// # How
//
// New content goes to a temporary file, is synced, and is renamed over the old; then the folder is synced, and every
// new folder on the path. When a function has returned nil, all of it survives a power loss. When it returned an error,
// each file is old or new, and temporary files are removed.
//
// Temporary files are in a separate folder (reconcile uses .reconcile/tmp). Their names identify the process that
// created them, so that [Sweep] can remove those of killed processes. If that folder is on another file system, a file
// next to the target is used, and a note in the temporary folder leads Sweep to it.
//
// # Rejected paths
//
// All paths are slash-separated, below an [os.Root], and in clean form. No folder on the way and no target may be a
// symbolic link, no target may be anything but a regular file, and nothing below a .git folder is changed: an untrusted
// tree cannot redirect a write.
package durable
