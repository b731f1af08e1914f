# An engineer that asks instead of guessing. A real one is a coding agent; it speaks to reconcile in the same way: the task
# comes on stdin, with the answers to earlier questions, and the last word on stdout is JSON.
task=$(cat)
case $task in
*"Pool settings in appsettings.json"*)
  mkdir -p src/db && echo "// adapter" > src/db/adapter.ts
  echo '{"reconcile": 1, "result": {"files": ["src/db/adapter.ts"]},
    "resolution": "Clear. Repository pattern + config-driven pooling. Proceeding."}' ;;
*"Use repository pattern with adapter"*)
  echo '{"reconcile": 1, "clarification": {"to": "architect", "topic": "Database abstraction layer approach",
    "question": "Should the adapter handle connection pooling or leave that to config?"}}' ;;
*)
  echo '{"reconcile": 1, "clarification": {"to": "architect", "topic": "Database abstraction layer approach",
    "question": "ADR-42 says PostgreSQL but codebase uses SQLite. Dual-layer or migrate?",
    "artifacts": ["docs/adr/ADR-42.md"]}}' ;;
esac
