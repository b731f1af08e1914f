// Package acp is a client of the Agent Client Protocol, version 1: JSON-RPC 2.0 messages, one a line, over the standard
// streams of an agent. It knows nothing of processes: it reads from an io.Reader and writes to an io.WriteCloser.
//
// # Untrusted agents
//
// The reader always reads: it never waits for the caller, for an answer, or for the agent to read. It decodes the envelope
// of a message and the fields that it needs, and folds each update into a [State] at once, so that any number of updates
// needs no queue. Repeated updates of a tool call change one entry. Everything that it keeps is bounded: the length of a
// line, the text, the messages before a session exists, the open requests of the agent, the kinds that are counted.
//
// What it does not know is counted and never taken for something else: an update of an unknown kind, a line that is no
// message, an update of another session. A line that is too long is skipped. None of them ends the connection.
//
// # Requests of the agent
//
// The client offers no file system and no terminal. [Host.Permit] answers session/request_permission. A request that
// is still open when the turn is cancelled or the connection is closed is answered as cancelled. Any other method gets the
// error -32601.
package acp
