// Package runner performs effects: it runs commands, each at most once at a time per key, and reports what became of
// them as [schemas.Run] records.
//
// # What a command gets
//
// A command runs in a session and process group of its own, in Task.Dir below the root, with a clean environment:
// PATH, HOME and LANG of this process, then Task.Env, then what reconcile sets:
//
//	RECONCILE_RUN      the effect's key
//	RECONCILE_ROOT     the absolute path of the tree
//	RECONCILE_NEEDS    a JSON file with the state, exit code, result and files of each needed node, by name
//	RECONCILE_MEMORY   a file with what an agent is told of earlier work, as its stdin has it
//	RECONCILE_RESULT   the path of the JSON file that the node promised to write (outputs.json)
//	RECONCILE_NEED_<NAME>_RESULT  a needed node's result, if it is at most 4 KiB (64 KiB for all of them)
//	RECONCILE_CHAIN    which runs this one is inside of; private to reconcile
//
// RECONCILE_NEEDS, RECONCILE_MEMORY and RECONCILE_RESULT are set only where there is something to read or to write. A task cannot set
// RECONCILE_RUN, ROOT and CHAIN to something else.
//
// Its stdin is Task.Stdin, and below it the text of Task.Artifacts as it is at the start: regular files, not through
// symbolic links, without secrets, bounded; what cannot be shown is said in its place. Below that stands what
// Options.Recall finds for Task.Recall.
//
// # What is kept of its output
//
// stdout and stderr go, line by line as they come, to .reconcile/logs/<key>.log (no output, no file; bounded by
// Options.OutputLimit), and their end, made printable, into the record (bounded by Options.TailLimit). Before a line is
// written anywhere, these are taken out: the values of this process's own environment variables whose names look
// secret, if they are at least 6 bytes long; <private> text; the rest of a private key whose first lines came before; and
// what Options.Redact removes. Memory is bounded whatever a command prints.
//
// With Task.Output set, stdout is also read, as package agentio says: for a result, a question (then the run is Asked,
// and owes no files), a resolution, or, with Task.Answer, an answer. Only runs that end with exit code 0 say anything.
//
// # How it ends
//
// A run is over when its first process has ended and the rest of its tree is gone: what it leaves behind in the
// background is ended too. A run that is cancelled, or out of time, gets SIGTERM; after Options.Grace, SIGKILL.
// Processes that left the group are found by the mark in their environment or by the lease that they hold.
//
// The lease of a run is a lock on .reconcile/leases, held through descriptor 3, which every process of the tree
// inherits: while any of them lives, also after this process was killed, nobody starts the same effect again. Whoever
// wants to ends what is left first, known by lease and mark; if that fails, the effect is reported as Held.
//
// Limits: on systems other than Linux, processes that left the group are not found; on Windows only the first process
// is ended, and nothing of it outlives reconcile. On Linux a process escapes that leaves the group, closes all
// descriptors, clears its environment and gives up its parent. One that does all but clear its environment is found
// when its run took 0.2 s or longer, else by Close.
package runner
