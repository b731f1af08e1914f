// Package turns decides how the turn of an agent ended. It is the only judge of that: the runners of commands, of the Agent
// Client Protocol and of HTTP endpoints hand it the [Facts] that they observed and record its verdict.
//
// An agent's own statement that a turn ended well is one fact of several. Agents end a turn with end_turn and exit code 0
// after a rate limit, so [Judge] requires evidence of work, and classifies everything else. A verdict that is not a success
// always has a class. Everything here is a pure function of its arguments.
package turns
