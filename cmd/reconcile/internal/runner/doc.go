// Package runner performs effects: it runs commands, each at most once at a time per key, and reports the results as
// [schemas.Run] records.
//
// # What a command gets
//
// A command runs in its own session and process group, in Task.Dir below the root, with a clean environment: PATH, HOME and
// LANG of this process, then Task.Env, then reconcile's variables:
//
//	RECONCILE_RUN      the effect's key
//	RECONCILE_ROOT     the absolute path of the tree
//	RECONCILE_NEEDS    a JSON file with the state, exit code, result and files of each needed node, by name
//	RECONCILE_SESSION_CONTEXT  Task.Session
//	RECONCILE_MEMORY   a file with the recall of earlier work, as in the agent's stdin
//	RECONCILE_RESULT   the path of the JSON file that the node promised to write (outputs.json)
//	RECONCILE_NEED_<NAME>_RESULT  a needed node's result, if it is at most 4 KiB (64 KiB for all of them)
//	RECONCILE_WORKSPACE  the absolute path of the run's own checkout of the repository, if it has one
//	RECONCILE_PORT_BASE  the first of the ports that only this workspace uses
//	RECONCILE_CHAIN    the runs that contain this one; private to reconcile
//
// RECONCILE_NEEDS, RECONCILE_SESSION_CONTEXT, RECONCILE_MEMORY and RECONCILE_RESULT are set only if they have content. A task cannot override
// RECONCILE_RUN, ROOT and CHAIN.
//
// Its stdin is Task.Stdin, followed by the text of Task.Artifacts at the start: regular files, not through symbolic links,
// without secrets, bounded; a file that cannot be shown gives a note. After them follows the result of Options.Recall for
// Task.Recall.
//
// A command with Task.Workspace works in a folder that Options.Workspaces makes: there are its working directory, its
// artifacts, its outputs and its result; files for the run, logs and leases stay in the tree. After a success, what it
// changed is committed. Without a success the folder stays as it is for the next attempt.
//
// # Output
//
// stdout and stderr go, line by line as they arrive, to .reconcile/logs/<key>.log (no output, no file; bounded by
// RunSettings.OutputLimit), and their end, made printable, into the record (bounded by RunSettings.TailLimit). Before a line is
// written anywhere, these are removed: the values of this process's environment variables whose names look secret, if they
// are at least 6 bytes long; <private> text; the rest of a private key that started in earlier lines; and what
// Options.Redact removes. Memory use is bounded for any output.
//
// With Task.Output set, stdout is also parsed by package agentio: for a result, a question (then the run is Asked, and owes
// no files), a resolution, or, with Task.Answer, an answer. Only runs that end with exit code 0 are parsed.
//
// # The end of a run
//
// A run is over when its first process has ended and the rest of its process tree is gone: background processes are ended
// too. A run that is cancelled, or out of time, gets SIGTERM; after RunSettings.Grace, SIGKILL. Processes that left the group
// are found by the mark in their environment or by the lease that they hold.
//
// The lease of a run is a lock on a file in .reconcile/leased, held through descriptor 3, which every process of the tree inherits:
// while any of them lives, even after this process was killed, no process starts the same effect again. A new runner first
// ends the remaining processes, found by lease and mark; if that fails, it reports the effect as Held.
//
// Limits: on systems other than Linux, processes that left the group are not found; on Windows only the first process is
// ended, and no process of a run outlives reconcile. On Linux a process escapes that leaves the group, closes all
// descriptors, clears its environment and changes its parent. One that does all this but clear its environment is found if
// its run took 0.2 s or longer, else by Close.
package runner
