// Package durable replaces files so that a reader, and a machine that lost power, sees the old content or the new,
// whole, and never anything else.
//
// # How
//
// New content goes to a temporary file, is synced, and is renamed over the old; then the folder is synced, and every
// folder that was made on the way. When a function has returned nil, all of it survives a power loss. When it
// returned an error, each file is old or new, and temporary files are gone.
//
// Temporary files lie in a folder of their own (reconcile uses .reconcile/tmp). Their names tell the process that
// made them, so that [Sweep] can remove what a killed one left. When that folder turns out to be on another file
// system, a file beside the target is used, and a note in the temporary folder leads Sweep to it.
//
// # What is refused
//
// All paths are slash-separated, below an [os.Root], and in clean form. No folder on the way and no target may be a
// symbolic link, no target may be anything but a regular file, and nothing below a .git folder is touched: a tree
// that somebody else wrote cannot lead a write astray.
package durable
